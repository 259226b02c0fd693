import assert from "node:assert/strict";
import { InvocationError, type Json, type JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";

const ready = {
  name: "math-worker",
  kind: "directory",
  state: "ready",
  reason: null,
  isolation: "process",
  pid: 42,
  functions: ["math::add"],
  restarts: 0,
  started_at_ms: 0,
  ready_after_ms: 2_800,
  last_exit: null,
  dependencies: "installed",
  launch: 1,
  tail: [],
  log_path: "/p.log",
};

interface Options {
  readonly added?: boolean;
  readonly changed?: boolean;
  readonly refusal?: Error;
}

/** An engine that adds what it is told to, whose worker then goes through these states. */
function setup(states: JsonObject[] = [], options: Options = {}) {
  const remaining = [...states];
  const endpoints = [{ name: "workers", url: "ws://127.0.0.1:49134" }];
  return new FakeTerminal({
    files: { "plain/engine.worker.yaml": "" },
    functions: {
      "engine::supervisor::add": () => {
        if (options.refusal) throw options.refusal;
        const { added = true, changed = false } = options;
        endpoints.push({ name: "http", url: "http://127.0.0.1:3111" });
        return {
          added,
          changed,
          config_path: "/project/config.yaml",
          worker: { ...ready } as Json,
        };
      },
      "engine::supervisor::logs": () => ({ lines: [] }),
      "engine::supervisor::info": () => ({ endpoints: [...endpoints] }),
      "engine::supervisor::status": () => ({ ...ready, ...remaining.shift() }),
    },
  });
}

function requestOf(terminal: FakeTerminal): Json {
  return terminal.calls.find(({ function_id }) => function_id.endsWith("::add"))!.payload;
}

Deno.test("worker add says where it was added, how far it is, and ends with one line", async () => {
  const terminal = setup([
    { state: "installing", dependencies: null },
    { state: "installing", dependencies: null },
    { state: "installing", dependencies: null },
    { state: "starting" },
    { state: "ready" },
  ]);

  assert.equal(await terminal.run("worker", "add", "./workers/math-worker"), 0);

  assert.deepEqual(terminal.errLines, [
    "math-worker  added to /project/config.yaml",
    "math-worker  installing dependencies",
    "math-worker  dependencies installed (300 ms)",
    "math-worker  starting as a plain process, which keeps nothing apart",
    "math-worker  serves http://127.0.0.1:3111",
  ]);
  assert.deepEqual(terminal.outLines, ["math-worker is ready: pid 42, 2.8 s, math::add"]);
  assert.equal(terminal.openLines, 0);
});

Deno.test("worker add says when the worker was there already", async () => {
  const terminal = setup([], { added: false });

  assert.equal(await terminal.run("worker", "add", "./workers/math-worker"), 0);
  assert.equal(terminal.errLines[0], "math-worker  is in /project/config.yaml already");
});

Deno.test("worker add says when it has changed a worker that was there", async () => {
  const terminal = setup([], { added: false, changed: true });

  assert.equal(await terminal.run("worker", "add", "engine-http", "port=3200"), 0);
  assert.equal(terminal.errLines[0], "math-worker  changed in /project/config.yaml");
});

Deno.test("worker add of nothing is not understood", async () => {
  const terminal = setup();

  assert.equal(await terminal.run("worker", "add", ""), 2);
  assert.match(terminal.errText, /Which worker\? Such as: engine worker add/);
});

Deno.test("worker add hands on isolation and --force, with an absolute path", async () => {
  const terminal = setup();

  await terminal.run("worker", "add", "../m", "--isolation", "process", "--force");

  assert.deepEqual(requestOf(terminal), { path: "/m", isolation: "process", reinstall: true });
});

Deno.test("worker add takes the name of a directory with a manifest for a path", async () => {
  const terminal = setup();

  await terminal.run("worker", "add", "plain");

  assert.deepEqual(requestOf(terminal), { path: "/project/plain" });
});

Deno.test("worker add takes any other word for a built-in, with its configuration", async () => {
  const terminal = setup();

  await terminal.run("worker", "add", "engine-http", "port=3200", "cors.origins=[]");

  assert.deepEqual(requestOf(terminal), {
    name: "engine-http",
    config: { port: 3200, cors: { origins: [] } },
  });
});

Deno.test("worker add does not wait with --wait-ms 0", async () => {
  const terminal = setup([{ state: "installing" }]);

  assert.equal(await terminal.run("worker", "add", "./m", "--wait-ms", "0"), 0);
  assert.ok(!terminal.calls.some(({ function_id }) => function_id.endsWith("::status")));
});

Deno.test("a worker that cannot start ends with 1, its last lines and its reason", async () => {
  const terminal = setup([{ state: "failed", reason: "python3 is not there", tail: ["sh: no"] }]);

  assert.equal(await terminal.run("worker", "add", "./m"), 1);
  assert.deepEqual(terminal.outLines, []);
  assert.deepEqual(terminal.errLines.slice(1), [
    "  | sh: no",
    "error: math-worker failed: python3 is not there; " +
    "all it printed: engine worker logs math-worker",
  ]);
});

Deno.test("a worker that the engine refuses ends with 1 and the engine's words", async () => {
  const body = { code: "isolation_unavailable", message: "microVMs are not there; use process" };
  const refusal = new InvocationError(body, "engine::supervisor::add");
  const terminal = setup([], { refusal });

  assert.equal(await terminal.run("worker", "add", "./m"), 1);
  assert.deepEqual(terminal.errLines, [
    "error: isolation_unavailable: microVMs are not there; use process",
  ]);
});

for (
  const [args, message] of [
    [["./m", "--isolation", "jail"], /--isolation: expected microvm or process, received "jail"/],
    [["./m", "--wait-ms", "-1"], /--wait-ms: expected 0 to/],
    [["./m", "port=1"], /is a directory; its configuration is in its engine\.worker\.yaml/],
    [["engine-http", "port"], /Not a field: port/],
  ] as const
) {
  Deno.test(`engine worker add ${args.join(" ")} is not understood`, async () => {
    const terminal = setup();

    assert.equal(await terminal.run("worker", "add", ...args), 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(terminal.addresses, []);
  });
}
