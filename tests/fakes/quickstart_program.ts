/**
 * The quickstart as a program, and what a person has to see of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Isolation } from "../../engine/ports/launcher.ts";
import { isAlive } from "./engine_process.ts";

const PROGRAM = new URL("../../cli/quickstart/main.ts", import.meta.url).pathname;

function freePort(): string {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return String(port);
}

/** Starts it on ports of its own. */
export function quickstart(...args: string[]): Deno.ChildProcess {
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

function textOf({ stdout, stderr }: Deno.CommandOutput): string {
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

/** Runs it whole: every step is shown, gets what it expects, and nothing is left. */
export async function checkQuickstart(isolation: Isolation): Promise<void> {
  const output = await quickstart("--isolation", isolation).output();
  const text = textOf(output);

  assert.equal(output.code, 0, text);
  for (
    const shown of [
      "$ engine create --template quickstart --directory hello",
      "$ engine --config config.yaml",
      `$ engine worker add ./workers/math-worker --isolation ${isolation}`,
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
}
