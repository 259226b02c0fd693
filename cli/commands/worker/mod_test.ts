import assert from "node:assert/strict";
import { InvocationError, type Json, type JsonObject } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { replicaStatus, workerStatus } from "../../../tests/fakes/samples.ts";

Deno.test("engine worker alone prints its commands and is not understood", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("worker"), 2);

  for (
    const command of ["add", "remove", "list", "status", "start", "stop", "restart", "logs", "exec"]
  ) {
    assert.match(terminal.errText, new RegExp(`^ {2}${command}[ |]`, "m"));
  }
});

const math = workerStatus({ log_path: "/p.log", since_ms: 1_699_999_999_000 });

/** An engine with one worker that reports `states` one after the other; the last one stays. */
function setup(states: JsonObject[] = [{}], interruptMs = Infinity): FakeTerminal {
  const remaining = [...states];
  const plain = math as unknown as JsonObject;
  const answer = (): Json => {
    return { ...plain, ...remaining.length > 1 ? remaining.shift() : remaining[0] };
  };
  const terminal: FakeTerminal = new FakeTerminal({
    onWait: (nowMs) => nowMs >= 1_000 + interruptMs && terminal.interrupt(),
    functions: {
      "engine::supervisor::logs": () => ({ lines: [] }),
      "engine::supervisor::list": () => ({ workers: [answer()] }),
      "engine::supervisor::status": ({ name }) => {
        if (name === "math") return answer();
        const message = `There is no worker ${name}; there are: math`;
        throw new InvocationError({ code: "NOT_FOUND", message }, "engine::supervisor::status");
      },
      "engine::supervisor::start": () => plain,
      "engine::supervisor::stop": () => plain,
      "engine::supervisor::restart": () => plain,
      "engine::supervisor::remove": () => ({ config_path: "/p/config.yaml" }),
    },
  });
  return terminal;
}

Deno.test("worker list is a table, and JSON on one line with --json", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "list"), 0);
  assert.equal(await terminal.run("worker", "list", "--json"), 0);

  assert.match(
    terminal.outLines[0]!,
    /^NAME +STATE +SINCE +READY +PID +RESTARTS +FUNCS +MEMORY +CPU% +ISOLATION$/,
  );
  assert.match(terminal.outLines[1]!, /^math +ready +2s +1\/1 +42 +0 +1 +- +- +process$/);
  assert.deepEqual(JSON.parse(terminal.outLines[2]!), [math]);
  assert.equal(terminal.outLines.length, 3);
});

Deno.test("worker status has one property per line, and --json is one line", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "status", "math"), 0);
  assert.equal(await terminal.run("worker", "status", "math", "--json"), 0);

  assert.equal(terminal.outLines[0], "math");
  const status = JSON.parse(terminal.outLines.at(-1)!);
  assert.deepEqual(status, { ...math, inactive_triggers: [], handlers: [] });
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

Deno.test("worker start of a running worker reports that it is ready", async () => {
  assert.equal(await setup().run("worker", "start", "math"), 0);
});

Deno.test("worker stop waits until the worker has ended", async () => {
  const terminal = setup([{ state: "stopping" }, { state: "stopped", last_exit: "SIGTERM" }]);

  assert.equal(await terminal.run("worker", "stop", "math"), 0);
  assert.deepEqual(terminal.outLines, ["math is stopped (SIGTERM)"]);
});

Deno.test("worker restart waits for the next start, and --force reinstalls", async () => {
  const replicas = [replicaStatus({ started_at_ms: 9 })] as unknown as Json;
  const terminal = setup([{ launch: 4 }, { launch: 4 }, { launch: 5, pid: 43, replicas }]);

  assert.equal(await terminal.run("worker", "restart", "math", "--force"), 0);

  const restart = terminal.calls.find(({ function_id }) => function_id.endsWith("::restart"))!;
  assert.deepEqual(restart.payload, { name: "math", reinstall: true });
  assert.deepEqual(terminal.outLines, ["math is ready: pid 43, 900 ms, math::add"]);
});

Deno.test("worker restart of replicas waits until all are new", async () => {
  const made = (...started: number[]) =>
    started.map((started_at_ms, i) =>
      replicaStatus({ number: i + 1, started_at_ms })
    ) as unknown as Json;
  const terminal = setup([
    { replicas: made(1, 1) },
    { launch: 2, replicas: made(5, 1) },
    { launch: 3, replicas: made(5, 7) },
  ]);

  assert.equal(await terminal.run("worker", "restart", "math"), 0);
  assert.equal(terminal.now(), 1_100);
});

for (const command of ["start", "restart", "stop"]) {
  Deno.test(`worker ${command} that takes too long ends with 3`, async () => {
    const terminal = setup([{ state: "stopping" }]);

    assert.equal(await terminal.run("worker", command, "math", "--timeout", "1s"), 3);
    assert.equal(
      terminal.errLines.at(-1),
      "error: math is still stopping after 1.0 s; see: engine worker status math",
    );
  });

  Deno.test(`worker ${command} after Ctrl-C notes that the engine continues; 130`, async () => {
    const terminal = setup([{ state: "stopping" }], 500);

    assert.equal(await terminal.run("worker", command, "math"), 130);
    assert.match(
      terminal.errText,
      /interrupted; the engine continues with math; see: engine worker/,
    );
    assert.equal(terminal.openConnections, 0);
    assert.equal(terminal.interruptListeners, 0);
  });

  Deno.test(`worker ${command} with --timeout 0 does not wait`, async () => {
    const terminal = setup([{ state: "stopping" }]);

    assert.equal(await terminal.run("worker", command, "math", "--timeout", "0"), 0);
    assert.deepEqual(terminal.outLines, ["math is stopping; see: engine worker status math"]);
  });

  Deno.test(`worker ${command} with an invalid time is not understood`, async () => {
    const terminal = setup();

    assert.equal(await terminal.run("worker", command, "math", "--timeout", "1y"), 2);
    assert.deepEqual(terminal.addresses, []);
  });
}

for (const command of ["start", "restart"]) {
  Deno.test(`worker ${command} of a worker that fails ends with 1 and its last lines`, async () => {
    const failed = { state: "failed", launch: 2, reason: "no luck", tail: ["boom"] };
    const terminal = setup([{ state: "failed" }, failed]);

    assert.equal(await terminal.run("worker", command, "math"), 1);
    assert.deepEqual(terminal.errLines, [
      "  | boom",
      "error: math failed: no luck; all it printed: engine worker logs math",
    ]);
  });
}

Deno.test("worker remove names the file", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "remove", "math"), 0);
  assert.deepEqual(terminal.outLines, ["math removed from /p/config.yaml"]);
});

for (const command of ["status", "start", "stop", "restart"]) {
  Deno.test(`worker ${command} of an unknown worker names the known ones`, async () => {
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
