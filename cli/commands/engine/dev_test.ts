import { Command } from "@commander-js/extra-typings";
import assert from "node:assert/strict";
import type { ConsoleOptions, Engine } from "../../../engine/mod.ts";
import { EngineError, type Json } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { addDev, type DevParts } from "./dev.ts";

/** `engine dev` with an engine that ends when the test stops it. */
function setup({ servesConsole = false, isTaken = false } = {}) {
  const terminal = new FakeTerminal();
  const finished = Promise.withResolvers<void>();
  const consoles: ConsoleOptions[] = [];
  let openConsoles = 0;
  const endpoints = [
    { name: "workers", url: "ws://127.0.0.1:49134" },
    ...servesConsole ? [{ name: "console", url: "http://127.0.0.1:3113" }] : [],
  ];
  const engine = {
    endpoints,
    finished: finished.promise,
    info: () => ({ version: "1.2.3", pid: 42, config_path: "/p/config.yaml", endpoints }),
    stop: () => {
      finished.resolve();
      return finished.promise;
    },
  } as unknown as Engine;
  const parts: DevParts = {
    startEngine: () => Promise.resolve(engine),
    startConsole: (options) => {
      consoles.push(options);
      if (isTaken && options.port !== 0) {
        return Promise.reject(new EngineError("address_in_use", "Port 3113 is taken"));
      }
      openConsoles++;
      return Promise.resolve({
        url: "http://127.0.0.1:3113",
        operatorUrl: "http://127.0.0.1:3113/?key=k",
        [Symbol.asyncDispose]: () => Promise.resolve(void openConsoles--),
      });
    },
    operatorUrl: (consoleUrl) => Promise.resolve(`${consoleUrl}/?key=of-engine`),
  };
  const program = new Command("engine").exitOverride() as Command;
  addDev(program, terminal, parts);
  return {
    terminal,
    consoles,
    openConsoles: () => openConsoles,
    run: (...args: string[]) => terminal.runWith(program, "dev", ...args),
    finish: () => finished.resolve(),
  };
}

const record = (source: string, body: string, severity_text = "INFO"): Json => ({
  severity_text,
  body,
  attributes: { "engine.source": source, "engine.worker": "math" },
  service_name: "math",
});

Deno.test("engine dev prints the console and what workers print, and ends with the engine", async () => {
  const { terminal, consoles, openConsoles, run, finish } = setup();

  const ended = run();
  const { config, hear } = await terminal.subscribed.promise;
  const logs = [
    record("output", "adding\n2 and 3"),
    record("engine", "worker joined"),
    record("logger", "odd \u001b[31mnumber", "WARN"),
  ];
  hear({ logs, dropped: 0 });
  finish();

  assert.equal(await ended, 0);
  assert.deepEqual(config, { batch_ms: 100 });
  assert.deepEqual(consoles, [{ url: "ws://127.0.0.1:49134", port: 3113 }]);
  assert.deepEqual(terminal.outLines.slice(-4), [
    "console  http://127.0.0.1:3113/?key=k",
    "math | adding",
    "math | 2 and 3",
    "math WARN | odd number",
  ]);
  assert.deepEqual([openConsoles(), terminal.openConnections], [0, 0]);
});

Deno.test("engine dev uses the console that the engine serves", async () => {
  const { terminal, consoles, run, finish } = setup({ servesConsole: true });

  const ended = run();
  await terminal.subscribed.promise;
  finish();

  assert.equal(await ended, 0);
  assert.deepEqual(consoles, []);
  assert.match(terminal.outText, /console {2}http:\/\/127\.0\.0\.1:3113\/\?key=of-engine/);
});

Deno.test("engine dev takes any port for the console if the usual one is taken", async () => {
  const { terminal, consoles, run, finish } = setup({ isTaken: true });

  const ended = run();
  await terminal.subscribed.promise;
  finish();

  assert.equal(await ended, 0);
  assert.deepEqual(consoles.map(({ port }) => port), [3113, 0]);
});

Deno.test("engine dev with a console port that is taken stops the engine and fails", async () => {
  const { terminal, run } = setup({ isTaken: true });

  assert.equal(await run("--console-port", "4000"), 1);
  assert.match(terminal.errText, /Port 3113 is taken/);
});
