/**
 * The quickstart as a person runs it, on ports of its own.
 *
 * @module
 */
import assert from "node:assert/strict";
import { eventually, isAlive } from "./fakes/engine_process.ts";

const PROGRAM = new URL("../cli/quickstart.ts", import.meta.url).pathname;

function freePort(): string {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return String(port);
}

function quickstart(...args: string[]): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--quiet",
      PROGRAM,
      "--port",
      freePort(),
      "--http-port",
      freePort(),
      ...args,
    ],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Removes the temporary directory of a run that left its project. */
async function removeProject(text: string): Promise<void> {
  const project = /^\$ cd (.*)\/hello$/m.exec(text)![1]!;
  await Deno.remove(project, { recursive: true });
}

function textOf({ stdout, stderr }: Deno.CommandOutput): string {
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

Deno.test("the quickstart shows every step, gets what it expects, and leaves nothing", async () => {
  const output = await quickstart().output();
  const text = textOf(output);

  assert.equal(output.code, 0, text);
  for (
    const shown of [
      "$ engine create --template quickstart --directory hello",
      "$ engine --config config.yaml",
      "$ engine worker add ./workers/math-worker --isolation process",
      "$ engine trigger math::add a=2 b=3",
      '  { "c": 5 }',
      `$ engine trigger --function-id=math::add '--payload={"a":2,"b":3}'`,
      "$ engine trigger math::add_two_numbers a=2 b=3",
      "$ engine worker add engine-state",
      '  { "c": 5, "running_total": 5 }',
      "$ engine worker restart math-worker",
      "$ kill -9 ",
      "$ engine worker add engine-http",
      "$ curl -i -X POST localhost:",
      "  HTTP/1.1 200 OK",
      '{"c":300,"running_total":',
      "All as expected",
    ]
  ) {
    assert.ok(text.includes(shown), `${shown} is missing in:\n${text}`);
  }
  const directory = /^\$ cd (.*)$/m.exec(text)![1]!;
  await assert.rejects(() => Deno.stat(directory), Deno.errors.NotFound);
  const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
  assert.deepEqual(pids.filter(isAlive), []);
});

Deno.test("the quickstart with --keep stays until Ctrl-C, and then leaves no process", async () => {
  const child = quickstart("--keep");
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  const errors = new Response(child.stderr).text();

  await eventually(() => text.includes("Ctrl-C ends it") && /http +http:/.test(text), () => text);
  const pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
  assert.ok(pids.some(isAlive));
  // A terminal sends Ctrl-C to the engine too, which may be gone before anybody asks it.
  const engine = [...text.matchAll(/^ +engine \S+, pid (\d+)$/gm)].at(-1)![1]!;
  Deno.kill(Number(engine), "SIGINT");
  await eventually(() => !isAlive(Number(engine)), () => text);
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

  await eventually(() => text.includes("math-worker is ready"), () => text);
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
