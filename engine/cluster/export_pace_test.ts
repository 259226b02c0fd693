import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { fakeRouter } from "../../tests/fakes/fake_router.ts";
import { ExportPace } from "./export_pace.ts";
import type { Link } from "./link.ts";
import { TriggerTimes } from "./trigger_times.ts";

/** `lookMs`: how long each look takes. */
function setup(lookMs = 0) {
  const clock = new FakeClock();
  const { router, open } = fakeRouter();
  const worker = open();
  const sent: string[] = [];
  const link = { send: (frame: string) => sent.push(frame) } as unknown as Link;
  let looks = 0;
  const pace = new ExportPace({
    clock,
    defer: (task) => void clock.after(0, task),
    directory: {
      functions() {
        looks++;
        clock.tick(lookMs);
        return router.directory.functions();
      },
      triggers: () => [],
      triggerTypes: () => [],
    },
    isEngine: () => false,
    isShared: () => false,
    namespace: "own",
    times: new TriggerTimes(() => 0),
  });
  const register = (id: string): void => worker.say({ type: "registerfunction", id });
  const change = (): void => pace.changed(() => [link]);
  return { clock, pace, link, sent, register, change, worker, looks: () => looks };
}

Deno.test("a new link gets everything, then what has changed, once for each tick", () => {
  const { clock, pace, link, sent, register, change, worker, looks } = setup();
  register("f");
  pace.begin(link);
  assert.deepEqual(sent.splice(0), ['{"type":"registerfunction","id":"f"}']);

  register("g");
  change();
  register("h");
  change();
  worker.say({ type: "unregisterfunction", id: "f" });
  change();
  clock.tick(0);

  assert.equal(looks(), 2);
  assert.deepEqual(sent, [
    '{"type":"registerfunction","id":"g"}',
    '{"type":"registerfunction","id":"h"}',
    '{"type":"unregisterfunction","id":"f"}',
  ]);
});

Deno.test("looks take at most a tenth of the time", () => {
  const { clock, looks, change } = setup(5);
  for (let i = 0; i < 1_000; i++) {
    change();
    clock.tick(1);
  }

  assert.ok(looks() > 15 && looks() < 25, `${looks()} looks`);
});

Deno.test("after stop() nothing is sent", () => {
  const { clock, pace, sent, register, change } = setup();
  register("f");
  change();
  pace.stop();
  clock.tick(100);
  change();
  clock.tick(100);

  assert.deepEqual(sent.length <= 1, true);
  assert.equal(clock.waiting, 0);
});
