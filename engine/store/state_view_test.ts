import assert from "node:assert/strict";
import { keptLog } from "../../tests/cluster/kept_log.ts";
import { MemoryLogServer } from "../../tests/cluster/memory_log.ts";
import { encodeChanges } from "./log_changes.ts";
import { StateView } from "./state_view.ts";

/** A path in a directory of its own. */
async function withPath(body: (path: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await body(`${directory}/view.sqlite`);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

/** A log in which each message sets one key to its number. */
async function numbers(count: number, server = new MemoryLogServer()): Promise<MemoryLogServer> {
  const log = server.open();
  for (let i = 0; i < count; i++) {
    await log.append(
      encodeChanges([["set", ["entry", `${server.last}`], server.last]]),
      server.last,
    );
  }
  return server;
}

async function keysOf(view: StateView): Promise<unknown[]> {
  const keys: unknown[] = [];
  for await (const { key } of view.kv.list({ prefix: ["entry"] })) keys.push(key[1]);
  return keys.map(Number).sort((a, b) => a - b);
}

Deno.test("StateView goes on where it was, in its file", () =>
  withPath(async (path) => {
    const server = await numbers(3);
    {
      using view = await StateView.open(path, keptLog());
      await view.catchUp(server.open());
      assert.equal(view.applied, 3);
    }
    await numbers(700, server);
    server.messages.splice(0, 3); // Not asked for again.

    using view = await StateView.open(path, keptLog());
    await view.catchUp(server.open());

    assert.equal(view.applied, 703);
    assert.deepEqual(await keysOf(view), Array.from({ length: 703 }, (_, i) => i));
  }));

Deno.test("StateView forgets what it has of another log", () =>
  withPath(async (path) => {
    using view = await StateView.open(path, keptLog());
    await view.catchUp((await numbers(900)).open());

    await view.catchUp((await numbers(2)).open());

    assert.deepEqual([view.applied, await keysOf(view)], [2, [0, 1]]);
  }));

Deno.test("StateView loads a snapshot in place of what it has, and again after half of one", () =>
  withPath(async (path) => {
    const server = await numbers(5);
    using view = await StateView.open(path, keptLog());
    await view.catchUp(server.open());
    await numbers(5, server);
    const piece = (key: string): Uint8Array => encodeChanges([["set", ["entry", key], 1]]);
    server.snapshot = { upTo: 9, pieces: [piece("100"), piece("200")] };
    server.messages.splice(0, 9);
    const log = server.open();
    const half: typeof log.read = async function* (from) {
      for await (const item of log.read(from)) {
        yield item;
        throw new Error("the connection is lost");
      }
    };

    await assert.rejects(view.catchUp({ ...log, end: () => log.end(), read: half } as typeof log));
    assert.equal(view.applied, 0);
    await view.catchUp(log);

    assert.deepEqual([view.applied, await keysOf(view)], [10, [9, 100, 200]]);
  }));

Deno.test("StateView refuses a log that has lost messages", () =>
  withPath(async (path) => {
    const server = await numbers(5);
    using view = await StateView.open(path, keptLog());
    await view.catchUp(server.open());
    server.last = 3;

    await assert.rejects(view.catchUp(server.open()), {
      code: "store_unavailable",
      message: /ends at 3, but this engine has seen message 5/,
    });
  }));

Deno.test("StateView is made anew when its file is damaged, and refuses a second engine", () =>
  withPath(async (path) => {
    const server = await numbers(5);
    await Deno.writeTextFile(path, "no database".repeat(1_000));
    const report = keptLog();

    using view = await StateView.open(path, report);
    await view.catchUp(server.open());

    assert.deepEqual(await keysOf(view), [0, 1, 2, 3, 4]);
    assert.match(report.lines.join(), /is rebuilt/);
    await assert.rejects(StateView.open(path, report), { code: "store_unavailable" });
  }));
