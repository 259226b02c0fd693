import assert from "node:assert/strict";
import {
  announce,
  answer,
  call,
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  handed,
} from "../../tests/fakes/fake_router.ts";
import {
  BUILTIN_DRAINED_CALLS,
  BUILTIN_FULL_CALLS,
  BUSY_CALLS,
  CALLEE_FULL_BYTES,
  CALLEE_WAIT_MS,
} from "./back_pressure.ts";

interface Setup {
  readonly engine: FakeRouter;
  readonly worker: FakeWorker;
  readonly callers: readonly FakeWorker[];
}

function setup(): Setup {
  const engine = fakeRouter();
  const worker = engine.open();
  announce(worker);
  worker.say({ type: "registerfunction", id: "slow::run" });
  const callers = [engine.open(), engine.open()];
  return { engine, worker, callers };
}

function sendCall(caller: FakeWorker, id: string): void {
  call(caller, id, { function_id: "slow::run" });
}

const paused = ({ callers }: Pick<Setup, "callers">): boolean[] =>
  callers.map(({ connection }) => connection.paused);

Deno.test("a callee with less unsent data than the limit pauses no caller", () => {
  const all = setup();
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES;

  sendCall(all.callers[0]!, "1");

  assert.deepEqual(paused(all), [false, false]);
  assert.equal(all.engine.clock.waiting, 1); // The deadline of the call.
});

Deno.test("callers of a slow callee are paused until it has caught up", () => {
  const all = setup();
  const [first, second] = all.callers;
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;

  sendCall(first!, "1");
  assert.deepEqual(paused(all), [true, false]);
  sendCall(second!, "1");
  assert.deepEqual(paused(all), [true, true]);
  all.worker.connection.queuedBytes = 0;
  all.worker.events.drained();

  assert.deepEqual(paused(all), [false, false]);
  assert.equal(handed(all.worker).length, 2);
});

Deno.test("callers are paused for a slow callee once and for a limited time", () => {
  const all = setup();
  const [first] = all.callers;
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  sendCall(first!, "1");

  all.engine.clock.tick(CALLEE_WAIT_MS - 1);
  assert.deepEqual(paused(all), [true, false]);
  all.engine.clock.tick(1);
  assert.deepEqual(paused(all), [false, false]);
  sendCall(first!, "2");
  assert.deepEqual(paused(all), [false, false]);

  all.worker.events.drained();
  sendCall(first!, "3");
  assert.deepEqual(paused(all), [true, false]);
});

Deno.test("callers are resumed when a slow callee disconnects", () => {
  const all = setup();
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  sendCall(all.callers[0]!, "1");

  all.worker.cut();

  assert.deepEqual(paused(all), [false, false]);
  assert.equal(all.engine.clock.waiting, 1); // The timer of the call's deadline.
});

Deno.test("a paused caller that disconnects is forgotten", () => {
  const all = setup();
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  for (const caller of all.callers) sendCall(caller, "1");

  all.callers[0]!.cut();
  all.worker.events.drained();

  assert.deepEqual(paused(all), [true, false]);
});

