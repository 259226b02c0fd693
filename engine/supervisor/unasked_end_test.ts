import assert from "node:assert/strict";
import { RESTART_DEFAULTS, type RestartSettings } from "../install/manifest.ts";
import type { RunOver } from "./replica_run.ts";
import { UnaskedEnds } from "./unasked_end.ts";

function setup(settings: Partial<RestartSettings> = {}) {
  const ends = new UnaskedEnds();
  ends.judgeBy({ ...RESTART_DEFAULTS, ...settings });
  const exit = (code: number, readyForMs = 1_000, atMs = 0) => {
    const over: RunOver = { type: "ended", ended: { code, signal: null } };
    return ends.judge({ over, readyForMs, atMs });
  };
  const silent = (wasReady: boolean) =>
    ends.judge({ over: { type: "silent", wasReady }, readyForMs: 0, atMs: 0 });
  return { ends, exit, silent };
}

Deno.test("UnaskedEnds says how it ended, whether it was ready, and when it starts again", () => {
  const { exit } = setup();

  const reason = "It ended with exit code 3";
  const text = `${reason}; next start in 1 s`;
  assert.deepEqual(exit(3), { reason, next: { state: "waiting", ms: 1_000, text } });
  assert.equal(exit(3, 0).reason, "It ended with exit code 3 before it was ready");
});

Deno.test("UnaskedEnds leaves a clean end alone and fails another when the policy says so", () => {
  const onFailure = setup({ policy: "on-failure" });
  const text = "It ended with exit code 0, and its restart policy is on-failure";
  assert.deepEqual(onFailure.exit(0).next, { state: "stopped", text });
  assert.equal(onFailure.exit(1).next.state, "waiting");

  const never = setup({ policy: "never" });
  assert.equal(never.exit(0).next.state, "stopped");
  assert.equal(never.exit(1).next.state, "failed");
});

Deno.test("UnaskedEnds gives up after too many, unless they are forgotten or the rules change", () => {
  const { ends, exit } = setup({ max: 3 });
  exit(1);
  exit(1);
  const text = "Given up after it ended 3 times in short order: It ended with exit code 1";
  assert.deepEqual(exit(1).next, { state: "failed", text });

  ends.forget();
  assert.equal(exit(1).next.state, "waiting");
  exit(1);
  ends.judgeBy({ ...RESTART_DEFAULTS, max: 3 });
  assert.equal(exit(1).next.state, "failed");
  ends.judgeBy({ ...RESTART_DEFAULTS, max: 4 });
  assert.equal(exit(1).next.state, "waiting");
});

Deno.test("UnaskedEnds fails one that was never heard of at once, whatever the policy", () => {
  const { silent } = setup({ policy: "always" });

  const text = "It did not register with the engine within 120 s";
  assert.deepEqual(silent(false), { reason: text, next: { state: "failed", text } });
});

Deno.test("UnaskedEnds treats one that lost its line for good as one that failed", () => {
  const { silent } = setup({ policy: "on-failure" });

  const { reason, next } = silent(true);

  assert.equal(reason, "It had no line to the engine for 120 s");
  assert.equal(next.state, "waiting");
});
