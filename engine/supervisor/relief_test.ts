import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeTraffic } from "../../tests/fakes/fake_traffic.ts";
import { Relief } from "./relief.ts";

function setup(runningCalls: number) {
  const clock = new FakeClock();
  const traffic = new FakeTraffic();
  traffic.runningCalls = runningCalls;
  const relief = new Relief({ clock, traffic });
  const hurry = new AbortController();
  /** Drains; says whether that is done. */
  const drain = (lines: string[], isComingBack = true) => {
    const drained = { isDone: false };
    void relief.drain(lines, isComingBack, hurry.signal).then(() => drained.isDone = true);
    return drained;
  };
  const turn = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 20) {
      clock.tick(20);
      for (let i = 0; i < 10; i++) await Promise.resolve();
    }
  };
  return { clock, traffic, relief, hurry, drain, turn };
}

Deno.test("Relief.drain() waits until the lines run no call any more", async () => {
  const { traffic, drain, turn, clock } = setup(2);
  const drained = drain(["c1", "c2"]);
  await turn(1_000);
  assert.equal(drained.isDone, false);

  traffic.handovers[0]!.runningCalls = 0;
  await turn(20);

  assert.equal(drained.isDone, true);
  assert.deepEqual(traffic.handovers[0]!.worker_ids, ["c1", "c2"]);
  assert.equal(traffic.handovers[0]!.isOver, false);
  assert.equal(clock.waiting, 0);
});

Deno.test("Relief.drain() waits for 10 s at most, and no longer than there is time", async () => {
  const slow = setup(1);
  const drained = slow.drain(["c1"]);
  await slow.turn(9_980);
  assert.equal(drained.isDone, false);
  await slow.turn(20);
  assert.equal(drained.isDone, true);

  const hurried = setup(1);
  const cut = hurried.drain(["c1"]);
  hurried.hurry.abort();
  await hurried.turn(20);
  assert.equal(cut.isDone, true);
  assert.equal(hurried.clock.waiting, 0);
});

Deno.test("Relief.drain() of no line asks nothing of the core", async () => {
  const { traffic, relief, hurry } = setup(1);

  await relief.drain([], true, hurry.signal);

  assert.deepEqual(traffic.handovers, []);
});

Deno.test("Relief.expect() makes calls wait that would have failed, once", () => {
  const { traffic, relief, drain } = setup(1);
  relief.expect();
  drain(["c1"], false);

  relief.expect();
  relief.expect();

  const asked = traffic.handovers.map(({ worker_ids, isComingBack }) => [worker_ids, isComingBack]);
  assert.deepEqual(asked, [[["c1"], false], [["c1"], true]]);
});

Deno.test("Relief.end() ends every handover, and then none is left", () => {
  const { traffic, relief, drain } = setup(1);
  drain(["c1"], false);
  relief.expect();

  relief.end();
  relief.expect();

  assert.deepEqual(traffic.handovers.map(({ isOver }) => isOver), [true, true]);
});
