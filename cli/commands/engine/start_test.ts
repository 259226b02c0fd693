import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import type { Engine, StartOptions, StopOptions } from "../../../engine/mod.ts";
import { EngineError } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { addStart, type Start } from "./start.ts";

/** A program with the root command only, and an engine that a test stops. */
function setup(options: { config_path?: string | null; fails?: Error } = {}) {
  const terminal = new FakeTerminal();
  const started: StartOptions[] = [];
  const stops: StopOptions[] = [];
  const finished = Promise.withResolvers<void>();
  const ready = Promise.withResolvers<void>();
  const engine: Engine = {
    endpoints: [],
    finished: finished.promise,
    info: () => ({
      version: "1.2.3",
      pid: 42,
      config_path: options.config_path === undefined ? "/p/config.yaml" : options.config_path,
      data_directory: "/p/.engine",
      endpoints: [
        { name: "workers", url: "ws://127.0.0.1:49134" },
        { name: "http", url: "http://127.0.0.1:3111" },
      ],
      listeners: [],
      started_at_ms: 0,
      platform: "linux",
      descriptors: { limit: 20_000, open: 40 },
      control_key: { path: "/state/49134.json", problem: null },
    }),
    handleFault: (thrown) => {
      if (thrown === "of a connection") return "kept";
      finished.resolve();
      return "stopping";
    },
    stop: (stop = {}) => {
      stops.push(stop);
      if (stop.drain === false) finished.resolve();
      return finished.promise;
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  const start: Start = (given) => {
    started.push(given);
    if (options.fails) return Promise.reject(options.fails);
    queueMicrotask(() => ready.resolve());
    return Promise.resolve(engine);
  };
  const program = new Command("engine").exitOverride();
  addStart(program as Command, terminal, start);
  return {
    terminal,
    started,
    stops,
    ready: ready.promise,
    finish: () => finished.resolve(),
    run: (...args: string[]) => terminal.runWith(program as Command, ...args),
  };
}

/** Lets all pending microtasks run. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

Deno.test("engine prints what it serves, line by line, and runs until it has stopped", async () => {
  const { terminal, started, run, ready, finish } = setup();
  const running = run("--config", "config.yaml", "--port", "0", "--log-level", "debug");
  await ready;
  await settle();

  assert.deepEqual(started, [{ configPath: "config.yaml", port: 0, logLevel: "debug" }]);
  assert.deepEqual(terminal.outLines, [
    "engine 1.2.3, pid 42",
    "config   /p/config.yaml",
    "workers  ws://127.0.0.1:49134",
    "http     http://127.0.0.1:3111",
  ]);
  finish();
  assert.equal(await running, 0);
  assert.equal(terminal.interruptListeners, 0);
});

Deno.test("engine without a config.yaml says that embedded defaults are used", async () => {
  const { terminal, started, run, finish } = setup({ config_path: null });
  finish();

  assert.equal(await run(), 0);

  assert.deepEqual(started, [{ directory: "/project" }]);
  assert.match(terminal.outLines[1]!, /embedded defaults .*state and HTTP are on/);
});

Deno.test("the first interrupt drains, the second one does not", async () => {
  const { terminal, stops, run, ready } = setup();
  const running = run();
  await ready;
  await settle();

  terminal.interrupt();
  assert.deepEqual(stops, [{ drain: true }]);
  terminal.interrupt();

  assert.deepEqual(stops, [{ drain: true }, { drain: false }]);
  assert.equal(await running, 0);
});

Deno.test("an interrupt while the engine starts is not lost", async () => {
  const { terminal, stops, run, finish } = setup();
  const running = run();

  terminal.interrupt();
  await settle();

  assert.deepEqual(stops, [{ drain: true }]);
  finish();
  assert.equal(await running, 0);
});

Deno.test("a wrong config.yaml ends with 2 and every problem", async () => {
  const problems = [
    "engine.port: expected 1 to 65535, received 0 (line 2)",
    "workers: expected a list",
  ];
  const fails = new EngineError("config_invalid", "config.yaml has 2 problems", {
    details: { problems },
  });
  const { terminal, run } = setup({ fails });

  assert.equal(await run("--config", "config.yaml"), 2);
  assert.deepEqual(terminal.errLines.slice(1), problems.map((problem) => `  ${problem}`));
});

Deno.test("a port that is taken ends with 1", async () => {
  const fails = new EngineError("address_in_use", "Port 49134 is taken; stop the other program");
  const { terminal, run } = setup({ fails });

  assert.equal(await run(), 1);
  assert.deepEqual(terminal.errLines, [
    "error: address_in_use: Port 49134 is taken; stop the other program",
  ]);
  assert.equal(terminal.interruptListeners, 0);
});

for (
  const [args, message] of [
    [["--port", "70000"], /--port: expected 0 to 65535, received "70000"/],
    [["--port", "http"], /--port: expected 0 to 65535/],
    [["--log-level", "loud"], /--log-level: expected debug, info, warn, error, received "loud"/],
  ] as const
) {
  Deno.test(`engine ${args.join(" ")} is not understood`, async () => {
    const { terminal, started, run } = setup();

    assert.equal(await run(...args), 2);
    assert.match(terminal.errText, message);
    assert.deepEqual(started, []);
  });
}

Deno.test("engine serves on after the fault of a connection, and ends with 1 after another", async () => {
  const { terminal, run, ready } = setup();
  const running = run();
  await ready;
  await settle();

  assert.equal(terminal.fault?.("of a connection"), true);
  assert.equal(terminal.exitMs, undefined);
  assert.equal(terminal.fault?.("of ours"), true);

  assert.equal(await running, 1);
  assert.ok(terminal.exitMs! > 0);
  assert.equal(terminal.fault, undefined);
});
