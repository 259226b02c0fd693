import assert from "node:assert/strict";
import {
  absenceOf,
  type AbsentReplica,
  LOST_FUNCTIONS_MAX,
  LostFunctions,
} from "./lost_functions.ts";

const ADD = { namespace: "default", id: "py::add" };

Deno.test("the functions of a worker are remembered when its connection ends", () => {
  const lost = new LostFunctions();
  lost.announced("w1");

  assert.equal(lost.has("py::add", "default"), false);
  lost.disconnected("w1", [ADD]);

  assert.equal(lost.has("py::add", "default"), true);
  assert.equal(lost.has("py::add", "eu"), false);
  assert.equal(lost.has("py::sub", "default"), false);
});

Deno.test("functions of other workers are not remembered", () => {
  const lost = new LostFunctions();
  lost.announced("w1");

  lost.disconnected("w2", [ADD]);

  assert.equal(lost.has("py::add", "default"), false);
});

Deno.test("a bounded number of functions is remembered, the last ones", () => {
  const lost = new LostFunctions();
  for (const [id, prefix] of [["w1", "old"], ["w2", "new"]] as const) {
    lost.announced(id);
    const functions = Array.from({ length: LOST_FUNCTIONS_MAX }, (_, i) => ({
      namespace: "default",
      id: `${prefix}::${i}`,
    }));
    lost.disconnected(id, functions);
  }

  assert.equal(lost.has("old::0", "default"), false);
  assert.equal(lost.has("new::0", "default"), true);
});

function absence(replica: Partial<AbsentReplica>): string | undefined {
  const whole: AbsentReplica = {
    state: "ready",
    reason: null,
    lastExit: null,
    isConnected: true,
    next_start_ms: null,
    ...replica,
  };
  return absenceOf("py", whole, 10_000)?.reason;
}

const EXIT = { text: "exit code 1", atMs: 0 };

Deno.test("a worker that waits for its next start says how it ended and when it starts", () => {
  const of = (next_start_ms: number) =>
    absence({ state: "waiting", lastExit: EXIT, next_start_ms });

  assert.equal(of(18_000), "worker py is down (exit 1), next start in 8 s");
  assert.equal(of(10_001), "worker py is down (exit 1), next start in 1 s");
  assert.equal(of(9_000), "worker py is down (exit 1), next start in 0 s");
});

Deno.test("a worker in any other state says which, and one that serves says nothing", () => {
  assert.equal(absence({}), undefined);
  assert.equal(
    absence({ isConnected: false }),
    "worker py has lost its connection to the engine",
  );
  assert.equal(absence({ state: "starting" }), "worker py is starting");
  assert.equal(
    absence({ state: "starting", lastExit: EXIT }),
    "worker py is down (exit 1), and is being started again",
  );
  assert.equal(
    absence({ state: "failed", reason: "It ended with exit code 1" }),
    "worker py has failed: It ended with exit code 1",
  );
  assert.equal(absence({ state: "stopped" }), "worker py is stopped");
  assert.equal(absence({ state: "stopping" }), "worker py is stopping");
});
