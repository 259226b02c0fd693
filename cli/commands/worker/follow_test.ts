import assert from "node:assert/strict";
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import { FakeScreen } from "../../../tests/fakes/fake_terminal.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { type Script, scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { builtinStatus, replicaStatus, workerStatus } from "../../../tests/fakes/samples.ts";
import { ExitWith } from "../../failure.ts";
import { showProgress } from "../../progress.ts";
import {
  followAll,
  FollowedWorker,
  type FollowOptions,
  isAsDesired,
  isRenewed,
  stageOf,
} from "./follow.ts";

interface Options
  extends
    Partial<Pick<FollowOptions, "goal" | "before" | "renewed" | "mayBeUnchanged" | "desired">> {
  readonly timeoutMs?: number;
  readonly screen?: FakeScreen;
  /** When Ctrl-C is pressed. */
  readonly interruptMs?: number;
}

type States = readonly Partial<WorkerStatus>[];

/** Follows a worker named math, or several; the exit code and what was shown. */
async function follow(scripts: States | Record<string, Script>, options: Options = {}) {
  const all = Array.isArray(scripts) ? { math: { states: scripts } } : scripts;
  const { screen, timeoutMs = 60_000, interruptMs = Infinity, ...more } = options;
  const ctrlC = new AbortController();
  const terminal = new FakeTerminal({
    functions: scriptedWorkers(all as Record<string, Script>),
    onWait: (nowMs) => nowMs >= 1_000 + interruptMs && ctrlC.abort(),
    ...screen ? { screen } : {},
  });
  const engine = await terminal.connect({});
  const progress = showProgress(terminal);
  const followed = Object.keys(all).map((name) => {
    const row = progress.row(name);
    return new FollowedWorker({ engine, terminal, row, name, goal: "ready", ...more });
  });
  const end = await followAll(followed, { terminal, progress, timeoutMs, signal: ctrlC.signal })
    .then(() => undefined, (thrown) => thrown as Error);
  if (end && !(end instanceof ExitWith)) throw end;
  for (const line of end?.lines ?? []) terminal.err(line);
  return { terminal, code: end?.exitCode ?? 0, err: terminal.errLines, out: terminal.outLines };
}

function times(count: number, state: Partial<WorkerStatus>): Partial<WorkerStatus>[] {
  return Array.from({ length: count }, () => state);
}

Deno.test("a starting worker is shown phase by phase, each once, with the time", async () => {
  const { code, err, out } = await follow([
    { state: "queued" },
    { state: "queued" },
    ...times(4, { state: "installing" }),
    { state: "starting", dependencies: "installed" },
    { state: "starting", dependencies: "installed" },
    { state: "ready", dependencies: "installed" },
  ]);

  assert.equal(code, 0);
  assert.deepEqual(err, [
    "math  0 ms  waiting for its turn",
    "math  400 ms  checking dependencies",
    "math  600 ms  dependencies installed in 400 ms",
    "math  600 ms  starting as a plain process, without isolation",
  ]);
  assert.deepEqual(out, ["math is ready: pid 42, 900 ms, math::add"]);
});

Deno.test("the engine's reason is shown with a phase, and a warning stays", async () => {
  const vm = { isolation: "microvm" } as const;
  const warning = "KVM opens but runs no guest, so this is software emulation";
  const { err } = await follow([
    { ...vm, state: "starting", reason: "booting a microVM (tcg)" },
    { ...vm, state: "starting", reason: "booting a microVM (tcg)" },
    { ...vm, state: "starting", reason: null },
    { ...vm, state: "ready", reason: warning },
  ]);

  assert.deepEqual(err, [
    "math  0 ms  starting in a microVM: booting a microVM (tcg)",
    "math  200 ms  starting in a microVM",
    `math  ${warning}`,
  ]);
});

Deno.test("cached dependencies are named, once, and quick checks are not shown", async () => {
  const { err } = await follow([
    { state: "installing" },
    { state: "starting", dependencies: "cached" },
    { state: "starting", dependencies: "cached" },
    { dependencies: "cached" },
  ]);

  assert.deepEqual(err, [
    "math  100 ms  dependencies unchanged, the cached ones are used",
    "math  100 ms  starting as a plain process, without isolation",
  ]);
});

Deno.test("a long phase shows new output of the worker", async () => {
  const old = "2026-01-02T03:04:05.678Z out of an earlier run";
  const { err } = await follow({
    math: {
      states: [...times(40, { state: "installing" }), {}],
      log: [[old], [old, "2026-01-02T03:04:06.678Z out one"], [
        old,
        "2026-01-02T03:04:06.678Z out one",
        "2026-01-02T03:04:07.678Z err \x1b[31mtwo",
      ]],
    },
  });

  assert.deepEqual(err.filter((line) => line.includes("|")), ["math  | one", "math  | two"]);
});

