import assert from "node:assert/strict";
import { RESTART_DEFAULTS, type RestartSettings } from "../install/manifest.ts";
import { type AfterEnd, RestartPolicy } from "./restart_policy.ts";

/** Plays a worker that runs for so long each time, half of that ready, until it is left alone. */
function play(
  settings: Partial<RestartSettings>,
  runs: readonly { ranMs: number; readyForMs?: number; clean?: boolean }[],
): AfterEnd[] {
  const policy = new RestartPolicy({ ...RESTART_DEFAULTS, ...settings });
  let atMs = 5_000;
  return runs.map(({ ranMs, readyForMs = 0, clean = false }) => {
    atMs += ranMs;
    const next = policy.ended({ readyForMs, atMs, clean });
    if (next.type === "wait") atMs += next.ms;
    return next;
  });
}

function waitsOf(decisions: readonly AfterEnd[]): (number | string)[] {
  return decisions.map((decision) => decision.type === "wait" ? decision.ms : decision.type);
}

const QUICK = { ranMs: 10 };

Deno.test("RestartPolicy waits twice as long each time and gives up at the fifth quick end", () => {
  const decisions = play({}, [QUICK, QUICK, QUICK, QUICK, QUICK]);

  assert.deepEqual(decisions, [
    { type: "wait", ms: 1_000 },
    { type: "wait", ms: 2_000 },
    { type: "wait", ms: 4_000 },
    { type: "wait", ms: 8_000 },
    { type: "give_up", ends: 5 },
  ]);
});

Deno.test("RestartPolicy begins with backoff_ms and never waits longer than 30 s", () => {
  const settings = { backoff_ms: 7_000, max: 7 };

  const waits = waitsOf(play(settings, Array.from({ length: 7 }, () => QUICK)));

  assert.deepEqual(waits, [7_000, 14_000, 28_000, 30_000, 30_000, 30_000, "give_up"]);
});

Deno.test("RestartPolicy gives up although the waits alone last longer than within_s", () => {
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

Deno.test("RestartPolicy counts ends over all of within_s, also after long ready times", () => {
  const runs = Array.from({ length: 3 }, () => ({ ranMs: 90_000, readyForMs: 80_000 }));

  const waits = waitsOf(play({ max: 3, within_s: 3_600 }, runs));

  assert.deepEqual(waits, [1_000, 1_000, "give_up"]);
});

Deno.test("RestartPolicy with max 1 gives up at the first end", () => {
  assert.deepEqual(play({ max: 1 }, [QUICK]), [{ type: "give_up", ends: 1 }]);
});

Deno.test("RestartPolicy counts anew after reset(), waits included", () => {
  const policy = new RestartPolicy(RESTART_DEFAULTS);
  const end = { readyForMs: 0, atMs: 0, clean: false };
  for (let i = 0; i < 4; i++) policy.ended(end);

  policy.reset();
  const decisions = Array.from({ length: 5 }, () => policy.ended(end));

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

Deno.test("RestartPolicy on-failure gives up failures, and never while ends are clean", () => {
  const settings = { policy: "on-failure", max: 2 } as const;

  const clean = play(settings, [{ ranMs: 1, clean: true }, { ranMs: 1, clean: true }, QUICK]);
  const failing = play(settings, [QUICK, QUICK]);

  assert.deepEqual(clean.map(({ type }) => type), ["stay", "stay", "wait"]);
  assert.deepEqual(failing.map(({ type }) => type), ["wait", "give_up"]);
});
