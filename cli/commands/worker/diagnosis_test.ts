import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../../mod.ts";
import { FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { scriptedWorkers } from "../../../tests/fakes/scripted_workers.ts";
import { replicaStatus, workerStatus } from "../../../tests/fakes/samples.ts";
import {
  checkSuspects,
  type HandlerLoad,
  type InactiveTrigger,
  renderInactiveTriggers,
  renderLoads,
  type Suspect,
} from "./diagnosis.ts";

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

const PARKED: InactiveTrigger = {
  id: "t1",
  trigger_type: "htp",
  function_id: "py::hello",
  worker_name: "announced-otherwise",
  worker_id: "w1",
  status: "parked",
  reason: "no worker provides the trigger type htp; did you mean http?",
};
const OF_ANOTHER: InactiveTrigger = { ...PARKED, id: "t2", worker_id: "w9" };

function triggersOf(triggers: readonly InactiveTrigger[]): FakeTerminal {
  const asked = (payload: JsonObject): Json => {
    assert.deepEqual(payload, { status: "inactive", limit: 1_000, include_internal: true });
    return { registered_triggers: triggers as unknown as Json };
  };
  return new FakeTerminal({
    functions: { ...scriptedWorkers({ py: {} }), "engine::registered-triggers::list": asked },
  });
}

const LINE = "trigger htp of py::hello is parked: no worker provides the trigger type htp; " +
  "did you mean http?";

Deno.test("worker add says which triggers of the worker do not fire, and still succeeds", async () => {
  const terminal = triggersOf([PARKED, OF_ANOTHER]);

  assert.equal(await terminal.run("worker", "add", "./workers/py"), 0);

  assert.equal(terminal.errLines.at(-1), `py  ${LINE}`);
  assert.equal(terminal.errLines.filter((line) => line.includes("htp of")).length, 1);
  assert.deepEqual(terminal.outLines, ["py is ready: pid 42, 900 ms, math::add"]);
});

Deno.test("worker status shows triggers that do not fire, with --json as values", async () => {
  const terminal = triggersOf([PARKED, OF_ANOTHER]);

  await terminal.run("worker", "status", "py");
  assert.ok(terminal.outLines.includes(`  ${LINE}`), terminal.outText);

  terminal.outLines.length = 0;
  await terminal.run("worker", "status", "py", "--json");
  const { inactive_triggers } = JSON.parse(terminal.outText);
  assert.deepEqual(inactive_triggers, [PARKED]);
});

Deno.test("an engine that cannot tell is no failure", async () => {
  const terminal = new FakeTerminal({ functions: scriptedWorkers({ py: {} }) });

  assert.equal(await terminal.run("worker", "add", "./workers/py"), 0);
  assert.equal(await terminal.run("worker", "status", "py"), 0);
});

Deno.test("equal triggers of replicas are one line, many triggers are cut, and nothing controls the terminal", () => {
  assert.deepEqual(renderInactiveTriggers([PARKED, { ...PARKED, id: "t3" }]), [LINE]);

  const many = Array.from({ length: 25 }, (_, i) => ({ ...PARKED, function_id: `py::f${i}` }));
  const lines = renderInactiveTriggers(many);
  assert.equal(lines.length, 21);
  assert.equal(lines.at(-1), "and 5 more triggers that do not fire; see: engine doctor");

  const [line] = renderInactiveTriggers([{ ...PARKED, reason: "no\u001b[2J" }]);
  assert.ok(!line!.includes("\u001b"));
});

const SHOP: Suspect = { id: "c9", name: "shop", ip_address: "10.0.0.3", active_invocations: 2 };
const MATH: Suspect = { id: "c1", name: "math", ip_address: "127.0.0.1", active_invocations: 0 };

/** An engine with a supervised worker that does not answer, and these connections. */
function suspectsOf(suspects: readonly Suspect[]) {
  const replicas = [replicaStatus({ suspect: true, worker_ids: ["c1"] })];
  const reason = "It does not answer; calls go to other workers that offer its functions";
  const status = workerStatus({ suspect: true, reason, replicas });
  return new FakeTerminal({
    functions: {
      "engine::supervisor::list": () => ({ workers: [status] as unknown as Json }),
      "engine::supervisor::status": () => status as unknown as Json,
      "engine::workers::list": ({ status }) => {
        assert.equal(status, "suspect");
        return { workers: suspects as unknown as Json };
      },
    },
  });
}

Deno.test("worker list shows who does not answer, and each of them once", async () => {
  const terminal = suspectsOf([MATH, SHOP]);

  assert.equal(await terminal.run("worker", "list"), 0);

  assert.match(terminal.outText, /^math +suspect /m);
  assert.match(terminal.outText, /^ {2}It does not answer; calls go to other workers/m);
  assert.equal(
    terminal.outLines.at(-1),
    "suspect: shop (10.0.0.3) does not answer, with 2 running calls",
  );
  assert.ok(!terminal.outText.includes("suspect: math"));
});

Deno.test("worker status says that a worker is suspect", async () => {
  const terminal = suspectsOf([]);

  assert.equal(await terminal.run("worker", "status", "math"), 0);

  assert.match(terminal.outText, /state +ready, suspect/);
  assert.match(terminal.outText, /remark +It does not answer/);
});

Deno.test("worker list without suspect workers has no such line", async () => {
  const terminal = suspectsOf([]);

  await terminal.run("worker", "list");

  assert.ok(!terminal.outText.includes("suspect:"));
});

Deno.test("checkSuspects() names the first of many workers", () => {
  const many = Array.from({ length: 8 }, (_, i) => ({ ...SHOP, name: `shop-${i}` }));

  assert.equal(checkSuspects([]).status, "ok");
  const { status, measured, message } = checkSuspects(many);
  assert.deepEqual([status, measured], ["warn", 8]);
  assert.match(message, /^8 workers left a ping unanswered: shop-0 .* and 3 more$/);
});
