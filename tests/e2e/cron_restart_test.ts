/**
 * A cron trigger fires once for each second, also for those at which the engine was stopped, killed
 * or not there, and never twice.
 *
 * A kill between the write of a time and its call may lose that one time.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const SECOND = 1_000;
/** How the engine ends, and how many times it may lose by that. */
const ENDS = [["SIGTERM", 0], ["SIGKILL", 1], ["SIGKILL", 1]] as const;
/** Times that fire before each end, and after the last. */
const FIRED_BEFORE = 2;

Deno.test("a cron trigger fires once per second over a stop and two kills of the engine", async () => {
  await using engine = await EngineProcess.start("  - name: engine-cron\n");
  await using worker = engine.connect();
  const fired: number[] = [];
  worker.registerFunction("tick::tock", ({ scheduled_time }: { scheduled_time: string }) => {
    fired.push(Date.parse(scheduled_time));
  });
  const config = { expression: "* * * * * *", catch_up: "all", overlap: "allow" };
  worker.registerTrigger({ type: "cron", function_id: "tick::tock", config });
  const goOn = async () => {
    const enough = fired.length + FIRED_BEFORE;
    await until(() => fired.length >= enough, () => engine.stderr);
  };

  let losable = 0;
  for (const [signal, lost] of ENDS) {
    await goOn();
    losable += lost;
    await engine.kill(signal);
    const end = Date.now() + 2 * SECOND;
    await until(() => Date.now() >= end);
    await engine.start();
  }
  await goOn();

  const times = new Set(fired);
  assert.equal(times.size, fired.length, `fired twice: ${fired}`);
  const [first, last] = [Math.min(...fired), Math.max(...fired)];
  const lost = (last - first) / SECOND + 1 - times.size;
  assert.ok(lost >= 0 && lost <= losable, `${lost} of the times are lost: ${fired}`);
});
