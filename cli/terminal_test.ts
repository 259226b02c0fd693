import assert from "node:assert/strict";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { ExitWith } from "./failure.ts";
import { interruptible, systemTerminal, wait } from "./terminal.ts";

Deno.test("wait() ends at once when its signal is aborted, before or meanwhile", async () => {
  const ending = new AbortController();
  const waiting = wait(600_000, ending.signal);

  ending.abort();

  await waiting;
  await wait(600_000, ending.signal);
});

Deno.test("the real terminal treats an empty variable as not set", () => {
  Deno.env.set("ENGINE_TERMINAL_TEST", "");

  assert.equal(systemTerminal().env("ENGINE_TERMINAL_TEST"), undefined);
});

Deno.test("the real terminal reads files and writes to both streams", async () => {
  const file = await Deno.makeTempFile();
  await Deno.writeTextFile(file, "hello");
  const code = `
    import { systemTerminal } from ${
    JSON.stringify(new URL("./terminal.ts", import.meta.url).href)
  };
    const terminal = systemTerminal();
    terminal.out(await terminal.readFile(Deno.args[0]) + "\\u001b[31m");
    terminal.err(await terminal.readInput());`;
  const program = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(program, code);

  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--quiet", program, file],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode("typed"));
  await writer.close();
  const { stdout, stderr } = await child.output();

  // A pipe gets text unchanged; only a terminal is protected.
  assert.equal(new TextDecoder().decode(stdout), "hello\u001b[31m\n");
  assert.equal(new TextDecoder().decode(stderr), "typed\n");
  await Deno.remove(file);
  await Deno.remove(program);
});

Deno.test("a task that Ctrl-C aborts through its signal fails with 130", async () => {
  const terminal = new FakeTerminal();
  const running = interruptible(terminal, (signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("cancelled")));
    }));

  terminal.interrupt();

  await assert.rejects(running, (thrown) => {
    assert.ok(thrown instanceof ExitWith);
    assert.deepEqual([thrown.exitCode, thrown.lines], [130, ["interrupted"]]);
    return true;
  });
  assert.equal(terminal.interruptListeners, 0);
});

Deno.test("a task that ends by itself ends as it does, and leaves no listener", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await interruptible(terminal, () => Promise.resolve(5)), 5);
  await assert.rejects(
    interruptible(terminal, () => Promise.reject(new Error("its own"))),
    /its own/,
  );

  assert.equal(terminal.interruptListeners, 0);
});
