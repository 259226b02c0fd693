import assert from "node:assert/strict";
import { askProgram } from "./ask_program.ts";

/** Asks a `node` that is this script. */
async function ask(script: string, limitMs?: number): Promise<string> {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  try {
    await Deno.writeTextFile(`${directory}/node`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const env = { PATH: `${directory}:/usr/bin:/bin` };
    const question = { worker: "w", program: "node", args: ["a b", "c"], directory, env } as const;
    return await askProgram(question, (text) => text === "" ? undefined : text, limitMs);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("askProgram() gives what a program prints, and its arguments as they are", async () => {
  assert.equal(await ask(`printf ' %s|' "$@"`), "a b| c|");
});

for (
  const [what, script, said] of [
    ["fails", "echo no; echo why >&2; echo because >&2; exit 1", "because"],
    ["says nothing that can be read", "echo odd >&2", "odd"],
    ["fails without a word", "exit 1", ""],
  ] as const
) {
  Deno.test(`askProgram() says what a program complains of that ${what}`, async () => {
    await assert.rejects(ask(script), {
      code: "launch_failed",
      message: `Worker w needs node, which does not run here: ${said}`,
    });
  });
}

Deno.test("askProgram() does not wait for a program that gives no answer", {
  // It is told to end and not waited for, so it may end after this.
  sanitizeOps: false,
  sanitizeResources: false,
}, async () => {
  await assert.rejects(ask("exec sleep 1000", 100), {
    code: "launch_failed",
    message: "Worker w needs node, which does not run here: it gave no answer within 0.1 s",
  });
});
