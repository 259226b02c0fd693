import assert from "node:assert/strict";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";

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

Deno.test("worker logs gives a terminal nothing to obey", async () => {
  const title = "\u001b]0;owned\u0007";
  const { terminal } = setup([[`a${title}b`, "c\u001b[2Jd\re", "\u009b31mf\tg"]]);

  assert.equal(await terminal.run("worker", "logs", "math"), 0);

  assert.deepEqual(terminal.outLines, ["ab", "cde", "31mf\tg"]);
});

Deno.test("worker logs -f goes on with what is new until it is interrupted", async () => {
  let interrupt = () => {};
  const { terminal } = setup([["one"], ["one", "two"], ["one", "two", "three"]], () => interrupt());
  interrupt = () => terminal.interrupt();

  assert.equal(await terminal.run("worker", "logs", "math", "-f"), 0);

  assert.deepEqual(terminal.outLines, ["one", "two", "three"]);
  assert.equal(terminal.interruptListeners, 0);
  assert.equal(terminal.openLines, 0);
});

Deno.test("worker logs with a wrong --tail is not understood", async () => {
  const { terminal } = setup([]);

  assert.equal(await terminal.run("worker", "logs", "math", "--tail", "many"), 2);
  assert.match(terminal.errText, /--tail: expected 0 to 100000, received "many"/);
});
