import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import type { RunningEngine } from "../../../engine/mod.ts";
import type { JsonObject } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { addStartCommand, addStatus, addStop, type DaemonMachine } from "./daemon.ts";

const INFO: JsonObject = {
  version: "1.2.3",
  pid: 42,
  config_path: "/project/config.yaml",
  endpoints: [{ name: "workers", url: "ws://127.0.0.1:49134" }],
  started_at_ms: 1_700_000_000_000 - 60_000,
};

/** What happens on the machine of a test. */
interface Life {
  /** When the process that is started listens. */
  readonly listensAtMs?: number;
  /** When it ends by itself. */
  readonly endsAtMs?: number;
  /** Signals after which it has ended. */
  readonly signals?: number;
  readonly runs?: boolean;
  readonly log?: string;
}

function setup({ listensAtMs = Infinity, endsAtMs = Infinity, signals = 1, runs, log }: Life = {}) {
  const engine: RunningEngine = {
    url: "ws://127.0.0.1:49134",
    local: "ws://127.0.0.1:49134",
    project: "/project",
    needs_token: false,
    pid: 42,
  };
  const spawned: { args: readonly string[]; directory: string; logPath: string }[] = [];
  const isStarted = (): boolean => runs || spawned.length > 0;
  let received = 0;
  const terminal = new FakeTerminal({
    functions: {
      "engine::supervisor::info": () => INFO,
      "engine::supervisor::list": () => ({ workers: [{ state: "ready" }, { state: "ready" }] }),
    },
    ...log !== undefined && { files: { "/project/.engine/engine.log": log } },
  });
  const machine: DaemonMachine = {
    spawn: (args, directory, logPath) => {
      spawned.push({ args, directory, logPath });
      return Promise.resolve(42);
    },
    isAlive: () => isStarted() && terminal.now() < endsAtMs && received < signals,
    end: () => void received++,
    running: () =>
      Promise.resolve(runs || (isStarted() && terminal.now() >= listensAtMs) ? [engine] : []),
  };
  const program = new Command("engine").exitOverride() as Command;
  for (const add of [addStartCommand, addStop, addStatus]) add(program, terminal, machine);
  return {
    terminal,
    spawned,
    received: () => received,
    run: (...args: string[]) => terminal.runWith(program, ...args),
  };
}

Deno.test("engine start --daemon returns when the engine listens", async () => {
  const { terminal, spawned, run } = setup({ listensAtMs: 3_000 });

  assert.equal(await run("start", "--daemon", "--port", "5000", "--log-level", "warn"), 0);

  const args = ["--port", "5000", "--log-level", "warn"];
  const logPath = "/project/.engine/engine.log";
  assert.deepEqual(spawned, [{ args, directory: "/project", logPath }]);
  assert.match(terminal.outText, /engine 1\.2\.3, pid 42/);
  assert.match(terminal.errText, /engine\.log; to stop it: engine stop/);
});

Deno.test("engine start --daemon keeps the log beside the file that it runs", async () => {
  const { spawned, run } = setup({ listensAtMs: 0 });

  await run("start", "--daemon", "--config", "shop/config.yaml");

  assert.equal(spawned[0]!.logPath, "/project/shop/.engine/engine.log");
});

Deno.test("engine start --daemon of an engine that ends prints the end of its log", async () => {
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const { terminal, run } = setup({ endsAtMs: 2_000, log: lines.join("\n") });

  assert.equal(await run("start", "--daemon"), 1);
  assert.match(terminal.errText, /did not start; its log ends with:\n {2}line 5\n[^]*line 19$/);
});

Deno.test("engine start --daemon that takes too long ends with 3 and the log's path", async () => {
  const { terminal, run } = setup();

  assert.equal(await run("start", "--daemon", "--timeout", "5"), 3);
  assert.match(terminal.errText, /does not listen yet after 5[.0]* s; its log: .*engine\.log/);
});

Deno.test("engine start --daemon refuses a second engine of the project", async () => {
  const { terminal, spawned, run } = setup({ runs: true });

  assert.equal(await run("start", "--daemon"), 1);
  assert.match(terminal.errText, /runs already .*pid 42/);
  assert.deepEqual(spawned, []);
});

Deno.test("engine stop ends the engine and waits for it", async () => {
  const { terminal, received, run } = setup({ runs: true });

  assert.equal(await run("stop"), 0);
  assert.equal(received(), 1);
  assert.equal(terminal.outText, "ws://127.0.0.1:49134 stopped");
});

Deno.test("engine stop cuts calls that take longer than --timeout", async () => {
  const { terminal, received, run } = setup({ runs: true, signals: 2 });

  assert.equal(await run("stop", "--timeout", "2"), 0);
  assert.equal(received(), 2);
  assert.match(terminal.errText, /still runs after .*its calls end now/);
});

Deno.test("engine stop of a process that does not end fails with 3", async () => {
  const { terminal, run } = setup({ runs: true, signals: 3 });

  assert.equal(await run("stop", "--timeout", "1"), 3);
  assert.match(terminal.errText, /Process 42 has not ended/);
});

Deno.test("engine stop without an engine says where none runs", async () => {
  const { terminal, run } = setup();

  assert.equal(await run("stop"), 1);
  assert.match(terminal.errText, /No engine of this user runs at ws:\/\/127\.0\.0\.1:49134/);
});

Deno.test("engine stop does not end a process at another address", async () => {
  const { received, run } = setup({ runs: true });

  assert.equal(await run("stop", "--url", "ws://127.0.0.1:5000"), 1);
  assert.equal(received(), 0);
});

Deno.test("engine status shows the addresses and how the workers are", async () => {
  const { terminal, run } = setup({ runs: true });

  assert.equal(await run("status"), 0);
  assert.match(terminal.outText, /^engine 1\.2\.3, pid 42\n/);
  assert.match(terminal.outText, /\nup {7}1 min|\nup {7}\d/);
  assert.match(terminal.outText, /\nworkers {2}2 workers: 2 ready$/);
});