Deno.test("a caller that does not read its results either resumes after both reasons have ended", () => {
  const all = setup();
  const [first] = all.callers;
  sendCall(first!, "1");
  const [running] = handed(all.worker);
  first!.connection.queuedBytes = CALLEE_FULL_BYTES;
  const { invocation_id } = running!;
  all.worker.say({ type: "invocationresult", invocation_id, function_id: "slow::run", result: 1 });
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  sendCall(first!, "2");

  all.worker.events.drained();
  assert.deepEqual(paused(all), [true, false]);
  first!.events.drained();
  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("a worker that calls itself, and one whose transport cannot pause, are not paused", () => {
  const all = setup();
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  all.callers[0]!.connection.canPause = false;

  sendCall(all.worker, "1");
  sendCall(all.callers[0]!, "1");

  assert.equal(all.worker.connection.paused, false);
  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("an engine that stops waits for no slow callee", () => {
  const all = setup();
  all.worker.connection.queuedBytes = CALLEE_FULL_BYTES + 1;
  sendCall(all.callers[0]!, "1");

  all.engine.router.close();

  assert.equal(all.engine.clock.waiting, 0);
});

/** A built-in worker with as many open calls as it may have before callers are paused. */
function setupBuiltin(name: string | null = "engine-state") {
  const engine = fakeRouter();
  const worker = engine.open({ builtin: name });
  worker.say({ type: "registerfunction", id: "state::set" });
  const callers = [engine.open(), engine.open()];
  sendMany(engine.open(), BUILTIN_FULL_CALLS);
  return { engine, worker, callers, open: handed(worker).map((each) => each.invocation_id) };
}

function sendMany(caller: FakeWorker, count: number, first = 0): void {
  for (let i = 0; i < count; i++) call(caller, `${first + i}`, { function_id: "state::set" });
}

Deno.test("callers with many calls of a full built-in worker are paused until it has drained", () => {
  const all = setupBuiltin();
  const [busy, other] = all.callers;

  sendMany(busy!, BUSY_CALLS);
  assert.deepEqual(paused(all), [false, false]);
  sendMany(busy!, 1, BUSY_CALLS);
  sendMany(other!, BUSY_CALLS);
  assert.deepEqual(paused(all), [true, false]);

  const open = [...all.open, ...handed(all.worker).map((each) => each.invocation_id)];
  const rest = open.splice(0, open.length - BUILTIN_DRAINED_CALLS - 1);
  for (const id of rest) answer(all.worker, id);
  assert.deepEqual(paused(all), [true, false]);
  answer(all.worker, open[0]!);
  assert.deepEqual(paused(all), [false, false]);
  sendMany(busy!, BUSY_CALLS + 1, 1_000);
  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("open calls of a worker that is not built in pause no caller", () => {
  const all = setupBuiltin(null);

  sendMany(all.callers[0]!, BUSY_CALLS + 1);

  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("callers are paused for a full built-in worker once and for a limited time", () => {
  const all = setupBuiltin();
  const [busy] = all.callers;
  sendMany(busy!, BUSY_CALLS + 1);

  all.engine.clock.tick(CALLEE_WAIT_MS - 1);
  assert.deepEqual(paused(all), [true, false]);
  all.engine.clock.tick(1);
  assert.deepEqual(paused(all), [false, false]);
  sendMany(busy!, 2 * BUSY_CALLS, 1_000);

  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("a caller that executes a call of the full built-in worker is not paused", () => {
  const all = setupBuiltin();
  const [busy] = all.callers;
  busy!.say({ type: "registerfunction", id: "busy::run" });
  call(all.worker, "1", { function_id: "busy::run" });

  sendMany(busy!, 2 * BUSY_CALLS + 2);
  assert.deepEqual(paused(all), [false, false]);

  answer(busy!, handed(busy!)[0]!.invocation_id);
  sendMany(busy!, BUSY_CALLS, 1_000);
  assert.deepEqual(paused(all), [false, false]);
  sendMany(busy!, 1, 2_000);
  assert.deepEqual(paused(all), [true, false]);
});

Deno.test("a caller paused for a built-in worker is resumed when that calls it", () => {
  const all = setupBuiltin();
  const [busy] = all.callers;
  busy!.say({ type: "registerfunction", id: "busy::run" });
  sendMany(busy!, BUSY_CALLS + 1);
  assert.deepEqual(paused(all), [true, false]);

  call(all.worker, "1", { function_id: "busy::run" });
  assert.deepEqual(paused(all), [false, false]);
  sendMany(busy!, BUSY_CALLS + 1, 1_000);

  assert.deepEqual(paused(all), [false, false]);
});

Deno.test("a caller paused for a built-in worker that disconnects is forgotten", () => {
  const all = setupBuiltin();
  for (const caller of all.callers) sendMany(caller, BUSY_CALLS + 1);

  all.callers[0]!.cut();
  all.worker.cut();

  assert.deepEqual(paused(all), [true, false]);
});

Deno.test("a full built-in worker that disconnects resumes its callers", () => {
  const all = setupBuiltin();
  sendMany(all.callers[0]!, BUSY_CALLS + 1);

  all.worker.cut();

  assert.deepEqual(paused(all), [false, false]);
  assert.equal(all.engine.clock.waiting, 1); // The timer of the deadlines.
});

Deno.test("a caller paused for both reasons resumes after both have ended, in either order", () => {
  for (const isDrainedFirst of [true, false]) {
    const all = setupBuiltin();
    const [busy] = all.callers;
    const { connection, events } = all.worker;
    connection.queuedBytes = CALLEE_FULL_BYTES + 1;
    sendMany(busy!, BUSY_CALLS + 1);
    connection.queuedBytes = 0;
    const answerAll = () => all.open.forEach((id) => answer(all.worker, id));
    const ends = [() => events.drained(), answerAll];
    if (!isDrainedFirst) ends.reverse();

    ends[0]!();
    assert.deepEqual(paused(all), [true, false]);
    ends[1]!();
    assert.deepEqual(paused(all), [false, false]);
  }
});