Deno.test("a quick phase shows no output", async () => {
  const { err } = await follow({
    math: { states: [...times(25, { state: "starting" }), {}], log: [[], ["one"], ["one"]] },
  });

  assert.deepEqual(err.filter((line) => line.includes("|")), []);
});

Deno.test("a worker that fails ends with 1, its last lines and its reason", async () => {
  const { code, err, out } = await follow([
    { state: "starting" },
    { state: "failed", reason: "python3 is not there", tail: ["sh: \x1b[1mno", "bye"] },
  ]);

  assert.equal(code, 1);
  assert.deepEqual(out, []);
  assert.deepEqual(err.slice(1), [
    "  | sh: no",
    "  | bye",
    "error: math failed: python3 is not there; all it printed: engine worker logs math",
  ]);
});

Deno.test("output that is visible already is not repeated with the failure", async () => {
  const { err } = await follow({
    math: {
      states: [
        ...times(40, { state: "installing" }),
        { state: "failed", reason: "exit code 1", tail: ["one", "two"] },
      ],
      log: [[], ["one"], ["one"], ["one", "two"]],
    },
  });

  assert.equal(err.filter((line) => line.includes("one")).length, 1);
  assert.equal(err.filter((line) => line.includes("two")).length, 1);
});

Deno.test("a worker that ends at once is a failure, although the engine tries again", async () => {
  const { code, err } = await follow([
    { state: "starting" },
    { state: "waiting", reason: "It ended with exit code 3; next start in 1 s" },
  ]);

  assert.equal(code, 1);
  assert.match(
    err.at(-1)!,
    /^error: math ended and will be tried again: It ended with exit code 3/,
  );
});

Deno.test("a worker that takes too long ends with 3 and its state", async () => {
  const { code, err } = await follow([{ state: "starting" }], { timeoutMs: 2_000 });

  assert.equal(code, 3);
  assert.equal(
    err.at(-1),
    "error: math is still starting after 2.0 s; see: engine worker status math",
  );
});

Deno.test("Ctrl-C ends with 130 and a note that the engine continues", async () => {
  const { code, err } = await follow([{ state: "installing" }], { interruptMs: 500 });

  assert.equal(code, 130);
  assert.equal(
    err.at(-1),
    "interrupted; the engine continues with math; see: engine worker status math",
  );
});

Deno.test("a worker that is removed meanwhile is a failure, and the others continue", async () => {
  const { code, err, out } = await follow({
    gone: { states: [{ state: "starting" }], leaves: true },
    math: { states: [...times(5, { state: "starting" }), {}] },
  });

  assert.equal(code, 1);
  assert.ok(err.includes("error: NOT_FOUND: There is no worker gone; there are: math"), err.join());
  assert.equal(out.length, 1);
});

Deno.test("all replicas have to be ready", async () => {
  const one = replicaStatus();
  const two = (state: WorkerStatus["state"]) => replicaStatus({ number: 2, state, pid: 43 });
  const { code, err, out } = await follow([
    { state: "starting" },
    { replicas: [one, two("starting")] },
    { replicas: [one, two("ready")] },
  ]);

  assert.equal(code, 0);
  assert.equal(err.at(-1), "math  100 ms  1 of 2 ready");
  assert.deepEqual(out, ["math is ready: 2 replicas, pids 42 43, 900 ms, math::add"]);
});

Deno.test("a replica that fails is a failure, with its own reason", async () => {
  const broken = replicaStatus({ number: 2, state: "failed", reason: "out of memory (128 MiB)" });
  const { code, err } = await follow([{ replicas: [replicaStatus(), broken] }]);

  assert.equal(code, 1);
  assert.match(err.at(-1)!, /^error: replica 2 of math failed: out of memory \(128 MiB\); all it/);
});

Deno.test("after a restart only a later start counts", async () => {
  const { out } = await follow([
    { launch: 1 },
    { launch: 1, state: "stopping" },
    { launch: 1, state: "stopped" },
    { launch: 2, state: "starting" },
    { launch: 2, pid: 43, replicas: [replicaStatus({ started_at_ms: 5 })] },
  ], { before: workerStatus(), renewed: "all" });

  assert.match(out[0]!, /pid 43/);
});

Deno.test("a restart is complete when all replicas are new", async () => {
  const old = [replicaStatus(), replicaStatus({ number: 2, started_at_ms: 0 })];
  const [one, two] = old.map((each) => ({ ...each, started_at_ms: 9 }));
  const { terminal, code } = await follow([
    { launch: 2, replicas: [one!, old[1]!] },
    { launch: 2, replicas: [one!, old[1]!] },
    { launch: 3, replicas: [one!, two!] },
  ], { before: workerStatus({ replicas: old }), renewed: "all" });

  assert.equal(code, 0);
  assert.equal(terminal.now(), 1_200);
});

