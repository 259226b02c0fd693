import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import type { FiringPayload } from "../../engine/ports/firings.ts";
import { type MemoryBudget, UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { BYTES_WAITING_MAX, LocalTopics, MESSAGES_WAITING_MAX, SLICE_MS } from "./local_topics.ts";

function message(text: string): FiringPayload {
  return { json: new TextEncoder().encode(text), traceparent: undefined };
}

const textOf = ({ json }: FiringPayload): string => new TextDecoder().decode(json);

/** A clock on which each look takes a part of a slice. */
class SlowClock extends FakeClock {
  lookMs = 0;
  override now(): number {
    this.tick(this.lookMs);
    return super.now();
  }
}

function setup(memory: MemoryBudget = UNLIMITED_MEMORY) {
  const clock = new SlowClock();
  return { clock, topics: new LocalTopics({ clock, memory }) };
}

Deno.test("a message reaches all that are subscribed at that moment, in order of publishing", () => {
  const { topics } = setup();
  const heard: string[] = [];
  topics.publish("t", message("before"));
  topics.subscribe("t", (it) => heard.push(`a ${textOf(it)}`));
  const stop = topics.subscribe("t", (it) => heard.push(`b ${textOf(it)}`));

  topics.publish("t", message("1"));
  stop();
  stop();
  topics.publish("t", message("2"));
  topics.publish("other", message("3"));

  assert.deepEqual(heard, ["a 1", "b 1", "a 2"]);
});

Deno.test("many deliveries give way to other work, and a stopped one is left out", () => {
  const { clock, topics } = setup();
  clock.lookMs = SLICE_MS;
  let heard = 0;
  const stops = Array.from({ length: 100 }, () => topics.subscribe("t", () => heard++));

  topics.publish("t", message("1"));
  topics.publish("t", message("2"));
  assert.equal(heard, 16);
  assert.equal(topics.waiting, 2);
  stops.slice(50).forEach((stop) => stop());
  while (topics.waiting > 0) clock.tick(1);

  assert.equal(heard, 100);
  assert.equal(clock.waiting, 0);
});

Deno.test("what a delivery publishes waits for its turn", () => {
  const { topics } = setup();
  const heard: string[] = [];
  topics.subscribe("t", (it) => {
    heard.push(textOf(it));
    if (heard.length === 1) topics.publish("t", message("2"));
  });
  topics.subscribe("t", (it) => heard.push(textOf(it)));

  topics.publish("t", message("1"));

  assert.deepEqual(heard, ["1", "1", "2", "2"]);
});

Deno.test("messages that wait are bounded in number, bytes and memory, and given back", () => {
  const memory = createMemoryBudget(64 * 1024 * 1024);
  const { clock, topics } = setup(memory);
  for (let i = 0; i < 40; i++) topics.subscribe("t", () => {});
  clock.lookMs = SLICE_MS;
  const fill = (json: string, most: number): number => {
    let accepted = 0;
    while (accepted <= most && topics.publish("t", message(json))) accepted++;
    return accepted;
  };
  const drain = (): void => {
    while (topics.waiting > 0) clock.tick(10);
  };

  assert.equal(fill("1", MESSAGES_WAITING_MAX), MESSAGES_WAITING_MAX);
  drain();
  const large = "x".repeat(1024 * 1024);
  assert.equal(fill(large, 100), BYTES_WAITING_MAX / large.length - 1);
  drain();
  assert.equal(memory.used("queues"), 0);
  memory.take("bodies", memory.limitBytes);
  assert.equal(topics.publish("t", message("1")), false);
  memory.release("bodies", memory.limitBytes);
  assert.equal(fill("1", 5), 6);
  topics[Symbol.dispose]();

  assert.equal(memory.used("queues"), 0);
  assert.equal(clock.waiting, 0);
});
