/**
 * How the time of the thread is shared, on a clock and an event loop that the test moves.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Work } from "../ports/turns.ts";
import { LONG_MS, REST_MS, REST_MS_MAX, TICK_MS, TickBudget } from "./tick_budget.ts";

Deno.test("a connection alone starts at once, tick after tick", () => {
  const { ticks, loop, handle } = setup();

  for (let i = 0; i < 100; i++) {
    assert.equal(ticks.mayStart(ANYONE), true);
    assert.equal(handle(1, 0.01), 1);
    loop.tick();
  }
});

Deno.test("a flood stops after its share, and others that wait have theirs before it", () => {
  const { ticks, loop, handle, flood } = setup();
  const order: string[] = [];

  assert.equal(ticks.mayStart(ANYONE), true);
  assert.ok(handle(10_000, 0.01) <= 532, "alone it has a tick");
  ticks.queue(flood("flood", order));
  assert.equal(ticks.mayStart(ANYONE), false, "another connection waits");
  ticks.queue(flood("other", order));
  for (let i = 0; i < 200; i++) loop.tick();

  assert.ok(order.length > 4);
  assert.deepEqual(order.slice(0, 4), ["flood", "other", "flood", "other"]);
});

for (const floods of [1, 4, 16, 64]) {
  Deno.test(`a message waits for a tick or two while ${floods} connections flood`, () => {
    const { ticks, loop, flood } = setup();
    const order: string[] = [];
    for (let i = 0; i < floods; i++) ticks.queue(flood("flood", order));
    for (let i = 0; i < 500; i++) loop.tick();

    const since = loop.now;
    let servedAt = 0;
    ticks.queue({
      work: () => {
        servedAt = loop.now;
        return false;
      },
    });
    while (servedAt === 0) loop.tick();

    assert.ok(servedAt - since <= Math.max(2 * TICK_MS, floods * 0.5), `${servedAt - since} ms`);
  });
}

Deno.test("the sockets are polled when a tick's time is used up: 62 ticks do nothing else", () => {
  const { ticks, loop, flood } = setup();
  ticks.queue(flood("flood", []));
  const runs: number[] = [];

  for (let i = 0; i < 1_000; i++) {
    const before = loop.now;
    loop.tick();
    if (loop.now > before) runs.push(i);
  }

  const gaps = runs.slice(1).map((tick, i) => tick - runs[i]!).filter((gap) => gap > 1);
  assert.ok(gaps.length > 2);
  assert.deepEqual([...new Set(gaps)], [63]);
});

Deno.test("messages that take long are found to take long after the first of them", () => {
  const { ticks, loop, handle } = setup();

  ticks.mayStart(ANYONE);
  handle(1_000, 0.001);
  loop.tick();
  ticks.mayStart(ANYONE);
  assert.ok(handle(100, 10) <= 32);
  loop.polled();
  assert.equal(ticks.mayStart(ANYONE), false);
  ticks.queue({ work: () => (assert.equal(handle(100, 10), 1), false) });
  loop.polled();
});

Deno.test("messages for workers in this process end a share: they are handled behind it", () => {
  const { ticks, loop } = setup();
  const run = (messages: number): number => {
    for (let done = 1; done <= messages; done++) {
      ticks.defer();
      if (--ticks.credit <= 0 && ticks.isSpent()) return done;
    }
    return messages;
  };

  ticks.mayStart(ANYONE);
  assert.equal(run(1_000), 32);
  loop.now += 32; // What the worker takes.
  loop.tick();
  ticks.queue({ work: () => (assert.equal(run(1_000), 2, "1 ms each"), false) });
  loop.polled();
});

Deno.test("what is due at the end of a tick is done before the queue goes on", () => {
  const { ticks, loop } = setup();
  const log: string[] = [];

  ticks.queue({ work: () => (log.push("work"), false) });
  ticks.atTickEnd(() => log.push("flush"));
  loop.tick();

  assert.deepEqual(log, ["flush", "work"]);
});

Deno.test("a message of a peer that sends little goes before 64 floods, however long a round is", () => {
  const { ticks, loop, flood } = setup();
  for (let i = 0; i < 64; i++) ticks.queue(flood("flood", []));
  for (let i = 0; i < 500; i++) loop.tick();
  const waits: number[] = [];

  for (let i = 0; i < 50; i++) {
    const since = loop.now;
    let servedAt = 0;
    ticks.queue({ work: () => (servedAt = loop.now, false) });
    while (servedAt === 0) loop.tick();
    waits.push(servedAt - since);
    loop.polled();
  }

  assert.ok(Math.max(...waits) <= TICK_MS + 0.5, `${Math.max(...waits)} ms`);
});

Deno.test("a flood that waits anew for each of its reads has no more shares than the others", () => {
  const { ticks, loop, handle, flood } = setup();
  const order: string[] = [];
  for (let i = 0; i < 63; i++) ticks.queue(flood("flood", order));
  let isDue = true;
  const again: Work = {
    work: () => {
      order.push("again");
      handle(1_000, 0.002);
      return !(isDue = true);
    },
  };

  for (let i = 0; i < 1_000; i++) {
    if (isDue) ticks.queue(again);
    isDue = false;
    loop.polled();
  }

  const shares = order.filter((name) => name === "again").length;
  assert.ok(shares > 10 && shares <= order.length / 64 + 1, `${shares} of ${order.length}`);
});

Deno.test("peers that send now and then do not starve those that send without end", () => {
  const { ticks, loop, handle, flood } = setup();
  const order: string[] = [];
  ticks.queue(flood("flood", order));
  loop.polled();
  order.length = 0;

  for (let i = 0; i < 100; i++) {
    for (let j = 0; j < 10; j++) ticks.queue({ work: () => (handle(100, 0.05), false) });
    loop.polled();
  }

  assert.ok(order.length >= 50, `${order.length} shares in 100 ticks`);
});

Deno.test("work of which no peer waits goes behind what came after it", () => {
  const { ticks, loop } = setup();
  const order: string[] = [];
  const once = (name: string): Work => ({ work: () => (order.push(name), false) });

  ticks.queueLast(once("end of a connection"));
  ticks.queue(once("message"));
  loop.polled();

  assert.deepEqual(order, ["message", "end of a connection"]);
});

Deno.test("work rests after a long message, so that calls take several steps in between", () => {
  const { ticks, loop } = setup();
  const order: string[] = [];
  let messages = 3;
  const long: Work = {
    work: () => {
      order.push("long");
      loop.now += LONG_MS;
      return --messages > 0;
    },
  };
  const steps = (name: string, left: number): Work => ({
    work() {
      order.push(`${name} ${left}`);
      if (left > 1) ticks.queue(steps(name, left - 1));
      return false;
    },
  });

  ticks.queue(long);
  loop.polled();
  ticks.queue(steps("call", 3));
  loop.polled();
  loop.polled();
  assert.deepEqual(order, ["long", "call 3", "call 2", "call 1"]);
  loop.passes(REST_MS);
  loop.polled();

  assert.deepEqual(order.slice(4), ["long"]);
});

Deno.test("a message that is known to take long is the last before the clock is asked", () => {
  const { ticks, loop, handle } = setup();
  ticks.mayStart(ANYONE);
  handle(100, 0.001);
  loop.polled();
  ticks.mayStart(ANYONE);
  assert.ok(ticks.credit > 1);

  loop.now += LONG_MS;
  ticks.look();

  assert.ok(ticks.credit <= 0 && ticks.isSpent());
});

Deno.test("a connection whose messages are long rests between its reads, too", () => {
  const { ticks, loop } = setup();
  const served: string[] = [];
  const connection: Work = { work: () => (served.push("it"), false) };
  const other: Work = { work: () => (served.push("another"), false) };

  assert.equal(ticks.mayStart(connection), true);
  loop.now += LONG_MS;
  loop.polled();
  assert.equal(ticks.mayStart(connection), false);
  ticks.queue(connection);
  ticks.queue(other);
  loop.polled();
  assert.deepEqual(served, ["another"]);
  loop.passes(REST_MS);
  loop.polled();

  assert.deepEqual(served, ["another", "it"]);
  assert.equal(ticks.mayStart(connection), true);
});

Deno.test("the connection whose message was long rests, not the one that started last", () => {
  const { ticks, loop } = setup();
  const served: string[] = [];
  const long: Work = { work: () => (served.push("long"), false) };
  const other: Work = { work: () => (served.push("other"), false) };

  assert.equal(ticks.mayStart(long), true);
  loop.now += LONG_MS;
  assert.equal(ticks.mayStart(other), true, "in the same tick");
  loop.polled();
  ticks.queue(long);
  ticks.queue(other);
  loop.polled();
  assert.deepEqual(served, ["other"]);
  loop.passes(REST_MS);
  loop.polled();

  assert.deepEqual(served, ["other", "long"]);
});

Deno.test("a connection that has to rest does so though others had turns meanwhile", () => {
  const { ticks, loop } = setup();
  const served: string[] = [];
  const long: Work = { work: () => (served.push("long"), false) };
  const other: Work = { work: () => (served.push("other"), false) };

  ticks.mayStart(long);
  loop.now += LONG_MS;
  loop.polled();
  ticks.queue(other);
  loop.polled();
  ticks.queue(long);
  loop.polled();
  assert.deepEqual(served, ["other"]);
});

Deno.test("so does a connection whose long message was the last one of a read in its turn", () => {
  const { ticks, loop } = setup();
  let messages = 0;
  const long: Work = { work: () => (loop.now += LONG_MS, messages++, false) };

  ticks.queue(long);
  loop.polled();
  assert.equal(ticks.mayStart(long), false);
  ticks.queue(long);
  loop.polled();
  assert.equal(messages, 1);
  loop.passes(REST_MS);
  loop.polled();

  assert.equal(messages, 2);
});

Deno.test("a connection rests that is long within one tick, in several reads or with more to come", () => {
  const { ticks, loop } = setup();
  let turns = 0;
  const long: Work = { work: () => (turns++, false) };

  assert.equal(ticks.mayStart(long), true);
  loop.now += LONG_MS / 2;
  assert.equal(ticks.mayStart(long), true);
  loop.now += LONG_MS / 2;
  ticks.queue(long);
  loop.polled();
  assert.equal(turns, 0);
  loop.passes(REST_MS);
  loop.polled();

  assert.equal(turns, 1);
});

Deno.test("a connection that waits for its turn does not rest for what ran meanwhile", () => {
  const { ticks, loop } = setup();
  let turns = 0;
  const waiting: Work = { work: () => (turns++, false) };

  ticks.mayStart(waiting);
  ticks.queue(waiting);
  loop.now += LONG_MS;
  loop.polled();

  assert.equal(turns, 1);
});

Deno.test("a connection rests longer after a longer message, up to a bound", () => {
  for (const [usedMs, restMs] of [[LONG_MS, REST_MS], [50, 10], [10_000, REST_MS_MAX]] as const) {
    const { ticks, loop } = setup();
    let turns = 0;
    const long: Work = { work: () => (turns++, false) };
    ticks.mayStart(long);
    loop.now += usedMs;
    ticks.queue(long);

    loop.passes(restMs - 1);
    loop.polled();
    assert.equal(turns, 0, `${usedMs} ms`);
    loop.passes(1);
    loop.polled();
    assert.equal(turns, 1, `${usedMs} ms`);
  }
});

Deno.test("a connection rests whose message a worker in this process handled for long", () => {
  const { ticks, loop } = setup();
  const turns: string[] = [];
  const work = (name: string, messages: number): Work => ({
    work() {
      turns.push(name);
      for (let i = 0; i < messages; i++) ticks.defer();
      return turns.length < 4;
    },
  });

  ticks.queue(work("long", 1));
  ticks.queue(work("other", 0));
  for (let i = 0; turns.length === 0; i++) loop.tick();
  loop.now += LONG_MS; // The worker in this process, behind both.
  loop.polled();

  assert.deepEqual(turns, ["long", "other", "other", "other"]);
});

const ANYONE: Work = { work: () => false };

/** An event loop whose time passes when messages are handled. */
class Loop {
  now = 1_000;
  #tasks: (() => void)[] = [];
  #timers: { readonly at: number; readonly task: () => void }[] = [];

