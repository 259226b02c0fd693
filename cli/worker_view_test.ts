import assert from "node:assert/strict";
import type { WorkerStatus } from "../engine/mod.ts";
import { renderReady, renderStatus, renderWorkers } from "./worker_view.ts";

function worker(changed: Partial<WorkerStatus> = {}): WorkerStatus {
  return {
    name: "math-worker",
    kind: "directory",
    state: "ready",
    reason: null,
    path: "/p/workers/math-worker",
    isolation: "process",
    pid: 42,
    functions: ["math::add"],
    restarts: 1,
    started_at_ms: 10_000,
    ready_after_ms: 2_800,
    last_exit: null,
    dependencies: "cached",
    launch: 2,
    tail: [],
    log_path: "/p/.engine/logs/math-worker.log",
    ...changed,
  };
}

Deno.test("the list of workers is a table", () => {
  const builtin = worker({
    name: "engine-state",
    kind: "builtin",
    pid: 7,
    isolation: null,
    restarts: 0,
    reason: "Shared values",
  });
  const stopped = worker({ state: "stopped", pid: null, started_at_ms: null, functions: [] });

  assert.deepEqual(renderWorkers([builtin, worker(), stopped], 75_000), [
    "NAME          STATE    PID  UP         FUNCTIONS  ISOLATION  RESTARTS  REMARK",
    "engine-state  ready    -    1 min 5 s  1          -          0         Shared values",
    "math-worker   ready    42   1 min 5 s  1          process    1",
    "math-worker   stopped  -    -          0          process    1",
  ]);
});

Deno.test("the status of a worker leaves out what is not known", () => {
  const lines = renderStatus(worker({ pid: null, started_at_ms: null, path: null }), 75_000);

  assert.equal(lines[0], "math-worker");
  assert.ok(lines.includes("  state         ready"));
  assert.ok(!lines.some((line) => /^ {2}(pid|up|directory|last exit) /.test(line)));
});

Deno.test("the status of a worker that failed ends with its last lines, made harmless", () => {
  const lines = renderStatus(worker({ state: "failed", tail: ["\u001b[31mboom", "bang"] }), 0);

  assert.deepEqual(lines.slice(-3), ["  last lines", "    | boom", "    | bang"]);
});

Deno.test("the line of a worker that is ready says name, pid, time and functions", () => {
  assert.equal(renderReady(worker()), "math-worker is ready: pid 42, 2.8 s, math::add");
  assert.equal(
    renderReady(
      worker({ kind: "builtin", ready_after_ms: 3, functions: ["a", "b", "c", "d", "e"] }),
    ),
    "math-worker is ready: part of the engine, 3 ms, 5 functions",
  );
  assert.equal(
    renderReady(worker({ functions: [], ready_after_ms: null })),
    "math-worker is ready: pid 42, no functions",
  );
});
