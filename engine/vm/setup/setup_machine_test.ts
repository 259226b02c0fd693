import assert from "node:assert/strict";
import { thisMachine } from "./setup_machine.ts";

const machine = thisMachine();
const linesOf = async (command: readonly string[], directory = "/") => {
  const lines: string[] = [];
  const end = await machine.run(command, directory, (line) => lines.push(line));
  return { ...end, lines };
};

Deno.test("a command is run in a folder, and what it prints is handed on line by line", async () => {
  const { success, output, lines } = await linesOf(["sh", "-c", "pwd; printf 'a\\nb'"], "/usr");

  assert.equal(success, true);
  assert.deepEqual(lines, ["/usr", "a", "b"]);
  assert.equal(output, "/usr\na\nb");
});

Deno.test("a command that fails says so with all that it printed", async () => {
  const { success, output } = await linesOf(["sh", "-c", "echo out; echo err >&2; exit 3"]);

  assert.equal(success, false);
  assert.deepEqual(output.trim().split("\n").sort(), ["err", "out"]);
});

Deno.test("of what a command prints the last part is kept", async () => {
  const { output, lines } = await linesOf(["sh", "-c", "seq 1 20000"]);

  assert.equal(lines.length, 20_000);
  assert.ok(output.length <= 16_384 && output.endsWith("20000\n"));
});

Deno.test("a command that is not there fails with the reason", async () => {
  const { success, output } = await linesOf(["no-such-program-of-anybody"]);

  assert.equal(success, false);
  assert.match(output, /Failed to spawn|No such file/);
});

Deno.test("commands speak a language that can be read here", async () => {
  assert.deepEqual((await linesOf(["sh", "-c", 'echo "$LC_ALL"'])).lines, ["C"]);
});

Deno.test("a question that cannot be asked is answered by nothing", async () => {
  assert.equal(await machine.ask(["sh", "-c", "echo yes"]), "yes\n");
  assert.equal(await machine.ask(["sh", "-c", "echo yes; exit 1"]), "");
  assert.equal(await machine.ask(["no-such-program-of-anybody"]), "");
});

Deno.test("programs are found where they can be run", async () => {
  assert.match(await machine.find("sh") ?? "", /\/sh$/);
  assert.equal(await machine.find("no-such-program-of-anybody"), undefined);
});
