import assert from "node:assert/strict";
import type { WorkerStatus } from "../engine/mod.ts";
import type { Json } from "../mod.ts";
import { FakeTerminal } from "../tests/fakes/fake_terminal.ts";
import { CommandError } from "./failure.ts";
import { waitUntilReady, waitUntilStopped } from "./worker_wait.ts";

const ready: WorkerStatus = {
  name: "math",
  kind: "directory",
  state: "ready",
  reason: null,
  path: "/p",
  isolation: "process",
  pid: 42,
  functions: [],
  restarts: 0,
  started_at_ms: 0,
  ready_after_ms: 10,
  last_exit: null,
  dependencies: null,
  launch: 1,
  tail: [],
  log_path: "/p.log",
};

/** An engine whose worker goes through these states, one with each question. */
async function setup(states: Partial<WorkerStatus>[], log: string[][] = []) {
  const remaining = [...states];
  const logs = [...log];
  const terminal = new FakeTerminal({
    functions: {
      "engine::supervisor::status": () => {
        const changed = remaining.length > 1 ? remaining.shift() : remaining[0];
        return { ...ready, ...changed } as unknown as Json;
      },
      "engine::supervisor::logs": () => ({ lines: logs.shift() ?? [] }),
    },
  });
  return { terminal, engine: await terminal.connect({}), name: "math", waitMs: 60_000 };
}

Deno.test("a worker on its way is reported phase by phase, with the time each took", async () => {
  const following = await setup([
    { state: "queued" },
    { state: "installing" },
    { state: "installing" },
    { state: "installing" },
    { state: "starting", dependencies: "installed" },
    { state: "ready", dependencies: "installed" },
  ]);

  const status = await waitUntilReady(following);

  assert.equal(status.state, "ready");
  assert.deepEqual(following.terminal.errLines, [
    "math  waiting for its turn",
    "math  installing dependencies",
    "math  dependencies installed (300 ms)",
    "math  starting as a plain process, which keeps nothing apart",
  ]);
});

Deno.test("cached dependencies are named", async () => {
  const following = await setup([
    { state: "installing" },
    { state: "starting", dependencies: "cached", isolation: "microvm" },
    { dependencies: "cached" },
  ]);

  await waitUntilReady(following);

  assert.deepEqual(following.terminal.errLines, [
    "math  dependencies unchanged, the cached ones are used",
    "math  starting in a microVM",
  ]);
});

Deno.test("a worker that was ready all the time has no phases", async () => {
  const following = await setup([{ dependencies: "installed" }]);

  await waitUntilReady(following);

  assert.deepEqual(following.terminal.errLines, []);
});

Deno.test("a long installation that fails shows each of its lines once", async () => {
  const installing = Array.from({ length: 40 }, () => ({ state: "installing" as const }));
  const failed = { state: "failed" as const, reason: "exit code 1", tail: ["one", "two"] };
  const following = await setup([...installing, failed], [[], ["2026 out one"], [
    "2026 out one",
    "2026 out two",
  ]]);

  await assert.rejects(waitUntilReady(following), /math failed: exit code 1/);

  const { errLines } = following.terminal;
  assert.equal(errLines.filter((line) => line.includes("one")).length, 1);
  assert.equal(errLines.filter((line) => line.includes("two")).length, 1);
});

Deno.test("a long installation shows what it prints", async () => {
  const installing = Array.from({ length: 40 }, () => ({ state: "installing" as const }));
  const following = await setup([...installing, {}], [
    ["of an earlier run"],
    ["of an earlier run", "one"],
    ["of an earlier run", "one", "two"],
  ]);

  await waitUntilReady(following);

  const shown = following.terminal.errLines.filter((line) => line.startsWith("  | "));
  assert.deepEqual(shown, ["  | one", "  | two"]);
});

Deno.test("a worker that fails is shown with its last lines and its reason", async () => {
  const following = await setup([
    { state: "installing" },
    {
      state: "failed",
      reason: "the installation ended with exit code 1",
      tail: ["no such package"],
    },
  ]);

  await assert.rejects(() => waitUntilReady(following), (thrown) => {
    assert.ok(thrown instanceof CommandError);
    assert.match(thrown.message, /^math failed: the installation ended with exit code 1; all it/);
    return true;
  });

  assert.equal(following.terminal.errLines.at(-1), "  | no such package");
});

Deno.test("a worker that ends at once is an error, although the engine tries again", async () => {
  const following = await setup([{ state: "starting" }, {
    state: "waiting",
    last_exit: "exit code 3",
  }]);

  await assert.rejects(
    () => waitUntilReady(following),
    /^CommandError: math ended and will be tried again: exit code 3/,
  );
});

Deno.test("a worker that needs too long is an error that says where it stands", async () => {
  const following = { ...await setup([{ state: "starting" }]), waitMs: 2_000 };

  await assert.rejects(
    () => waitUntilReady(following),
    /math is still starting after 2\.0 s; see: engine worker status math/,
  );
});

Deno.test("after a restart only a later start counts", async () => {
  const following = await setup([
    { launch: 1 },
    { launch: 1, state: "stopping" },
    { launch: 1, state: "stopped" },
    { launch: 2, state: "starting" },
    { launch: 2, pid: 43 },
  ]);

  const status = await waitUntilReady({ ...following, afterLaunch: 1 });

  assert.equal(status.pid, 43);
});

Deno.test("a state from before the request is not taken for its outcome", async () => {
  const following = await setup([
    { state: "failed", launch: 1 },
    { state: "failed", launch: 1 },
    { state: "starting", launch: 2 },
    { launch: 2 },
  ]);

  const status = await waitUntilReady({ ...following, afterLaunch: 1 });

  assert.equal(status.launch, 2);
});

Deno.test("a worker that stays failed is an error in the end", async () => {
  const following = await setup([{ state: "failed", launch: 1, reason: "no entry" }]);

  await assert.rejects(() => waitUntilReady({ ...following, afterLaunch: 1 }), /failed: no entry/);
});

Deno.test("waiting for a worker to end goes on while it is stopping", async () => {
  const following = await setup([{ state: "stopping" }, { state: "stopping" }, {
    state: "stopped",
  }]);

  assert.equal((await waitUntilStopped(following)).state, "stopped");
});

Deno.test("a worker that does not end is an error", async () => {
  const following = { ...await setup([{ state: "stopping" }]), waitMs: 500 };

  await assert.rejects(() => waitUntilStopped(following), /still stopping after 500 ms/);
});
