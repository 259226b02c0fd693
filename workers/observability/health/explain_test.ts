/**
 * One call explained: found by any of its ids, with what belongs to it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { recorded } from "../../../tests/fakes/recorded.ts";
import { callSpan, idOf, newLog, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import { explain, ExplainRequest } from "./explain.ts";
import { LogRing } from "../logs/ring.ts";

const NOW = NOON + 5_000;
const CALL = idOf(1, 16);
const HANDLER = idOf(2, 16);

/** A call with its handler's span, two nested calls and two lines; a request before it. */
function setup(recording: "all" | "some" | "none" = "all") {
  const it = recorded();
  const logs = new LogRing(100_000);
  it.traces.add(
    callSpan({
      parent_span_id: idOf(9, 16),
      end_ms: NOON + 20,
      candidates: [
        { worker_id: "w-2", name: "orders", in_flight: 1, passed_over: null },
        { worker_id: "w-3", name: "orders-2", in_flight: 4, passed_over: null },
        { worker_id: "w-4", name: "orders-3", in_flight: 0, passed_over: "draining" },
      ],
    }),
    callSpan({
      span_id: idOf(3, 16),
      parent_span_id: CALL,
      invocation_id: "i-3",
      caller_invocation_id: null,
      function_id: "stock::take",
      error_code: "oops",
    }),
    callSpan({
      span_id: idOf(4, 16),
      parent_span_id: HANDLER,
      invocation_id: "i-4",
      caller_invocation_id: null,
      function_id: "mail::send",
    }),
  );
  it.ring.add(
    storedSpan({ span_id: HANDLER, parent_span_id: CALL, name: "execute orders::create" }, {
      "engine.kind": "handler",
    }),
  );
  it.ring.add(
    storedSpan({ span_id: idOf(9, 16), name: "POST /orders" }, { "engine.kind": "http" }),
  );
  const trace_id = idOf(1, 32);
  logs.add(newLog({ trace_id, span_id: CALL, body: "one" }));
  logs.add(newLog({ trace_id, span_id: HANDLER, body: "two", severity: "error" }));
  logs.add(newLog({ trace_id, span_id: idOf(3, 16), body: "of another call" }));
  const ask = (id: string, withPayloads = false) =>
    explain(
      { spans: it.store, logs, recording, isInEngine: (id) => id === "w-9" },
      id,
      withPayloads,
      NOW,
    );
  return { ...it, logs, ask };
}

for (
  const [what, id] of [
    ["the engine's id", "i-1"],
    ["the caller's id", "c-1"],
    ["the id of its span", CALL],
    ["the id of its handler's span", HANDLER],
    ["the id of the request before it", idOf(9, 16)],
    ["its trace", idOf(1, 32)],
    ["its trace in capitals", idOf(1, 32).toUpperCase()],
  ]
) {
  Deno.test(`explain() finds a call by ${what}`, () => {
    const { span, trace_id, found } = setup().ask(id!);

    assert.equal((span as JsonObject).span_id, CALL);
    assert.equal(trace_id, idOf(1, 32));
    assert.equal(found, true);
  });
}

Deno.test("explain() has replicas, timing, nested calls, logs and sentences", () => {
  const { ask } = setup();

  const answer = ask("i-1");

  assert.deepEqual(
    (answer.replicas as JsonObject[]).map((
      { name, chosen, passed_over },
    ) => [name, chosen, passed_over]),
    [["orders", true, null], ["orders-2", false, null], ["orders-3", false, "draining"]],
  );
  assert.deepEqual(answer.timing, { queued_ms: 1, wire_ms: 9, handler_ms: 10, total_ms: 20 });
  assert.deepEqual(
    (answer.nested as JsonObject[]).map(({ function_id, error_code }) => [function_id, error_code]),
    [["stock::take", "oops"], ["mail::send", null]],
  );
  assert.deepEqual((answer.logs as JsonObject[]).map(({ body }) => body), ["one", "two"]);
  assert.ok((answer.lines as string[]).length >= 8);
});

Deno.test("explain() does not know the handler's time without its span, nor replicas not kept", () => {
  const { ask } = setup();

  const { timing, replicas, nested, lines } = ask("i-4");

  assert.deepEqual(timing, { queued_ms: 1, wire_ms: null, handler_ms: null, total_ms: 10 });
  assert.deepEqual([replicas, nested], [null, []]);
  assert.match((lines as string[]).join("\n"), /how much the wire, is not known/);
});

Deno.test("explain() shows payloads to those alone who may see them", () => {
  const { ask } = setup();

  assert.match(JSON.stringify(ask("i-1", true).span), /engine\.request"/);
  assert.doesNotMatch(JSON.stringify(ask("i-1", false)), /engine\.request"/);
});

for (
  const [recording, expected] of [
    [
      "all",
      /goes back 5 s; keep more with traces\.memory_mb of engine-observability; what a caller/,
    ],
    ["some", /not every call is sampled/],
    ["none", /tracing is off; turn it on with traces\.enabled/],
  ] as const
) {
  Deno.test(`explain() says why it knows nothing when ${recording} calls are recorded`, () => {
    const { ask } = setup(recording);

    for (const id of ["nothing", idOf(5, 32), "", "'; --"]) {
      assert.throws(() => ask(id), { code: "NOT_FOUND", message: expected });
    }
  });
}

Deno.test("explain() says so when a trace holds spans of others, but no call", () => {
  const { ask, ring } = setup();
  ring.add(storedSpan({ trace_id: idOf(7, 32), name: "cron", service_name: "batch" }));

  assert.throws(() => ask(idOf(7, 32)), {
    code: "NOT_FOUND",
    message: `Trace ${idOf(7, 32)} is known, but no call in it: it begins with cron of batch`,
  });
});

Deno.test("explain() says that nothing is recorded yet", () => {
  const { store } = recorded();
  const logs = new LogRing(1);
  const setup = { spans: store, logs, recording: "all", isInEngine: () => false } as const;

  assert.throws(() => explain(setup, "i-1", true, NOW), { message: /no call is recorded yet/ });
});

Deno.test("explain() does not guess the wire's time when a handler outlived its call", () => {
  const { ask, traces, ring } = setup();
  const end = { error_code: "timeout", ended_by: "its time-out passed" };
  traces.add(callSpan({ span_id: idOf(11, 16), invocation_id: "i-11", ...end }));
  const late = { span_id: idOf(12, 16), parent_span_id: idOf(11, 16), end_ms: NOON + 2_000 };
  ring.add(storedSpan(late, { "engine.kind": "handler" }));

  const { timing, lines } = ask("i-11");

  assert.deepEqual(timing, { queued_ms: 1, wire_ms: null, handler_ms: 2_000, total_ms: 10 });
  assert.match((lines as string[]).join("\n"), /ran for 2 s, 2 s longer than anybody waited/);
});

Deno.test("explain() knows that a built-in worker runs inside the engine", () => {
  const { ask, traces } = setup();
  const callee = { worker_id: "w-9", name: "engine-state" };
  traces.add(callSpan({ span_id: idOf(13, 16), invocation_id: "i-13", callee }));

  assert.match((ask("i-13").lines as string[]).join("\n"), /^It ran inside the engine/m);
});

for (const payload of [null, {}, { invocation_id: 5 }, { invocation_id: " " }]) {
  Deno.test(`ExplainRequest refuses ${JSON.stringify(payload)}`, () => {
    assert.equal(ExplainRequest.safeParse(payload).success, false);
  });
}
