import assert from "node:assert/strict";
import { Command } from "@commander-js/extra-typings";
import { InvocationError } from "../../mod.ts";
import { FakeScreen } from "../../tests/fakes/fake_screen.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import type { Screen } from "../terminal.ts";
import { addTop } from "./top.ts";

const SAMPLE = {
  engine: {
    calls_per_s: 5,
    errors_per_s: 0,
    p50_ms: 1,
    p99_ms: 2,
    in_flight: 0,
    held: 0,
    lines: 2,
    queued_bytes: 0,
    event_loop_lag_ms: 1,
    memory_bytes: 1_000_000,
    cpu_percent: 1,
  },
  functions: ["b::slow", "a::fast"].map((function_id, i) => ({
    function_id,
    namespace: "default",
    calls_per_s: 5 - i,
    errors_per_s: 0,
    p50_ms: 1,
    p99_ms: 2,
    in_flight: 0,
  })),
  workers: [],
};

/** A screen that knows the other screen and the cursor, and what was written there. */
class OtherScreen extends FakeScreen {
  switches: string[] = [];

  override write(text: string): void {
    // deno-lint-ignore no-control-regex
    if (/^(\x1b\[\?(1049|25)[hl])+$/.test(text)) this.switches.push(text);
    else super.write(text);
  }
}

interface Given {
  screen?: Screen & FakeScreen;
  onWait?: (press: (key: string) => void, terminal: FakeTerminal) => void;
  answer?: () => never;
}

function setup({ screen, onWait, answer }: Given = {}) {
  let press: (key: string) => void = () => {};
  let stopped = 0;
  const terminal: FakeTerminal = new FakeTerminal({
    functions: { "engine::metrics::sample": answer ?? (() => SAMPLE as never) },
    ...screen && { screen },
    onWait: () => onWait?.(press, terminal),
  });
  const keyboard = {
    listen: (listener: (key: string) => void) => {
      press = listener;
      return () => void stopped++;
    },
  };
  const run = (...args: string[]): Promise<number> => {
    const program = new Command("engine").exitOverride();
    addTop(program as Command, terminal, keyboard);
    return terminal.runWith(program as Command, "top", ...args);
  };
  return { terminal, run, stopped: () => stopped };
}

Deno.test("top prints one table where there is no terminal", async () => {
  const { terminal, run } = setup();

  assert.equal(await run(), 0);
  assert.match(terminal.outLines[0]!, /^5\.0 calls\/s/);
  assert.deepEqual(terminal.outLines.slice(-2).map((line) => line.split(" ")[0]), [
    "b::slow",
    "a::fast",
  ]);
  assert.equal(terminal.calls.length, 1);
  assert.equal(terminal.openLines, 0);
});

Deno.test("top --json prints the sample as it came", async () => {
  const { terminal, run } = setup({ screen: new OtherScreen() });

  assert.equal(await run("--json"), 0);
  assert.deepEqual(JSON.parse(terminal.outText), SAMPLE);
});

Deno.test("top --once prints to standard output on a terminal too", async () => {
  const screen = new OtherScreen();
  const { terminal, run } = setup({ screen });

  await run("--once", "--sort", "name");
  assert.deepEqual(terminal.outLines.slice(-2).map((line) => line.split(" ")[0]), [
    "a::fast",
    "b::slow",
  ]);
  assert.deepEqual(screen.switches, []);
});

Deno.test("top takes the screen, looks again and again, and gives it back on q", async () => {
  const screen = new OtherScreen();
  let waits = 0;
  const { terminal, run, stopped } = setup({
    screen,
    onWait: (press) => ++waits === 3 && press("q"),
  });

  assert.equal(await run("--interval", "500"), 0);

  assert.equal(terminal.calls.length, 3);
  assert.equal(terminal.now() - 1_000, 1_500);
  assert.deepEqual(screen.switches, ["\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"]);
  assert.equal(stopped(), 1);
  assert.match(screen.text, /b::slow[\s\S]*a::fast[\s\S]*q quit/);
});

Deno.test("A key sorts at once", async () => {
  const screen = new OtherScreen();
  let waits = 0;
  const { run } = setup({ screen, onWait: (press) => press(++waits === 1 ? "n" : "q") });

  await run();
  assert.match(screen.frames.at(-1)!, /a::fast[\s\S]*b::slow[\s\S]*by name/);
});

Deno.test("Ctrl-C gives the screen back", async () => {
  const screen = new OtherScreen();
  const { terminal, run, stopped } = setup({
    screen,
    onWait: (_, terminal) => terminal.interrupt(),
  });

  assert.equal(await run(), 0);
  assert.equal(screen.switches.length, 2);
  assert.deepEqual([stopped(), terminal.interruptListeners], [1, 0]);
});

Deno.test("An engine that goes away ends top with a message on a screen that is as it was", async () => {
  const screen = new OtherScreen();
  let asked = 0;
  const { terminal, run } = setup({
    screen,
    answer: () => {
      if (++asked === 1) return SAMPLE as never;
      throw new InvocationError({ code: "engine_unreachable", message: "gone" }, "x");
    },
  });

  assert.equal(await run(), 1);
  assert.equal(screen.switches.length, 2);
  assert.match(terminal.errText, /engine_unreachable: gone/);
});

Deno.test("An engine without metrics is said", async () => {
  const { terminal, run } = setup({ answer: () => null as never });

  assert.equal(await run(), 1);
  assert.match(terminal.errText, /says nothing of its metrics/);
});

for (const args of [["--sort", "colour"], ["--interval", "1"], ["--interval", "soon"]]) {
  Deno.test(`top ${args.join(" ")} is not understood`, async () => {
    assert.equal(await setup().run(...args), 2);
  });
}
