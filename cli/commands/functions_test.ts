import assert from "node:assert/strict";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

function setup(functions: { function_id: string; worker_name: string; description?: string }[]) {
  return new FakeTerminal({ functions: { "engine::functions::list": () => ({ functions }) } });
}

Deno.test("functions are listed with their workers", async () => {
  const terminal = setup([
    { function_id: "math::add", worker_name: "math-worker", description: "Adds" },
    { function_id: "a::b", worker_name: "a" },
  ]);

  assert.equal(await terminal.run("functions"), 0);

  assert.deepEqual(terminal.outLines, [
    "FUNCTION   WORKER       DESCRIPTION",
    "math::add  math-worker  Adds",
    "a::b       a",
  ]);
  assert.deepEqual(terminal.calls[0]!.payload, { include_internal: false });
});

Deno.test("the search and --all are handed on, and --json is one line", async () => {
  const terminal = setup([{ function_id: "math::add", worker_name: "m" }]);

  await terminal.run("functions", "math", "--all", "--json");

  assert.deepEqual(terminal.calls[0]!.payload, { include_internal: true, search: "math" });
  assert.deepEqual(terminal.outLines, ['[{"function_id":"math::add","worker_name":"m"}]']);
});

Deno.test("an empty list is explained on standard error", async () => {
  const terminal = setup([]);

  assert.equal(await terminal.run("functions"), 0);
  assert.equal(await terminal.run("functions", "x"), 0);

  assert.deepEqual(terminal.outLines, []);
  assert.match(terminal.errLines[0]!, /No functions yet; add a worker with/);
  assert.equal(terminal.errLines[1], 'No function has "x" in its id');
});
