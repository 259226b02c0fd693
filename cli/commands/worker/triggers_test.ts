import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { type InactiveTrigger, renderInactiveTriggers } from "./triggers.ts";

const PARKED: InactiveTrigger = {
  id: "t1",
  trigger_type: "htp",
  function_id: "py::hello",
  worker_name: "announced-otherwise",
  worker_id: "w1",
  status: "parked",
  reason: "no worker provides the trigger type htp; did you mean http?",
};
const OF_ANOTHER: InactiveTrigger = { ...PARKED, id: "t2", worker_id: "w9" };

function setup(triggers: readonly InactiveTrigger[]): FakeTerminal {
  const asked = (payload: JsonObject): Json => {
    assert.deepEqual(payload, { status: "inactive", limit: 1_000, include_internal: true });
    return { registered_triggers: triggers as unknown as Json };
  };
  return new FakeTerminal({
    functions: { ...scriptedWorkers({ py: {} }), "engine::registered-triggers::list": asked },
  });
}

const LINE = "trigger htp of py::hello is parked: no worker provides the trigger type htp; " +
  "did you mean http?";

Deno.test("worker add says which triggers of the worker do not fire, and still succeeds", async () => {
  const terminal = setup([PARKED, OF_ANOTHER]);

  assert.equal(await terminal.run("worker", "add", "./workers/py"), 0);

  assert.equal(terminal.errLines.at(-1), `py  ${LINE}`);
  assert.equal(terminal.errLines.filter((line) => line.includes("htp of")).length, 1);
  assert.deepEqual(terminal.outLines, ["py is ready: pid 42, 900 ms, math::add"]);
});

Deno.test("worker status shows triggers that do not fire, with --json as values", async () => {
  const terminal = setup([PARKED, OF_ANOTHER]);

  await terminal.run("worker", "status", "py");
  assert.ok(terminal.outLines.includes(`  ${LINE}`), terminal.outText);

  terminal.outLines.length = 0;
  await terminal.run("worker", "status", "py", "--json");
  const { inactive_triggers } = JSON.parse(terminal.outText);
  assert.deepEqual(inactive_triggers, [PARKED]);
});

Deno.test("an engine that cannot tell is no failure", async () => {
  const terminal = new FakeTerminal({ functions: scriptedWorkers({ py: {} }) });

  assert.equal(await terminal.run("worker", "add", "./workers/py"), 0);
  assert.equal(await terminal.run("worker", "status", "py"), 0);
});

Deno.test("equal triggers of replicas are one line, many triggers are cut, and nothing controls the terminal", () => {
  assert.deepEqual(renderInactiveTriggers([PARKED, { ...PARKED, id: "t3" }]), [LINE]);

  const many = Array.from({ length: 25 }, (_, i) => ({ ...PARKED, function_id: `py::f${i}` }));
  const lines = renderInactiveTriggers(many);
  assert.equal(lines.length, 21);
  assert.equal(lines.at(-1), "and 5 more triggers that do not fire; see: engine doctor");

  const [line] = renderInactiveTriggers([{ ...PARKED, reason: "no\u001b[2J" }]);
  assert.ok(!line!.includes("\u001b"));
});
