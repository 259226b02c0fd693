import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { CHANGES_AT_ONCE_MAX, CHANGES_PER_CALLER_MAX, WriteTurns } from "./write_turns.ts";

/** Turns whose changes run until they are ended. */
function setup(memory = UNLIMITED_MEMORY) {
  const turns = new WriteTurns(memory);
  const running: { name: string; end(): void }[] = [];
  const ask = (caller: string, name = caller): Promise<string> => {
    return turns.run(caller, 10, () => {
      return new Promise((resolve) => running.push({ name, end: () => resolve(name) }));
    });
  };
  const settled = () => new Promise((resolve) => setTimeout(resolve));
  return { turns, running, ask, settled };
}

Deno.test("a few changes are made at once, and callers that wait take turns", async () => {
  const { running, ask, settled } = setup();
  const first = Array.from({ length: CHANGES_AT_ONCE_MAX }, () => ask("flood"));
  const waiting = [ask("flood", "f1"), ask("flood", "f2"), ask("other", "o1")];
  await settled();
  assert.equal(running.length, CHANGES_AT_ONCE_MAX);

  for (let i = 0; i < 3; i++) {
    running[i]!.end();
    await settled();
  }

  assert.deepEqual(running.slice(CHANGES_AT_ONCE_MAX).map(({ name }) => name), ["f1", "o1", "f2"]);
  for (const { end } of running) end();
  await Promise.all([...first, ...waiting]);
});

Deno.test("a caller with too many waiting changes is refused, another is not", async () => {
  const { running, ask, settled } = setup();
  const count = CHANGES_AT_ONCE_MAX + CHANGES_PER_CALLER_MAX;
  const all = Array.from({ length: count }, () => ask("flood"));

  await assert.rejects(ask("flood"), { code: "overloaded" });
  all.push(ask("other"));

  for (let done = 0; done < all.length; done++) {
    if (running[done] === undefined) await settled();
    running[done]!.end();
  }
  await Promise.all(all);
});

Deno.test("what waits is in the memory budget, and a change that fails gives its place", async () => {
  let taken = 0;
  const memory = {
    ...UNLIMITED_MEMORY,
    take: (_use: string, bytes: number) => {
      if (taken + bytes > 10) return false;
      taken += bytes;
      return true;
    },
    release: (_use: string, bytes: number) => void (taken -= bytes),
  };
  const { turns, running, ask, settled } = setup(memory);
  const all = Array.from({ length: CHANGES_AT_ONCE_MAX - 1 }, () => ask("a"));
  const failing = turns.run("a", 10, () => Promise.reject(new Error("disk")));
  const waiting = ask("b");
  assert.equal(taken, 10);
  await assert.rejects(ask("c"), { code: "overloaded" });

  await assert.rejects(failing, { message: "disk" });
  await settled();

  assert.equal(taken, 0);
  for (const { end } of running) end();
  await Promise.all([...all, waiting]);
});
