import assert from "node:assert/strict";
import { InvocationError, type JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const EXPLAIN = "engine::traces::explain";
const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";

function terminalThat(answer: () => JsonObject): FakeTerminal {
  return new FakeTerminal({ functions: { [EXPLAIN]: answer } });
}

function refusing(code: string, message: string): FakeTerminal {
  return terminalThat(() => {
    throw new InvocationError({ code, message }, EXPLAIN);
  });
}

Deno.test("why prints the sentences and nothing else", async () => {
  const terminal = terminalThat(() => ({ found: true, lines: ["a called b", "It succeeded"] }));

  assert.equal(await terminal.run("why", "i-1"), 0);

  assert.deepEqual(terminal.outLines, ["a called b", "It succeeded"]);
  assert.deepEqual(terminal.errLines, []);
  assert.deepEqual(terminal.calls[0]!.payload, { invocation_id: "i-1" });
  assert.equal(terminal.openConnections, 0);
});

Deno.test("why ends with the stack trace of the handler, if there is one", async () => {
  const stacktrace = "TypeError: no\n    at f (main.js:1)\u0007";
  const terminal = terminalThat(() => ({
    lines: ["It failed"],
    span: { name: "shop::f" },
    stacktrace,
  }));

  await terminal.run("why", "i-1");

  assert.deepEqual(terminal.outLines, [
    "It failed",
    "  Stack trace of shop::f:",
    "    TypeError: no",
    "        at f (main.js:1)",
  ]);
});

Deno.test("why --json prints everything on one line", async () => {
  const terminal = terminalThat(() => ({ found: true, lines: ["a"], replicas: [] }));

  assert.equal(await terminal.run("why", "i-1", "--json"), 0);
  assert.deepEqual(terminal.outLines, ['{"found":true,"lines":["a"],"replicas":[]}']);
});

Deno.test("why accepts a whole traceparent, as in HTTP responses", async () => {
  const terminal = terminalThat(() => ({ lines: [] }));

  await terminal.run("why", `00-${TRACE_ID}-b7ad6b7169203331-01`);

  assert.deepEqual(terminal.calls[0]!.payload, { invocation_id: TRACE_ID });
});

Deno.test("why reports for an unknown id how far back calls are known, and what to do", async () => {
  const terminal = refusing(
    "NOT_FOUND",
    "Nothing is recorded about i-1: recorded calls go back 5 s",
  );

  assert.equal(await terminal.run("why", "i-1"), 1);

  assert.match(
    terminal.errText,
    /^error: Nothing is recorded about i-1: .* go back 5 s; or call it/,
  );
  assert.deepEqual(terminal.outLines, []);
});

Deno.test("why gives no advice that cannot help while tracing is off", async () => {
  const terminal = refusing(
    "NOT_FOUND",
    "Nothing is recorded about i-1: tracing is off; turn it on",
  );

  assert.equal(await terminal.run("why", "i-1"), 1);

  assert.deepEqual(terminal.errLines, [
    "error: Nothing is recorded about i-1: tracing is off; turn it on",
  ]);
});

Deno.test("why removes control characters", async () => {
  const terminal = terminalThat(() => ({ lines: ["It failed with a: \u001b[2Jgone\u0007"] }));

  await terminal.run("why", "i-1");

  assert.deepEqual(terminal.outLines, ["It failed with a: gone"]);
});

Deno.test("why reports an engine without records", async () => {
  const terminal = refusing("function_not_found", `Function ${EXPLAIN} not found`);

  assert.equal(await terminal.run("why", "i-1"), 1);
  assert.match(terminal.errText, /engine-observability is stopped/);
});

Deno.test("why requires exactly one id", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("why"), 2);
  assert.equal(await terminal.run("why", "a", "b"), 2);
});
