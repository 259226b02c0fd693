import assert from "node:assert/strict";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { Audience, EVENTS_KEPT_MAX, type GroupEvent, SLICE_MS } from "./audience.ts";

const event = (id: string, size = 1): GroupEvent => ({ id, bytes: new Uint8Array(size) });

/** A clock on which deliveries take time. */
class WorkClock extends FakeClock {
  spent = 0;

  override now(): number {
    return super.now() + this.spent;
  }
}

function setup() {
  const clock = new WorkClock();
  const memory = createMemoryBudget(1024 * 1024 * 1024);
  const audience = new Audience({ clock, memory });
  /** A follower that takes so long for each event. */
  const follow = (key: string, ms = 0) => {
    const heard: (string | null)[] = [];
    const hear = ({ id }: GroupEvent): void => {
      heard.push(id);
      clock.spent += ms;
    };
    return { heard, stop: audience.follow(key, { hear }) };
  };
  return { clock, memory, audience, follow };
}

Deno.test("an event goes to all that follow its group, and to no other", () => {
  const { audience, follow, memory } = setup();
  const [a, b, other] = [follow("a"), follow("a"), follow("b")];

  audience.publish("a", event("1"));
  b.stop();
  audience.publish("a", event("2"));
  audience.publish("c", event("3"));

  assert.deepEqual([a.heard, b.heard, other.heard], [["1", "2"], ["1"], []]);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("others have their turn between slices, and each gets all that came meanwhile", () => {
  const { audience, follow, clock } = setup();
  const slow = Array.from({ length: 40 }, () => follow("a", 1));
  const quick = follow("b");

  audience.publish("a", event("1"));
  const reached = slow.filter(({ heard }) => heard.length > 0).length;
  assert.ok(reached > 0 && reached < slow.length, String(reached));
  audience.publish("a", event("2"));
  audience.publish("b", event("x"));
  assert.deepEqual(quick.heard, []);
  clock.tick(1); // The slice of the other group.
  clock.tick(1);
  assert.deepEqual(quick.heard, ["x"]);
  for (let i = 0; i < 100; i++) clock.tick(SLICE_MS);

  for (const { heard } of slow) assert.deepEqual(heard, ["1", "2"]);
});

Deno.test("who comes while an event is under way hears the next one only", () => {
  const { audience, follow, clock } = setup();
  const first = Array.from({ length: 40 }, () => follow("a", 1));
  audience.publish("a", event("1"));
  const late = follow("a");
  audience.publish("a", event("2"));

  for (let i = 0; i < 100; i++) clock.tick(SLICE_MS);

  assert.deepEqual([late.heard, first[39]!.heard], [["2"], ["1", "2"]]);
});

Deno.test("an event that finds no room is refused, and room comes back", () => {
  const { audience, follow, clock, memory } = setup();
  const slow = Array.from({ length: 40 }, () => follow("a", 1));
  let taken = 0;
  while (audience.publish("a", event("x"))) taken++;

  assert.deepEqual([taken, audience.isBehind], [EVENTS_KEPT_MAX, true]);
  for (const { stop } of slow) stop();
  clock.tick(SLICE_MS);

  assert.deepEqual([audience.isBehind, memory.usedBytes], [false, 0]);
  const again = follow("a");
  assert.equal(audience.publish("a", event("y")), true);
  assert.deepEqual(again.heard, ["y"]);
});

Deno.test("a follower may leave while it hears", () => {
  const { audience, follow } = setup();
  const others = follow("a");
  let stop = (): void => {};
  stop = audience.follow("a", { hear: () => stop() });

  audience.publish("a", event("1"));
  audience.publish("a", event("2"));
  others.stop();

  assert.equal(audience.publish("a", event("3")), true);
  assert.deepEqual(others.heard, ["1", "2"]);
});
