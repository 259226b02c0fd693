import assert from "node:assert/strict";
import { InvocationError, type JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const math = {
  name: "math",
  kind: "directory",
  state: "ready",
  reason: null,
  path: "/p/math",
  isolation: "process",
  pid: 42,
  functions: ["math::add"],
  restarts: 0,
  started_at_ms: 1_699_999_999_000,
  ready_after_ms: 900,
  last_exit: null,
  dependencies: "none",
  launch: 1,
  tail: [],
  log_path: "/p.log",
};

/** An engine with one worker; `states` are told one after the other, the last one for good. */
function setup(states: JsonObject[] = [{}]) {
  const remaining = [...states];
  const answer = () => ({ ...math, ...remaining.length > 1 ? remaining.shift() : remaining[0] });
  return new FakeTerminal({
    functions: {
      "engine::supervisor::list": () => ({ workers: [answer()] }),
      "engine::supervisor::status": ({ name }) => {
        if (name === "math") return answer();
        const message = `There is no worker ${name}; there are: math`;
        throw new InvocationError({ code: "NOT_FOUND", message }, "engine::supervisor::status");
      },
      "engine::supervisor::start": () => ({ ...math }),
      "engine::supervisor::stop": () => ({ ...math }),
      "engine::supervisor::restart": () => ({ ...math }),
      "engine::supervisor::remove": () => ({ config_path: "/p/config.yaml" }),
    },
  });
}

Deno.test("worker list is a table, and JSON on one line with --json", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "list"), 0);
  assert.equal(await terminal.run("worker", "list", "--json"), 0);

  assert.match(terminal.outLines[0]!, /^NAME +STATE +PID +UP/);
  assert.match(terminal.outLines[1]!, /^math +ready +42 +2\.0 s/);
  assert.deepEqual(JSON.parse(terminal.outLines[2]!), [math]);
  assert.equal(terminal.outLines.length, 3);
});

Deno.test("worker status is one fact a line, and JSON on one line with --json", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "status", "math"), 0);
  assert.equal(await terminal.run("worker", "status", "math", "--json"), 0);

  assert.equal(terminal.outLines[0], "math");
  assert.deepEqual(JSON.parse(terminal.outLines.at(-1)!), math);
});

Deno.test("worker start waits until the worker is ready", async () => {
  const terminal = setup([
    { state: "stopped" },
    { state: "stopped" },
    { state: "starting", launch: 2 },
    { launch: 2 },
  ]);

  assert.equal(await terminal.run("worker", "start", "math"), 0);
  assert.deepEqual(terminal.outLines, ["math is ready: pid 42, 900 ms, math::add"]);
});

Deno.test("worker start of one that runs says that it is ready", async () => {
  assert.equal(await setup().run("worker", "start", "math"), 0);
});

Deno.test("worker stop waits until the worker has ended", async () => {
  const terminal = setup([{ state: "stopping" }, { state: "stopped", last_exit: "SIGTERM" }]);

  assert.equal(await terminal.run("worker", "stop", "math"), 0);
  assert.deepEqual(terminal.outLines, ["math is stopped (SIGTERM)"]);
});

Deno.test("worker restart waits for the next start, and --force installs anew", async () => {
  const terminal = setup([{ launch: 4 }, { launch: 4 }, { launch: 5, pid: 43 }]);

  assert.equal(await terminal.run("worker", "restart", "math", "--force"), 0);

  const restart = terminal.calls.find(({ function_id }) => function_id.endsWith("::restart"))!;
  assert.deepEqual(restart.payload, { name: "math", reinstall: true });
  assert.deepEqual(terminal.outLines, ["math is ready: pid 43, 900 ms, math::add"]);
});

Deno.test("worker remove says from which file", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "remove", "math"), 0);
  assert.deepEqual(terminal.outLines, ["math removed from /p/config.yaml"]);
});

for (const command of ["status", "start", "restart"]) {
  Deno.test(`worker ${command} of an unknown worker names those there are`, async () => {
    const terminal = setup();

    assert.equal(await terminal.run("worker", command, "mth"), 1);
    assert.deepEqual(terminal.errLines, [
      "error: NOT_FOUND: There is no worker mth; there are: math",
    ]);
  });
}

for (const command of ["status", "start", "stop", "restart", "remove", "logs"]) {
  Deno.test(`worker ${command} without a name is not understood`, async () => {
    const terminal = setup();

    assert.equal(await terminal.run("worker", command), 2);
    assert.match(terminal.errText, /missing required argument 'name'/);
  });
}
