import assert from "node:assert/strict";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { LogTail, newLines } from "./logs.ts";

function setup(looks: string[][], afterLast?: () => void) {
  const remaining = [...looks];
  const tails: unknown[] = [];
  const terminal = new FakeTerminal({
    functions: {
      "engine::supervisor::logs": ({ tail }) => {
        tails.push(tail);
        const lines = remaining.shift() ?? [];
        if (remaining.length === 0) afterLast?.();
        return { lines };
      },
    },
  });
  return { terminal, tails };
}

Deno.test("worker logs prints the last lines", async () => {
  const { terminal, tails } = setup([["one", "two"]]);

  assert.equal(await terminal.run("worker", "logs", "math", "--tail", "2"), 0);

  assert.deepEqual(terminal.outLines, ["one", "two"]);
  assert.deepEqual(tails, [2]);
});

Deno.test("worker logs removes control sequences", async () => {
  const title = "\u001b]0;owned\u0007";
  const { terminal } = setup([[`a${title}b`, "c\u001b[2Jd\re", "\u009b31mf\tg"]]);

  assert.equal(await terminal.run("worker", "logs", "math"), 0);

  assert.deepEqual(terminal.outLines, ["ab", "cde", "31mf\tg"]);
});

Deno.test("worker logs -f prints new lines until it is interrupted", async () => {
  let interrupt = () => {};
  const { terminal } = setup([["one"], ["one", "two"], ["one", "two", "three"]], () => interrupt());
  interrupt = () => terminal.interrupt();

  assert.equal(await terminal.run("worker", "logs", "math", "-f"), 0);

  assert.deepEqual(terminal.outLines, ["one", "two", "three"]);
  assert.equal(terminal.interruptListeners, 0);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("worker logs with a wrong --tail is not understood", async () => {
  const { terminal } = setup([]);

  assert.equal(await terminal.run("worker", "logs", "math", "--tail", "many"), 2);
  assert.match(terminal.errText, /--tail: expected 0 to 100000, received "many"/);
});

Deno.test("newLines() finds lines that were added, also when the first ones are gone", () => {
  assert.deepEqual(newLines(["a", "b"], ["a", "b", "c"]), ["c"]);
  assert.deepEqual(newLines(["a", "b", "c"], ["b", "c", "d"]), ["d"]);
  assert.deepEqual(newLines(["a"], ["a"]), []);
  assert.deepEqual(newLines([], ["a", "b"]), ["a", "b"]);
});

Deno.test("newLines() returns equal lines that follow one another", () => {
  assert.deepEqual(newLines(["a", "b"], ["a", "b", "b"]), ["b"]);
});

Deno.test("newLines() returns all lines without an overlap", () => {
  assert.deepEqual(newLines(["a", "b"], ["x", "b", "y"]), ["x", "b", "y"]);
});

async function tailOf(looks: string[][], first: number): Promise<string[][]> {
  const asked: unknown[] = [];
  const remaining = [...looks];
  const terminal = new FakeTerminal({
    functions: {
      "engine::supervisor::logs": (payload) => {
        asked.push(payload["tail"]);
        return { lines: remaining.shift()! };
      },
    },
  });
  await using engine = await terminal.connect({});
  const tail = new LogTail(engine, "math");
  return await Array.fromAsync(looks, () => tail.next(first));
}

Deno.test("LogTail returns the last lines first and then new ones only", async () => {
  const looks = await tailOf([["a", "b"], ["a", "b"], ["a", "b", "c"], [], ["d"]], 2);

  assert.deepEqual(looks, [["a", "b"], [], ["c"], [], ["d"]]);
});

Deno.test("LogTail without first lines begins with new ones", async () => {
  assert.deepEqual(await tailOf([["old"], ["old", "new"]], 0), [[], ["new"]]);
});

const LOG_PATH = "/project/.engine/engine.log";

Deno.test("engine logs without a name prints the log of the engine in the background", async () => {
  const terminal = new FakeTerminal({ files: { [LOG_PATH]: "one\ntwo\nthree\n" } });

  assert.equal(await terminal.run("logs", "--tail", "2"), 0);
  assert.deepEqual(terminal.outLines, ["two", "three"]);
});

Deno.test("engine logs -f prints whole new lines, also of a log that begins anew", async () => {
  const logs = ["a\n", "a\nb\nhal", "a\nb\nhalf\n", "new\n"];
  let reads = 0;
  const terminal: FakeTerminal = new FakeTerminal({
    files: {
      get [LOG_PATH]() {
        return logs[Math.min(reads++, logs.length - 1)]!;
      },
    },
    onWait: () => reads > logs.length && terminal.interrupt(),
  });

  await terminal.run("logs", "-f");

  assert.deepEqual(terminal.outLines, ["a", "b", "half", "new"]);
});

Deno.test("engine logs without a log says where the log is", async () => {
  const terminal = new FakeTerminal();

  assert.equal(await terminal.run("logs"), 1);
  assert.match(terminal.errText, /engine\.log not found: an engine that was not started with/);
});
