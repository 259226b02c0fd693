import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { OutputLog } from "./output_log.ts";
import { StatusBoard } from "./status_board.ts";

const KNOWN = { path: "/p/w", isolation: "process", functions: [] } as const;

function setup() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const output = new OutputLog("/proc/nowhere/w.log", () => clock.wall());
  return { clock, lines, output, board: new StatusBoard("w", output, { clock, log }) };
}

Deno.test("StatusBoard begins as a worker that is stopped", () => {
  const { board } = setup();

  assert.deepEqual(board.status(KNOWN), {
    name: "w",
    kind: "directory",
    state: "stopped",
    reason: null,
    path: "/p/w",
    isolation: "process",
    pid: null,
    functions: [],
    restarts: 0,
    started_at_ms: null,
    ready_after_ms: null,
    last_exit: null,
    dependencies: null,
    launch: 0,
    tail: [],
    log_path: "/proc/nowhere/w.log",
  });
});

Deno.test("StatusBoard dates a launch and tells for how long it was ready", () => {
  const { board, clock } = setup();
  board.begin();
  board.starting();
  board.started(7);
  clock.tick(300);

  board.ready();
  clock.tick(5_000);

  const { started_at_ms, ready_after_ms, pid } = board.status(KNOWN);
  assert.deepEqual([started_at_ms, ready_after_ms, pid], [clock.wall() - 5_300, 300, 7]);
  assert.equal(board.ended("exit code 1"), 5_000);
  assert.equal(board.status(KNOWN).started_at_ms, null);
});

Deno.test("StatusBoard keeps the time of the first readiness when a line comes back", () => {
  const { board, clock } = setup();
  board.begin();
  board.starting();
  clock.tick(300);
  board.ready();

  board.lost("cut");
  clock.tick(1_000);
  board.ready();

  assert.equal(board.status(KNOWN).ready_after_ms, 300);
  assert.equal(board.ended("exit code 0"), 1_000);
});

Deno.test("StatusBoard tells whole milliseconds to readiness, and none while not ready", () => {
  const { board, clock } = setup();
  const readyAfter = () => board.status(KNOWN).ready_after_ms;
  board.begin();
  board.starting();
  clock.tick(300.6);
  assert.equal(readyAfter(), null);

  board.ready();
  assert.equal(readyAfter(), 301);

  board.lost("cut");
  assert.equal(readyAfter(), null);
  board.ready();
  assert.equal(readyAfter(), 301);
  board.set("stopped");
  assert.equal(readyAfter(), null);
});

Deno.test("StatusBoard shows last lines with a failure only, and those of this launch", async () => {
  const { board, output } = setup();
  const print = (text: string) => output.write({ stream: "stdout", text });
  print("old");
  board.begin();
  for (let i = 0; i < 30; i++) print(`line ${i}`);

  assert.deepEqual(board.status(KNOWN).tail, []);
  board.set("failed", "no");

  const { tail, reason } = board.status(KNOWN);
  assert.equal(reason, "no");
  assert.equal(tail.length, 20);
  assert.equal(tail.at(-1), "line 29");
  await output.close();
});

Deno.test("StatusBoard leaves out of a failure what an installation before it printed", async () => {
  const { board, output } = setup();
  board.begin();
  output.write({ stream: "stdout", text: "installed" });
  board.starting();
  output.write({ stream: "stderr", text: "no such module" });

  board.set("failed", "It ended");

  assert.deepEqual(board.status(KNOWN).tail, ["no such module"]);
  await output.close();
});

Deno.test("StatusBoard logs each change of state once, at the level it deserves", () => {
  const { board, lines } = setup();

  board.set("starting");
  board.set("starting", "still");
  board.set("waiting", "ended");
  board.set("failed", "given up");
  board.set("stopped");

  assert.deepEqual(lines, [
    "debug worker changed state",
    "warn worker waits for its next start",
    "error worker failed",
    "info worker stopped",
  ]);
});
