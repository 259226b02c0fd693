import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { addOutput, outputTerminal } from "./output.ts";

const functions = [{ function_id: "math::add", worker_name: "math", description: "adds" }];

function setup(found: typeof functions = functions): FakeTerminal {
  return new FakeTerminal({
    functions: { "engine::functions::list": () => ({ functions: found }) },
  });
}

for (
  const [output, text] of [
    ["json", JSON.stringify(functions)],
    ["yaml", "- function_id: math::add\n  worker_name: math\n  description: adds"],
    ["table", "FUNCTION   WORKER  DESCRIPTION\nmath::add  math    adds"],
  ] as const
) {
  Deno.test(`engine functions --output ${output}`, async () => {
    const terminal = setup();

    assert.equal(await terminal.run("functions", "--output", output), 0);
    assert.equal(terminal.outText, text);
  });
}

Deno.test("--output wins over --json", async () => {
  const terminal = setup();

  await terminal.run("functions", "--json", "-o", "table");

  assert.match(terminal.outText, /^FUNCTION/);
});

Deno.test("several values are several YAML documents", async () => {
  const terminal = new FakeTerminal();
  const output = outputTerminal(terminal);
  const program = new Command("engine").exitOverride() as Command;
  program.command("follow").option("--json").action(() => {
    output.out('{"a":1}');
    output.out('{"a":2}');
  });
  addOutput(program, output);

  assert.equal(await terminal.runWith(program, "follow", "--output", "yaml"), 0);
  assert.equal(terminal.outText, "a: 1\n---\na: 2");
});

Deno.test("--quiet drops remarks, and keeps results and errors", async () => {
  const empty = setup([]);
  assert.equal(await empty.run("functions", "-q"), 0);
  assert.deepEqual(empty.errLines, []);

  const full = setup();
  assert.equal(await full.run("functions", "--quiet"), 0);
  assert.match(full.outText, /math::add/);

  const failing = new FakeTerminal();
  assert.equal(await failing.run("functions", "-q"), 1);
  assert.match(failing.errText, /function_not_found/);
});
