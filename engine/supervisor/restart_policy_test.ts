import assert from "node:assert/strict";
import { RESTART_DEFAULTS, type RestartSettings } from "../install/manifest.ts";
import type { RunOver } from "./replica_run.ts";
import { type RestartDecision, RestartPolicy, UnexpectedExits } from "./restart_policy.ts";

/** The decisions about a worker that exits after each of these runs. */
function play(
  settings: Partial<RestartSettings>,
  runs: readonly { ranMs: number; readyForMs?: number; clean?: boolean }[],
): RestartDecision[] {
  const policy = new RestartPolicy({ ...RESTART_DEFAULTS, ...settings });
  let atMs = 5_000;
  return runs.map(({ ranMs, readyForMs = 0, clean = false }) => {
    atMs += ranMs;
    const next = policy.decide({ readyForMs, atMs, clean });
    if (next.type === "wait") atMs += next.ms;
    return next;
  });
}

function waitsOf(decisions: readonly RestartDecision[]): (number | string)[] {
  return decisions.map((decision) => decision.type === "wait" ? decision.ms : decision.type);
}

const QUICK = { ranMs: 10 };

Deno.test("RestartPolicy doubles its waits and gives up at the fifth quick exit", () => {
  const decisions = play({}, [QUICK, QUICK, QUICK, QUICK, QUICK]);

  assert.deepEqual(decisions, [
    { type: "wait", ms: 1_000 },
    { type: "wait", ms: 2_000 },
    { type: "wait", ms: 4_000 },
    { type: "wait", ms: 8_000 },
    { type: "give_up", exits: 5 },
  ]);
});

Deno.test("RestartPolicy begins with backoff_ms and never waits longer than 30 s", () => {
  const settings = { backoff_ms: 7_000, max: 7 };

  const waits = waitsOf(play(settings, Array.from({ length: 7 }, () => QUICK)));

  assert.deepEqual(waits, [7_000, 14_000, 28_000, 30_000, 30_000, 30_000, "give_up"]);
});

Deno.test("RestartPolicy gives up although its waits alone exceed within_s", () => {
  const waits = waitsOf(play({ max: 3, within_s: 1, backoff_ms: 30_000 }, [QUICK, QUICK, QUICK]));

  assert.deepEqual(waits, [30_000, 30_000, "give_up"]);
});

for (
  const [title, ranMs, last] of [
    ["gives up at the last moment of within_s", 5_000, "give_up"],
    ["goes on a millisecond later", 5_001, "wait"],
  ] as const
) {
  Deno.test(`RestartPolicy ${title}`, () => {
    const decisions = play({ max: 3, within_s: 10 }, [QUICK, { ranMs: 5_000 }, { ranMs }]);

    assert.equal(decisions.at(-1)!.type, last);
  });
}

Deno.test("RestartPolicy never gives up a worker that keeps running for long enough", () => {
  const runs = Array.from({ length: 100 }, () => ({ ranMs: 15_001, readyForMs: 15_000 }));

  const decisions = play({}, runs);

  assert.deepEqual(decisions.at(-1), { type: "wait", ms: 30_000 });
});

for (
  const [title, readyForMs, ms] of [
    ["waits as at first after a minute of being ready", 60_000, 1_000],
    ["goes on doubling when that minute was not full", 59_999, 8_000],
  ] as const
) {
  Deno.test(`RestartPolicy ${title}`, () => {
    const last = { ranMs: 70_000, readyForMs };

    assert.deepEqual(play({}, [QUICK, QUICK, QUICK, last]).at(-1), { type: "wait", ms });
  });
}

Deno.test("RestartPolicy counts exits over all of within_s, also after long ready times", () => {
  const runs = Array.from({ length: 3 }, () => ({ ranMs: 90_000, readyForMs: 80_000 }));

  const waits = waitsOf(play({ max: 3, within_s: 3_600 }, runs));

  assert.deepEqual(waits, [1_000, 1_000, "give_up"]);
});

Deno.test("RestartPolicy with max 1 gives up at the first exit", () => {
  assert.deepEqual(play({ max: 1 }, [QUICK]), [{ type: "give_up", exits: 1 }]);
});

