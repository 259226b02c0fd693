import assert from "node:assert/strict";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { LogTail, newLines } from "./log_tail.ts";

Deno.test("newLines() finds what was added at the end, also when the beginning has gone", () => {
  assert.deepEqual(newLines(["a", "b"], ["a", "b", "c"]), ["c"]);
  assert.deepEqual(newLines(["a", "b", "c"], ["b", "c", "d"]), ["d"]);
  assert.deepEqual(newLines(["a"], ["a"]), []);
  assert.deepEqual(newLines([], ["a", "b"]), ["a", "b"]);
});

Deno.test("newLines() takes equal lines for new ones when they follow one another", () => {
  assert.deepEqual(newLines(["a", "b"], ["a", "b", "b"]), ["b"]);
});

Deno.test("newLines() takes all for new when nothing overlaps", () => {
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

Deno.test("LogTail hands out the last lines first and then only what is new", async () => {
  const looks = await tailOf([["a", "b"], ["a", "b"], ["a", "b", "c"], [], ["d"]], 2);

  assert.deepEqual(looks, [["a", "b"], [], ["c"], [], ["d"]]);
});

Deno.test("LogTail with no first lines begins with what comes", async () => {
  assert.deepEqual(await tailOf([["old"], ["old", "new"]], 0), [[], ["new"]]);
});
