import assert from "node:assert/strict";
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import { builtinStatus, replicaStatus, workerStatus } from "../../../tests/fakes/worker_status.ts";
import { failureOf, fits, isRenewed, phaseOf, standOf } from "./phase.ts";

function replicas(...states: WorkerState[]): WorkerStatus["replicas"] {
  return states.map((state, i) => replicaStatus({ number: i + 1, state }));
}

for (
  const [stand, status] of [
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
  Deno.test(`a worker with ${JSON.stringify(status).slice(0, 60)}… is ${stand} (${status.replicas?.length ?? 1})`, () => {
    assert.equal(standOf(workerStatus(status)), stand);
  });
}

Deno.test("a built-in worker that is ready is ready", () => {
  assert.equal(standOf(builtinStatus()), "ready");
});

for (
  const [text, status] of [
    ["waiting for its turn", { state: "queued" }],
    ["waiting for its turn: 4 others start", { state: "queued", reason: "4 others start" }],
    ["checking dependencies", { state: "installing" }],
    ["installing dependencies with pip", {
      state: "installing",
      reason: "installing dependencies with pip",
    }],
    ["starting in a microVM", { state: "starting", isolation: "microvm" }],
    ["starting", { state: "starting", isolation: null }],
    ["stopping", { state: "stopping" }],
    ["1 of 3 ready", { reason: "a warning", replicas: replicas("ready", "queued", "starting") }],
  ] as [string, Partial<WorkerStatus>][]
) {
  Deno.test(`a phase reads ${text}`, () => assert.equal(phaseOf(workerStatus(status)), text));
}

for (
  const [text, status] of [
    ["math failed: no luck; all it printed: engine worker logs math", {
      state: "failed",
      reason: "no luck",
    }],
    ["math failed: exit code 1; all it printed: engine worker logs math", {
      state: "failed",
      last_exit: "exit code 1",
    }],
    ["math failed: out of memory", {
      state: "failed",
      last_error: "out of memory",
      log_path: null,
    }],
    ["math failed: no reason was given", { state: "failed", log_path: null }],
    ["math was stopped meanwhile", { state: "stopped", log_path: null }],
    ["math ended: with exit code 0, and its restart policy is on-failure", {
      state: "stopped",
      reason: "with exit code 0, and its restart policy is on-failure",
      log_path: null,
    }],
    ["math ended and will be tried again: killed", {
      state: "waiting",
      reason: "killed",
      log_path: null,
    }],
    ["math: the new version did not become ready, so it keeps running the old one", {
      reason: "the new version did not become ready, so it keeps running the old one",
      log_path: null,
    }],
    ["replica 2 of math was stopped meanwhile", {
      log_path: null,
      replicas: replicas("ready", "stopped"),
    }],
  ] as [string, Partial<WorkerStatus>][]
) {
  Deno.test(`a failure reads ${text}`, () => assert.equal(failureOf(workerStatus(status)), text));
}

Deno.test("a message of the engine that has several lines is shown whole", () => {
  const reason = "KVM not accessible\nlog in again\nor use --accel tcg";

  assert.ok(failureOf(workerStatus({ state: "failed", reason })).includes(reason));
});

Deno.test("a worker is renewed when it was started since and no replica is as old as before", () => {
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

Deno.test("a worker fits when it is all that is wished for", () => {
  const status = workerStatus({ isolation: "microvm", accelerator: "tcg" });

  assert.equal(fits(status, {}), true);
  assert.equal(fits(status, { isolation: "microvm", accelerator: "tcg", replicas: 1 }), true);
  assert.equal(fits(status, { isolation: "process" }), false);
  assert.equal(fits(status, { isolation: "microvm", accelerator: "kvm" }), false);
  assert.equal(fits(status, { replicas: 2 }), false);
  assert.equal(fits(workerStatus({ isolation: "process" }), { accelerator: "kvm" }), true);
});