  after(ms: number, task: () => void): void {
    this.#timers.push({ at: this.now + ms, task });
  }

  /** Time without work. */
  passes(ms: number): void {
    this.now += ms;
    const due = this.#timers.filter(({ at }) => at <= this.now);
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    for (const { task } of due) task();
  }

  atTickEnd(task: () => void): void {
    this.#tasks.push(task);
  }

  tick(): void {
    const tasks = this.#tasks;
    this.#tasks = [];
    for (const task of tasks) task();
  }

  /** As many ticks as it takes until the platform has polled its sockets. */
  polled(): void {
    for (let i = 0; i < 70; i++) this.tick();
  }
}

function setup() {
  const loop = new Loop();
  const ticks = new TickBudget({
    now: () => loop.now,
    atTickEnd: (task) => loop.atTickEnd(task),
    after: (ms, task) => loop.after(ms, task),
  });
  /** Handles messages until the time is spent; returns how many. */
  const handle = (messages: number, ms: number): number => {
    for (let done = 1; done <= messages; done++) {
      loop.now += ms;
      if (--ticks.credit <= 0 && ticks.isSpent()) return done;
    }
    return messages;
  };
  /** A connection whose peer sends without end. */
  const flood = (name: string, order: string[]): Work => ({
    work: () => {
      order.push(name);
      handle(1_000_000, 0.002);
      return true;
    },
  });
  return { ticks, loop, handle, flood };
}