Deno.test("a state from before the request is not its outcome", async () => {
  const { code } = await follow([
    { state: "failed", launch: 1 },
    { state: "failed", launch: 1 },
    { state: "starting", launch: 2 },
    { launch: 2 },
  ], { before: workerStatus({ state: "failed" }) });

  assert.equal(code, 0);
});

Deno.test("a worker that stays failed is a failure in the end", async () => {
  const before = workerStatus({ state: "failed" });
  const { code, terminal } = await follow([{ state: "failed", reason: "no entry" }], { before });

  assert.equal(code, 1);
  assert.ok(terminal.now() - 1_000 < 1_500);
});

Deno.test("a change that starts nothing is complete after a second without a change", async () => {
  const before = workerStatus();
  const { code, terminal } = await follow([{}], { before, renewed: "all", mayBeUnchanged: true });

  assert.equal(code, 0);
  assert.ok(terminal.now() - 1_000 > 1_000);
});

Deno.test("a worker is not ready before it has the desired properties, however long that takes", async () => {
  const before = workerStatus();
  const vm = { isolation: "microvm" } as const;
  const { code, out } = await follow([
    ...times(30, {}),
    { ...vm, state: "starting" },
    { ...vm, launch: 2, pid: 43 },
  ], { before, renewed: "all", mayBeUnchanged: true, desired: vm });

  assert.equal(code, 0);
  assert.match(out[0]!, /pid 43/);
});

Deno.test("a worker that the engine leaves unchanged is a failure, with the engine's reason", async () => {
  const before = workerStatus();
  const kept = { launch: 2, reason: "Reload failed: no KVM" };
  const { code, err, out } = await follow([{}, { state: "starting" }, kept], {
    before,
    renewed: "all",
  });

  assert.equal(code, 1);
  assert.deepEqual(out, []);
  assert.match(
    err.at(-1)!,
    /^error: math: Reload failed: no KVM/,
  );
});

Deno.test("waiting for a worker to stop continues while it is stopping", async () => {
  const { code, out } = await follow(
    [{ state: "stopping" }, { state: "stopping" }, { state: "stopped", last_exit: "SIGTERM" }],
    { goal: "stopped" },
  );

  assert.equal(code, 0);
  assert.deepEqual(out, ["math is stopped (SIGTERM)"]);
});

Deno.test("waiting for a worker to stop ends when another client starts it", async () => {
  for (const state of ["queued", "starting", "ready", "waiting"] as const) {
    const { code, err } = await follow([{ state: "stopping" }, { state }], { goal: "stopped" });

    assert.equal(code, 1);
    const message = `error: math is ${state}: it was started meanwhile; ` +
      "see: engine worker status math";
    assert.equal(err.at(-1), message);
  }
});

Deno.test("several workers are followed at once, and a failed one does not stop the others", async () => {
  const { code, err, out } = await follow({
    a: { states: [{ state: "starting" }, { state: "failed", reason: "no luck" }] },
    b: { states: [...times(10, { state: "starting" }), {}] },
    c: { states: [{}] },
  });

  assert.equal(code, 1);
  assert.deepEqual(out, [
    "c is ready: pid 42, 900 ms, math::add",
    "b is ready: pid 42, 900 ms, math::add",
  ]);
  assert.deepEqual(err.filter((line) => line.startsWith("error")), [
    "error: a failed: no luck; all it printed: engine worker logs a",
  ]);
});

Deno.test("a changed worker that is late is reported as unchanged, or with its replicas", async () => {
  const replicas = [replicaStatus(), replicaStatus({ number: 2, state: "starting" })];
  const options = { before: workerStatus(), renewed: "all" as const, timeoutMs: 500 };

  const old = await follow([{}], options);
  const some = await follow([{ replicas }], options);

  assert.deepEqual([old.code, some.code], [3, 3]);
  const see = "see: engine worker status math";
  assert.equal(old.err.at(-1), `error: math still runs as before after 500 ms; ${see}`);
  assert.equal(some.err.at(-1), `error: math has 1 of 2 replicas ready after 500 ms; ${see}`);
});

Deno.test("a failed worker and a late one end with 1", async () => {
  const { code, err } = await follow({
    a: { states: [{ state: "failed", reason: "no luck" }] },
    b: { states: [{ state: "starting" }] },
  }, { timeoutMs: 1_000 });

  assert.equal(code, 1);
  assert.ok(err.includes("error: b is still starting after 1.0 s; see: engine worker status b"));
});

