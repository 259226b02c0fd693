import assert from "node:assert/strict";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { staticGraph } from "../tests/fakes/source_tree.ts";
import { createProgram, HELP_GROUPS } from "./program.ts";

/** The part of a command that is read here. */
interface AnyCommand {
  name(): string;
  readonly commands: readonly AnyCommand[];
}

function pathsOf(command: AnyCommand, path: string[] = []): string[][] {
  return [path, ...command.commands.flatMap((child) => pathsOf(child, [...path, child.name()]))];
}

for (const path of pathsOf(await createProgram(new FakeTerminal()))) {
  const shown = ["engine", ...path].join(" ");

  Deno.test(`${shown} --help prints help with examples and ends with 0`, async () => {
    const terminal = new FakeTerminal();

    const code = await terminal.run(...path, "--help");

    assert.equal(code, 0);
    assert.match(terminal.outText, /^Usage: engine/);
    assert.match(terminal.outText, /Examples:\n {2}\S/);
    assert.deepEqual(terminal.errLines, []);
  });

  Deno.test(`${shown} --hlep is not understood, with a suggestion`, async () => {
    const terminal = new FakeTerminal();

    const code = await terminal.run(...path, "--hlep");

    assert.equal(code, 2);
    assert.match(terminal.errText, /unknown option '--hlep'\n\(Did you mean --help\?\)/);
    assert.deepEqual(terminal.outLines, []);
  });
}

Deno.test("engine --version prints the version alone", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("--version"), 0);
  assert.match(terminal.outText, /^\d+\.\d+\.\d+$/);
});

for (
  const [args, message] of [
    [["wroker", "list"], /unknown command 'wroker'\n\(Did you mean worker\?\)/],
    [["banana"], /unknown command 'banana'\nsee engine --help/],
    [["restart", "math"], /unknown command 'restart'[^]*Did you mean engine worker restart math\?/],
    [["worker", "trigger", "a::b"], /Did you mean engine trigger a::b\?/],
    [["worker", "list", "--output", "xml"], /Allowed choices are json, yaml, table/],
    [["worker", "ad", "./x"], /unknown command 'ad'\n\(Did you mean add\?\)/],
    [["worker", "add"], /missing required argument 'workers'/],
    [
      ["publish"],
      /argument 'topic'\nUsage: engine publish \[options\] <topic> \[data\]\nExamples: /,
    ],
    [["worker", "rm"], /Usage: engine worker remove \[options\] <name>/],
    [["trigger", "a::b", "--payloda=1"], /Did you mean --payload\?/],
    [["trigger", "a::b", "--payload"], /argument missing/],
    [["functions", "a", "b"], /too many arguments/],
    [["--port", "1", "worker", "list"], /--port is for starting the engine, not for worker/],
    [["--accept-empty-state", "ps"], /--accept-empty-state is for starting the engine, not for ps/],
    [["--accept-empty-state", "call"], /is for starting the engine, not for trigger/],
    [["--accept-empty-state", "wroker"], /unknown command 'wroker'\n\(Did you mean worker\?\)/],
    [["--port=1", "wroker"], /unknown command 'wroker'\n\(Did you mean worker\?\)/],
    [["--config"], /option '--config <file>' argument missing/],
    [["--port", "1", "wroker"], /unknown command 'wroker'\n\(Did you mean worker\?\)/],
  ] as const
) {
  Deno.test(`engine ${args.join(" ")} is not understood`, async () => {
    const terminal = new FakeTerminal();

    const code = await terminal.run(...args);

    assert.equal(code, 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(terminal.outLines, []);
    assert.deepEqual(terminal.calls, []);
  });
}

Deno.test("engine trigger evaluates commander and the SDK, and of the engine its key only", async () => {
  const entries = ["./main.ts", "./commands/trigger.ts", "./connect.ts"];
  const graphs = await Promise.all(
    entries.map((entry) => staticGraph(new URL(entry, import.meta.url))),
  );
  const modules = graphs.flat();

  assert.deepEqual(
    modules.filter((it) => /yaml|hono|ajv|\/engine\/(engine|project)\.ts|\/workers\//.test(it)),
    [],
  );
  assert.ok(modules.some((it) => it.includes("commander")), "commander is there");
});

for (
  const args of [
    [],
    ["--config", "config.yaml"],
    ["--config=config.yaml", "--port", "0", "--accept-empty-state"],
  ]
) {
  Deno.test(`engine ${args.join(" ")} keeps no command in the memory of the engine`, async () => {
    const program = await createProgram(new FakeTerminal(), args);

    assert.deepEqual(program.commands.map((command) => command.name()), []);
  });
}

Deno.test("every command is in one group of the help", async () => {
  const { commands } = await createProgram(new FakeTerminal());

  const grouped = Object.values(HELP_GROUPS).flat();
  assert.deepEqual(grouped.toSorted(), commands.map((command) => command.name()).sort());
});
