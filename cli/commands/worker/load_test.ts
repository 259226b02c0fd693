import assert from "node:assert/strict";
import type { Json } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { type HandlerLoad, renderLoads } from "./load.ts";

const FULL: HandlerLoad = {
  worker_id: "w1",
  threads_busy: 40,
  threads_max: 40,
  calls_waiting: 12,
  overdue: [{ function_id: "py::slow", seconds: 35.2 }],
};

Deno.test("worker status shows busy threads, waiting calls and handlers past their deadline", async () => {
  const loads = [FULL, { ...FULL, worker_id: "of another", calls_waiting: 500 }];
  const terminal = new FakeTerminal({
    functions: {
      ...scriptedWorkers({ py: {} }),
      "engine::metrics::handlers": () => ({ workers: loads as unknown as Json }),
    },
  });

  assert.equal(await terminal.run("worker", "status", "py"), 0);
  assert.ok(terminal.outLines.includes("  threads       40 of 40 busy, 12 calls wait"));
  assert.ok(terminal.outLines.includes("  overdue       py::slow runs 35 s past its deadline"));

  terminal.outLines.length = 0;
  await terminal.run("worker", "status", "py", "--json");
  assert.deepEqual(JSON.parse(terminal.outText).handlers, [FULL]);
});

Deno.test("a worker that reports nothing has no such lines", async () => {
  const terminal = new FakeTerminal({ functions: scriptedWorkers({ py: {} }) });

  assert.equal(await terminal.run("worker", "status", "py"), 0);
  assert.doesNotMatch(terminal.outText, /threads|overdue/);
});

Deno.test("the loads of replicas are added up, the latest functions come first", () => {
  const other = { ...FULL, calls_waiting: 1, overdue: [{ function_id: "py::x", seconds: 90 }] };
  const idle = { ...FULL, threads_busy: 0, calls_waiting: 0, overdue: [] };

  assert.deepEqual(renderLoads([FULL, other]), [
    "threads       80 of 80 busy, 13 calls wait",
    "overdue       py::x runs 90 s past its deadline",
    "overdue       py::slow runs 35 s past its deadline",
  ]);
  assert.deepEqual(renderLoads([idle]), ["threads       0 of 40 busy"]);
  assert.deepEqual(renderLoads([{ ...idle, threads_busy: null, threads_max: null }]), []);
});
