/**
 * @module
 */
import assert from "node:assert/strict";
import type { ConsoleOptions } from "../../engine/mod.ts";
import { EngineError } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { createProgram, runProgram } from "../program.ts";
import { addConsole, browserCommand, type ConsoleParts } from "./console.ts";
import { Command } from "@commander-js/extra-typings";

/** A terminal whose engine serves these addresses, and parts that record their arguments. */
function setup(
  endpoints: readonly { name: string; url: string }[] = [],
  variables: Record<string, string> = {},
) {
  const terminal = new FakeTerminal({
    variables,
    functions: { "engine::supervisor::info": () => ({ endpoints: [...endpoints] }) },
  });
  const started: ConsoleOptions[] = [];
  const shown: string[] = [];
  let stopped = 0;
  const parts: ConsoleParts = {
    start(options) {
      started.push(options);
      return Promise.resolve({
        url: "http://127.0.0.1:3113",
        operatorUrl: "http://127.0.0.1:3113/?key=abc",
        [Symbol.asyncDispose]: () => Promise.resolve(void stopped++),
      });
    },
    operatorUrl: (consoleUrl, engineUrl) => Promise.resolve(`${consoleUrl}/?key=of-${engineUrl}`),
    openBrowser: (url) => {
      shown.push(url);
      return Promise.resolve(true);
    },
  };
  const run = (change: Partial<ConsoleParts>, ...args: string[]): Promise<number> => {
    const program = new Command("engine").exitOverride()
      .configureOutput({ writeErr: (text) => terminal.err(text.trimEnd()) }) as Command;
    addConsole(program, terminal, { ...parts, ...change });
    return runProgram(program, terminal, ["console", ...args]);
  };
  return { terminal, started, shown, run, stopped: () => stopped };
}

/** Presses Ctrl-C as soon as the command listens for it. */
async function interruptWhenAsked(terminal: FakeTerminal): Promise<void> {
  while (terminal.interruptListeners === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  terminal.interrupt();
}

Deno.test("engine console serves a page until Ctrl-C and prints its address", async () => {
  const { terminal, started, shown, run, stopped } = setup();

  const [code] = await Promise.all([run({}), interruptWhenAsked(terminal)]);

  assert.equal(code, 0);
  assert.deepEqual(terminal.outLines, ["console  http://127.0.0.1:3113/?key=abc"]);
  assert.deepEqual(started, [{ url: "ws://127.0.0.1:49134", host: "127.0.0.1", port: 3113 }]);
  assert.deepEqual([shown, stopped(), terminal.openConnections], [[], 1, 0]);
});

Deno.test("engine console passes on address, port and token, which a page asks for, and opens the browser", async () => {
  const { terminal, started, shown, run } = setup([], { ENGINE_URL: "ws://other:1" });

  await Promise.all([
    run({}, "--port", "0", "--token", "t", "--open"),
    interruptWhenAsked(terminal),
  ]);

  const typed = { text: "t", isOwn: false };
  const address = { url: "ws://other:1", host: "127.0.0.1", port: 0, token: "t" };
  assert.deepEqual(started, [{ ...address, typed }]);
  assert.deepEqual(shown, ["http://127.0.0.1:3113/?key=abc"]);
  assert.deepEqual(terminal.addresses[0]?.token, "t");
});

Deno.test("engine console names the address of a console that the engine serves", async () => {
  const { terminal, started, shown, run } = setup([
    { name: "console", url: "http://127.0.0.1:3113" },
  ]);

  const code = await run({}, "--open");

  const url = "http://127.0.0.1:3113/?key=of-ws://127.0.0.1:49134";
  assert.equal(code, 0);
  assert.deepEqual(terminal.outLines, [`console  ${url}`]);
  assert.deepEqual([started, shown], [[], [url]]);
});

Deno.test("engine console with a port serves a page of its own all the same", async () => {
  const { terminal, started, run } = setup([{ name: "console", url: "http://127.0.0.1:3113" }]);

  await Promise.all([run({}, "--port", "4000"), interruptWhenAsked(terminal)]);

  assert.equal(started[0]?.port, 4000);
});

Deno.test("engine console says that its port is taken", async () => {
  const { terminal, run } = setup();
  const start = () => Promise.reject(new EngineError("address_in_use", "Port 3113 is taken; …"));

  const code = await run({ start });

  assert.equal(code, 1);
  assert.equal(
    terminal.errText,
    "error: Port 3113 is taken; stop the other program or choose another with --port",
  );
});

Deno.test("engine console without an engine says so and serves nothing", async () => {
  const { started } = setup();
  const unreachable = new Error("The engine is not running at ws://127.0.0.1:49134; start it …");
  const terminal = new FakeTerminal({ unreachable });

  const code = await runProgram(await createProgram(terminal), terminal, ["console"]);

  assert.equal(code, 1);
  assert.match(terminal.errText, /The engine is not running at/);
  assert.deepEqual(started, []);
});

Deno.test("engine console for other machines asks for a token of its own", async () => {
  const { terminal, run, started } = setup([], { ENGINE_CONSOLE_TOKEN: "own" });

  await Promise.all([run({}, "--host", "0.0.0.0"), interruptWhenAsked(terminal)]);

  assert.deepEqual(started[0]?.typed, { text: "own", isOwn: true });
});

Deno.test("engine console for other machines falls back to the token workers have", async () => {
  const { terminal, run, started } = setup([], { ENGINE_TOKEN: "shared" });

  await Promise.all([run({}, "--host", "0.0.0.0"), interruptWhenAsked(terminal)]);

  assert.deepEqual(started[0]?.typed, { text: "shared", isOwn: false });
});

Deno.test("engine console for other machines refuses to start without a token", async () => {
  const { terminal, run, started } = setup();

  const code = await run({}, "--host", "0.0.0.0");

  assert.equal(code, 1);
  assert.match(terminal.errText, /Other machines can reach 0\.0\.0\.0; set ENGINE_CONSOLE_TOKEN/);
  assert.deepEqual(started, []);
});

Deno.test("engine console says when no browser could be started", async () => {
  const { terminal, run } = setup();

  await Promise.all([
    run({ openBrowser: () => Promise.resolve(false) }, "--open"),
    interruptWhenAsked(terminal),
  ]);

  assert.match(terminal.errText, /No browser could be started; open the address yourself/);
});

Deno.test("engine console refuses an invalid port", async () => {
  const { terminal, run } = setup();

  assert.equal(await run({}, "--port", "70000"), 2);
  assert.match(terminal.errText, /--port: expected 0 to 65535, received "70000"/);
});

Deno.test("browserCommand() has a command for each platform", () => {
  const programs = ["linux", "darwin", "windows"].map((platform) =>
    browserCommand(platform, "u")[0]
  );

  assert.deepEqual(programs, ["xdg-open", "open", "rundll32"]);
});
