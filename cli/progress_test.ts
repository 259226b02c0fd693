import assert from "node:assert/strict";
import { FakeScreen, FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { showProgress } from "./progress.ts";

function setup(screen?: FakeScreen, variables = {}) {
  const terminal = new FakeTerminal({ variables, ...screen ? { screen } : {} });
  return { terminal, progress: showProgress(terminal) };
}

Deno.test("without a terminal each phase is a line with the elapsed time", async () => {
  const { terminal, progress } = setup();
  const row = progress.row("math");

  row.phase("installing");
  await terminal.wait(1_500);
  row.phase("installing");
  row.printed("one \x1b[31mline");
  row.phase("starting");
  progress.tick();
  progress.end();

  assert.deepEqual(terminal.errLines, [
    "math  0 ms  installing",
    "math  | one line",
    "math  1.5 s  starting",
  ]);
});

Deno.test("without a terminal results are printed at once, errors first, and only once", () => {
  const { terminal, progress } = setup();
  const row = progress.row("math");

  row.done("ready", { out: ["math is ready"], err: ["a warning"] });
  row.done("failed", { err: ["late"] });
  progress.end();

  assert.deepEqual(terminal.outLines, ["math is ready"]);
  assert.deepEqual(terminal.errLines, ["a warning"]);
});

Deno.test("on a terminal results are printed at the end, in the order of the rows", () => {
  const screen = new FakeScreen();
  const { terminal, progress } = setup(screen);
  const [one, two] = [progress.row("one"), progress.row("two-is-longer")];

  two.done("ready", { out: ["two is ready"] });
  one.phase("starting");
  progress.tick();
  assert.deepEqual(terminal.outLines, []);
  one.done("failed", { err: ["one failed"] });
  progress.end();
  progress.end();

  assert.equal(
    screen.text,
    "one               0 ms  failed\n" +
      "two-is-longer     0 ms  ready\n" +
      "one failed\n" +
      "two is ready",
  );
});

Deno.test("on a terminal the time of a row runs until its end", async () => {
  const screen = new FakeScreen();
  const { terminal, progress } = setup(screen);
  const [one, two] = [progress.row("one"), progress.row("two")];

  one.done("ready", {});
  two.phase("starting");
  await terminal.wait(2_000);
  progress.tick();

  assert.equal(screen.text, "one     0 ms  ready\ntwo    2.0 s  starting");
});

Deno.test("on a terminal output is shown beside its phase, not the next one", () => {
  const screen = new FakeScreen();
  const { progress } = setup(screen);
  const row = progress.row("math");

  row.phase("installing");
  row.printed("one");
  row.printed("two");
  progress.tick();
  assert.equal(screen.text, "math     0 ms  installing  two");
  row.phase("starting");
  progress.tick();

  assert.equal(screen.text, "math     0 ms  starting");
});

Deno.test("on a terminal a line for all tasks stands above the rows", () => {
  const screen = new FakeScreen();
  const { progress } = setup(screen);
  const row = progress.row("math");

  row.phase("starting");
  progress.tick();
  progress.say("no KVM here");
  progress.tick();

  assert.equal(screen.text, "no KVM here\nmath     0 ms  starting");
});

Deno.test("on a small terminal running tasks are shown first", () => {
  const screen = new FakeScreen(80, 4);
  const { progress } = setup(screen);
  const rows = ["a", "b", "c", "d"].map((name) => progress.row(name));

  rows[0]!.done("ready", {});
  for (const row of rows.slice(1)) row.phase("starting");
  progress.tick();

  assert.equal(screen.text, "b     0 ms  starting\nc     0 ms  starting\n… and 2 more");
  progress.end();
  assert.equal(screen.text.split("\n").length, 4);
});

Deno.test("with NO_COLOR nothing is dimmed", () => {
  const screen = new FakeScreen();
  const { progress } = setup(screen, { NO_COLOR: "1" });

  progress.row("math").printed("one");
  progress.tick();

  assert.ok(screen.text.endsWith("one"));
  assert.equal(screen.dimmed, "");
});
