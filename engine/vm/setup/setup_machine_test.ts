import assert from "node:assert/strict";
import { thisMachine } from "./setup_machine.ts";

const machine = thisMachine();
const linesOf = async (command: readonly string[], directory = "/") => {
  const lines: string[] = [];
  const end = await machine.run(command, directory, (line) => lines.push(line));
  return { ...end, lines };
};

Deno.test("run() runs a command in a folder and passes on its output by line", async () => {
  const { success, output, lines } = await linesOf(["sh", "-c", "pwd; printf 'a\\nb'"], "/usr");

  assert.equal(success, true);
  assert.deepEqual(lines, ["/usr", "a", "b"]);
  assert.equal(output, "/usr\na\nb");
});

Deno.test("run() returns the output of a command that fails", async () => {
  const { success, output } = await linesOf(["sh", "-c", "echo out; echo err >&2; exit 3"]);

  assert.equal(success, false);
  assert.deepEqual(output.trim().split("\n").sort(), ["err", "out"]);
});

Deno.test("run() returns the last part of long output", async () => {
  const { output, lines } = await linesOf(["sh", "-c", "seq 1 20000"]);

  assert.equal(lines.length, 20_000);
  assert.ok(output.length <= 16_384 && output.endsWith("20000\n"));
});

Deno.test("run() returns the reason when the program does not exist", async () => {
  const { success, output } = await linesOf(["no-such-program"]);

  assert.equal(success, false);
  assert.match(output, /Failed to spawn|No such file/);
});

Deno.test("run() sets the language of commands", async () => {
  assert.deepEqual((await linesOf(["sh", "-c", 'echo "$LC_ALL"'])).lines, ["C"]);
});

Deno.test("ask() returns an empty text for a command that fails", async () => {
  assert.equal(await machine.ask(["sh", "-c", "echo yes"]), "yes\n");
  assert.equal(await machine.ask(["sh", "-c", "echo yes; exit 1"]), "");
  assert.equal(await machine.ask(["no-such-program"]), "");
});

Deno.test("find() returns only executable programs", async () => {
  assert.match(await machine.find("sh") ?? "", /\/sh$/);
  assert.equal(await machine.find("no-such-program"), undefined);
});
