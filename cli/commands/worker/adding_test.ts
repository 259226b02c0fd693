import assert from "node:assert/strict";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { type Script, scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { showProgress } from "../../progress.ts";
import { addAll } from "./adding.ts";

/** Adds workers of these names; `settle` lets everything happen that waits for its turn only. */
async function setup(scripts: Record<string, Script>) {
  const terminal = new FakeTerminal({ functions: scriptedWorkers(scripts) });
  const engine = await terminal.connect({});
  const progress = showProgress(terminal);
  const ctrlC = new AbortController();
  const wanted = Object.keys(scripts).map((name) => ({
    word: `./${name}`,
    request: { path: `/project/${name}` },
  }));
  const signal = ctrlC.signal;
  const adding = await addAll(wanted, { engine, terminal, progress, waits: true, signal });
  const settle = () => terminal.wait(0);
  await settle();
  return { terminal, adding, ctrlC, settle };
}

function names(terminal: FakeTerminal): string[] {
  return terminal.calls.filter(({ function_id }) => function_id.endsWith("::add"))
    .map(({ payload }) => (payload as { path: string }).path.replace("/project/", ""));
}

Deno.test("the engine is asked for one worker after the other, in their order", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setup({ a: { adding: first.promise }, b: {} });

  assert.deepEqual(names(it.terminal), ["a"]);
  assert.deepEqual(it.adding.map(({ name, isAsked }) => [name, isAsked]), [
    ["./a", true],
    ["./b", false],
  ]);

  first.resolve();
  await it.settle();
  assert.deepEqual(names(it.terminal), ["a", "b"]);
  assert.deepEqual(it.adding.map(({ name }) => name), ["a", "b"]);
});

Deno.test("a worker is followed as soon as it is added, whatever becomes of the others", async () => {
  const it = await setup({ a: {}, b: { adding: new Promise(() => {}) } });

  await Promise.all(it.adding.map((each) => each.poll()));

  assert.deepEqual(it.adding.map(({ exitCode }) => exitCode), [0, undefined]);
});

Deno.test("after Ctrl-C the engine is not asked for more", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setup({ a: { adding: first.promise }, b: {} });

  it.ctrlC.abort();
  first.resolve();
  await it.settle();

  assert.deepEqual(names(it.terminal), ["a"]);
});

Deno.test("a worker that is given up before its turn is not added", async () => {
  const first = Promise.withResolvers<void>();
  const it = await setup({ a: { adding: first.promise }, b: {} });

  for (const each of it.adding) each.giveUp(1_000);
  first.resolve();
  await it.settle();

  assert.deepEqual(names(it.terminal), ["a"]);
  assert.deepEqual(it.adding.map(({ exitCode }) => exitCode), [3, 3]);
  assert.equal(it.terminal.errLines.length, 2);
});
