import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { StatusBoard } from "./status_board.ts";

function setup() {
  const clock = new FakeClock();
  const lines: string[] = [];
  const at = (level: string) => (text: string): void => void lines.push(`${level} ${text}`);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { clock, lines, board: new StatusBoard({ clock, log }, () => ({ worker: "w" })) };
}

Deno.test("StatusBoard begins as one that is stopped", () => {
  const { board, clock } = setup();

  assert.deepEqual(board.view(), {
    state: "stopped",
    since_ms: clock.wall(),
    reason: null,
    pid: null,
    restarts: 0,
    started_at_ms: null,
    ready_after_ms: null,
    lastExit: null,
    lastError: null,
    tail: [],
  });
});

Deno.test("StatusBoard dates a state by its beginning, whatever is said meanwhile", () => {
  const { board, clock } = setup();
  board.set("installing");
  const since = clock.wall();
  clock.tick(500);

  board.set("installing", "with pip");
  assert.deepEqual([board.view().since_ms, board.view().reason], [since, "with pip"]);

  board.set("queued");
  assert.equal(board.view().since_ms, since + 500);
});

Deno.test("StatusBoard dates a program and forgets it with its end", () => {
  const { board, clock } = setup();
  board.begin("starting");
  board.started(7);
  clock.tick(300);

  const { pid, started_at_ms } = board.view();
  assert.deepEqual([pid, started_at_ms], [7, clock.wall() - 300]);
  board.ended("exit code 1");

  const view = board.view();
  assert.deepEqual([view.pid, view.started_at_ms], [null, null]);
  assert.deepEqual(view.lastExit, { text: "exit code 1", atMs: clock.wall() });
});

Deno.test("StatusBoard tells whole milliseconds to readiness, and none while not ready", () => {
  const { board } = setup();
  board.begin("starting");
  assert.equal(board.view().ready_after_ms, null);

  board.ready(300.6);
  assert.equal(board.view().ready_after_ms, 301);

  board.set("starting", "its line is gone");
  assert.equal(board.view().ready_after_ms, null);
});

Deno.test("StatusBoard keeps the last error when all is well again", () => {
  const { board, clock } = setup();
  board.error("It ended with exit code 1");
  const atMs = clock.wall();
  clock.tick(1_000);

  board.ready(5);

  assert.deepEqual(board.view().lastError, { text: "It ended with exit code 1", atMs });
  assert.equal(board.view().reason, null);
});

Deno.test("StatusBoard shows last lines with a failure only, and those of this attempt", () => {
  const { board } = setup();
  board.print("old");
  board.begin("starting");
  for (let i = 0; i < 30; i++) board.print(`line ${i}`);
  assert.deepEqual(board.view().tail, []);

  board.set("failed", "no");

  const { tail, reason } = board.view();
  assert.equal(reason, "no");
  assert.equal(tail.length, 20);
  assert.equal(tail.at(-1), "line 29");
});

Deno.test("StatusBoard counts restarts until somebody starts it by hand", () => {
  const { board } = setup();
  board.countRestart();
  board.countRestart();
  assert.equal(board.view().restarts, 2);

  board.forgetRestarts();

  assert.equal(board.view().restarts, 0);
});

Deno.test("StatusBoard logs each change of state once, at the level it deserves", () => {
  const { board, lines } = setup();

  board.set("starting");
  board.set("starting", "still");
  board.ready(1);
  board.set("waiting", "ended");
  board.set("failed", "given up");
  board.set("stopped");

  assert.deepEqual(lines, [
    "debug worker changed state",
    "info worker ready",
    "warn worker waits for its next start",
    "error worker failed",
    "info worker stopped",
  ]);
});

Deno.test("StatusBoard tells of each change of its view, and of nothing else", () => {
  let told = 0;
  const quiet = () => {};
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const board = new StatusBoard({ clock: new FakeClock(), log }, () => ({}), () => void told++);

  const steps = [
    () => board.set("installing", "with pip"),
    () => board.set("installing", "with pip"),
    () => board.set("installing", "with uv"),
    () => board.started(7),
    () => board.print("hello"),
    () => board.error("broken"),
    () => board.ended("exit code 1"),
  ].map((step) => {
    const before = told;
    step();
    return told - before;
  });

  assert.deepEqual(steps, [1, 0, 1, 1, 0, 1, 1]);
});