Deno.test("on a terminal each worker has one row, which stays", async () => {
  const screen = new FakeScreen();
  const { code } = await follow({
    math: {
      states: [
        ...times(40, { state: "installing", dependencies: null }),
        { state: "starting", dependencies: "installed" },
        { dependencies: "installed" },
      ],
      log: [[], ["2026-01-01T00:00:00.000Z out Collecting numpy"]],
    },
    "engine-state": { states: [{ state: "starting" }, {}] },
  }, { screen });

  assert.equal(code, 0);
  const frame = screen.frames.find((frame) => frame.includes("Collecting"))!;
  const [first, second, ...more] = frame.split("\n");
  assert.match(first!, /^math +3\.\d s {2}checking dependencies {2}Collecting numpy$/);
  assert.match(second!, /^engine-state +\d+ ms {2}ready$/);
  assert.deepEqual(more, []);
  assert.equal(screen.dimmed.slice(0, 16), "Collecting numpy");
  assert.match(
    screen.text,
    /^math +4\.\d s {2}ready, dependencies installed\nengine-state +.* {2}ready\n/,
  );
  assert.deepEqual(screen.text.split("\n").slice(2), [
    "math is ready: pid 42, 900 ms, math::add",
    "engine-state is ready: part of the engine, 900 ms, state::get, state::set",
  ]);
  assert.ok(screen.isRestored);
});

Deno.test("on a terminal a failure stands below the rows, with its last output", async () => {
  const screen = new FakeScreen();
  await follow({
    math: {
      states: [...times(40, { state: "starting" }), {
        state: "failed",
        reason: "no",
        tail: ["one"],
      }],
      log: [[], ["one"], ["one"]],
    },
  }, { screen });

  assert.deepEqual(screen.text.split("\n").slice(1), [
    "  | one",
    "error: math failed: no; all it printed: engine worker logs math",
  ]);
});

Deno.test("on a terminal Ctrl-C leaves the rows and restores the terminal", async () => {
  const screen = new FakeScreen();
  const { code } = await follow([{ state: "installing" }], { screen, interruptMs: 500 });

  assert.equal(code, 130);
  assert.match(
    screen.text,
    /^math +500 ms {2}checking dependencies\ninterrupted; the engine continues/,
  );
  assert.ok(screen.isRestored);
});

function replicas(...states: WorkerState[]): WorkerStatus["replicas"] {
  return states.map((state, i) => replicaStatus({ number: i + 1, state }));
}

for (
  const [stage, status] of [
    ["moving", { state: "queued" }],
    ["moving", { state: "installing" }],
    ["moving", { state: "starting" }],
    ["moving", { state: "stopping" }],
    ["ended", { state: "waiting" }],
    ["ended", { state: "stopped" }],
    ["ended", { state: "failed" }],
    ["ready", {}],
    ["ready", { replicas: [] }],
    ["ready", { replicas: replicas("ready", "ready") }],
    ["moving", { replicas: replicas("ready", "starting", "failed") }],
    ["ended", { replicas: replicas("ready", "failed") }],
    ["ended", { replicas: replicas("ready", "waiting") }],
  ] as [string, Partial<WorkerStatus>][]
) {
  Deno.test(`a worker with ${JSON.stringify(status).slice(0, 60)}… is ${stage} (${status.replicas?.length ?? 1})`, () => {
    assert.equal(stageOf(workerStatus(status)), stage);
  });
}

Deno.test("a built-in worker that is ready is ready", () => {
  assert.equal(stageOf(builtinStatus()), "ready");
});

Deno.test("a worker is renewed when it was started since and every replica is new", () => {
  const before = workerStatus({ launch: 3, replicas: replicas("ready", "ready") });
  const started = (...ms: (number | null)[]) =>
    ms.map((started_at_ms, i) => replicaStatus({ number: i + 1, started_at_ms }));

  assert.equal(isRenewed(before, before), false);
  assert.equal(isRenewed(before, { ...before, launch: 4 }), false);
  assert.equal(isRenewed(before, { ...before, launch: 4, replicas: started(9, 0) }), false);
  assert.equal(isRenewed(before, { ...before, launch: 5, replicas: started(9, 9) }), true);
  assert.equal(isRenewed(before, { ...before, launch: 5, replicas: started(9) }), true);
  assert.equal(isRenewed(builtinStatus(), builtinStatus({ launch: 2 })), true);
});

Deno.test("a worker is as desired when every named property is", () => {
  const status = workerStatus({ isolation: "microvm", accelerator: "tcg" });

  assert.equal(isAsDesired(status, {}), true);
  assert.equal(
    isAsDesired(status, { isolation: "microvm", accelerator: "tcg", replicas: 1 }),
    true,
  );
  assert.equal(isAsDesired(status, { isolation: "process" }), false);
  assert.equal(isAsDesired(status, { isolation: "microvm", accelerator: "kvm" }), false);
  assert.equal(isAsDesired(status, { replicas: 2 }), false);
  assert.equal(isAsDesired(workerStatus({ isolation: "process" }), { accelerator: "kvm" }), true);
});
