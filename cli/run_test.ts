/**
 * What a command line loads: that of `engine trigger` must stay small.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { wholeGraph } from "../tests/fakes/module_graph.ts";
import { runCommandLine } from "./run.ts";

Deno.test("engine trigger reads neither the parser nor the engine", async () => {
  const modules = await wholeGraph(new URL("./main.ts", import.meta.url));

  assert.deepEqual(
    modules.filter((it) =>
      /commander|\byaml|hono|ajv|\/engine\/(?!auth\/user_key)|\/workers\//.test(it)
    ),
    [],
  );
  assert.ok(modules.some((it) => it.endsWith("/cli/commands/trigger.ts")), "trigger.ts is read");
  // 55 today; each takes a quarter of a millisecond of every command.
  assert.ok(modules.length < 75, `${modules.length} modules`);
});

Deno.test("a plain command line fails in the words of any other", async () => {
  for (const args of [["trigger"], ["trigger", "--json"], ["--log-level", "loud"]]) {
    const terminal = new FakeTerminal();

    assert.equal(await runCommandLine(args, terminal), 2);
    assert.match(terminal.errText, /^error: /);
  }
});

Deno.test("a command that is over in a moment asks for a short line, another one does not", async () => {
  const terminal = new FakeTerminal({ functions: { "a::b": () => 1 } });

  await runCommandLine(["trigger", "a::b"], terminal);
  await runCommandLine(["trigger", "a::b", "--timeout-ms", "3600000"], terminal);

  assert.deepEqual(terminal.addresses.map(({ isShort }) => isShort), [true, false]);
});
