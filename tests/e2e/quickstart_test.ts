/**
 * The quickstart as a person runs it, on ports of its own; `microvm_quickstart_test.ts` is the same
 * in microVMs.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isAlive } from "../fakes/engine_process.ts";
import { checkQuickstart, quickstart } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

/** Removes the temporary directory of a run that left its project. */
async function removeProject(text: string): Promise<void> {
  const project = /^\$ cd (.*)\/hello$/m.exec(text)![1]!;
  await Deno.remove(project, { recursive: true });
}

Deno.test("the quickstart shows every step, gets what it expects, and leaves nothing", async () => {
  await checkQuickstart("process");
});

Deno.test("the quickstart with --keep stays until Ctrl-C, and then leaves no process", async () => {
  const child = quickstart("--keep");
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  const errors = new Response(child.stderr).text();

  await until(() => text.includes("Ctrl-C ends it") && /http +http:/.test(text), () => text);
  const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
  assert.ok(pids.some(isAlive));
  // A terminal sends Ctrl-C to the engine too, which may be gone before the first request.
  const engine = [...text.matchAll(/^ +engine \S+, pid (\d+)$/gm)].at(-1)![1]!;
  Deno.kill(Number(engine), "SIGINT");
  await until(() => !isAlive(Number(engine)), () => text);
  child.kill("SIGINT");
  const { code } = await child.status;
  await reading;

  assert.equal(code, 0, text + await errors);
  assert.deepEqual(pids.filter(isAlive), []);
  await removeProject(text);
});

Deno.test("the quickstart that is interrupted on its way leaves no process either", async () => {
  const child = quickstart();
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  const errors = new Response(child.stderr).text();

  await until(() => text.includes("math-worker is ready"), () => text);
  child.kill("SIGINT");
  const { code } = await child.status;
  await reading;

  assert.equal(code, 1, text);
  assert.match(await errors, /interrupted; nothing is left running/);
  assert.doesNotMatch(text, /What the engine logged last/);
  const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
  assert.deepEqual(pids.filter(isAlive), []);
  await removeProject(text);
});