Deno.test("RestartPolicy counts anew after reset(), waits included", () => {
  const policy = new RestartPolicy(RESTART_DEFAULTS);
  const end = { readyForMs: 0, atMs: 0, clean: false };
  for (let i = 0; i < 4; i++) policy.decide(end);

  policy.reset();
  const decisions = Array.from({ length: 5 }, () => policy.decide(end));

  assert.deepEqual(waitsOf(decisions), [1_000, 2_000, 4_000, 8_000, "give_up"]);
});

for (
  const [policy, clean, expected] of [
    ["always", true, { type: "wait", ms: 1_000 }],
    ["always", false, { type: "wait", ms: 1_000 }],
    ["on-failure", true, { type: "stay", failed: false }],
    ["on-failure", false, { type: "wait", ms: 1_000 }],
    ["never", true, { type: "stay", failed: false }],
    ["never", false, { type: "stay", failed: true }],
  ] as const
) {
  const end = clean ? "a clean end" : "a failure";
  Deno.test(`RestartPolicy ${policy}: after ${end} ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(play({ policy }, [{ ranMs: 10, clean }]), [expected]);
  });
}

Deno.test("RestartPolicy on-failure gives up after failures, and does not restart after clean exits", () => {
  const settings = { policy: "on-failure", max: 2 } as const;

  const clean = play(settings, [{ ranMs: 1, clean: true }, { ranMs: 1, clean: true }, QUICK]);
  const failing = play(settings, [QUICK, QUICK]);

  assert.deepEqual(clean.map(({ type }) => type), ["stay", "stay", "wait"]);
  assert.deepEqual(failing.map(({ type }) => type), ["wait", "give_up"]);
});

function setup(settings: Partial<RestartSettings> = {}) {
  const exits = new UnexpectedExits();
  exits.configure({ ...RESTART_DEFAULTS, ...settings });
  const exit = (code: number, readyForMs = 1_000, atMs = 0) => {
    const over: RunOver = { type: "ended", ended: { code, signal: null } };
    return exits.decide({ over, readyForMs, atMs });
  };
  const silent = (wasReady: boolean) =>
    exits.decide({ over: { type: "silent", wasReady }, readyForMs: 0, atMs: 0 });
  return { exits, exit, silent };
}

Deno.test("UnexpectedExits explains the exit, whether the worker was ready, and when it restarts", () => {
  const { exit } = setup();

  const reason = "It ended with exit code 3";
  const text = `${reason}; next start in 1 s`;
  assert.deepEqual(exit(3), { reason, next: { state: "waiting", ms: 1_000, text } });
  assert.equal(exit(3, 0).reason, "It ended with exit code 3 before it was ready");
});

Deno.test("UnexpectedExits stops after a clean exit and fails after another if the policy says so", () => {
  const onFailure = setup({ policy: "on-failure" });
  const text = "It ended with exit code 0, and its restart policy is on-failure";
  assert.deepEqual(onFailure.exit(0).next, { state: "stopped", text });
  assert.equal(onFailure.exit(1).next.state, "waiting");

  const never = setup({ policy: "never" });
  assert.equal(never.exit(0).next.state, "stopped");
  assert.equal(never.exit(1).next.state, "failed");
});

Deno.test("UnexpectedExits gives up after too many exits, unless they are reset or the settings change", () => {
  const { exits, exit } = setup({ max: 3 });
  exit(1);
  exit(1);
  const text = "Given up after it ended 3 times in quick succession: It ended with exit code 1";
  assert.deepEqual(exit(1).next, { state: "failed", text });

  exits.reset();
  assert.equal(exit(1).next.state, "waiting");
  exit(1);
  exits.configure({ ...RESTART_DEFAULTS, max: 3 });
  assert.equal(exit(1).next.state, "failed");
  exits.configure({ ...RESTART_DEFAULTS, max: 4 });
  assert.equal(exit(1).next.state, "waiting");
});

Deno.test("UnexpectedExits fails at once when a program never registered, with any policy", () => {
  const { silent } = setup({ policy: "always" });

  const text = "It did not register with the engine within 120 s";
  assert.deepEqual(silent(false), { reason: text, next: { state: "failed", text } });
});

Deno.test("UnexpectedExits treats a program without a connection like one that failed", () => {
  const { silent } = setup({ policy: "on-failure" });

  const { reason, next } = silent(true);

  assert.equal(reason, "It had no connection to the engine for 120 s");
  assert.equal(next.state, "waiting");
});
