import assert from "node:assert/strict";
import { startProgram } from "./program.ts";

Deno.test("startProgram() returns when every pattern was found, with what was found", async () => {
  const words = ["-c", "echo port 12; echo other 34 >&2; cat"];

  await using program = await startProgram("bash", words, [/port (\d+)/, /other (\d+)/]);

  assert.deepEqual(program.found, ["12", "34"]);
});

Deno.test("ask() answers with the line that the program prints next", async () => {
  await using program = await startProgram("bash", ["-c", "echo ready; cat"], [/(ready)/]);

  assert.equal(await program.ask("one"), "one");
  assert.equal(await program.ask("two"), "two");
});

Deno.test("next() waits for another line of the same reply", async () => {
  const script = "echo started; read; echo one; read; echo two";
  await using program = await startProgram("bash", ["-c", script], [/(started)/]);
  assert.equal(await program.ask("go"), "one");

  const second = program.next();
  void program.ask("on").catch(() => {});

  assert.equal(await second, "two");
});

Deno.test("a program that ends before it is ready fails with its output", async () => {
  const starting = startProgram("bash", ["-c", "echo no luck >&2; exit 3"], [/ready/]);

  await assert.rejects(starting, /it has ended:\nno luck/);
});

Deno.test("a program that ends instead of replying fails", async () => {
  await using program = await startProgram("bash", ["-c", "echo ready; read; exit"], [/(ready)/]);

  await assert.rejects(program.ask("one"), /it has ended/);
});

Deno.test("a program that will not leave is ended", async () => {
  const stubborn = "trap '' TERM; echo ready; while true; do read -t 1; done";
  const program = await startProgram("bash", ["-c", stubborn], [/(ready)/]);

  await program[Symbol.asyncDispose]();

  assert.throws(() => Deno.kill(program.pid, "SIGCONT"));
});
