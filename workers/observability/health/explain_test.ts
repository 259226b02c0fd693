/**
 * One call explained: found by any of its ids, with what belongs to it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { callSpan, idOf, newLog, NOON, recorded, storedSpan } from "../../../tests/fakes/spans.ts";
import * as v from "../../kit/schema.ts";
import { LogRing } from "../logs/store.ts";
import { spanOfCall } from "../traces/span.ts";
import { explain, type Explained, explainLines, ExplainRequest, type Replica } from "./explain.ts";

const NOW = NOON + 5_000;
const CALL = idOf(1, 16);
const HANDLER = idOf(2, 16);
/** One connection leads to another engine. */
const engineOf = (id: string): string | undefined => id === "link" ? "b" : undefined;

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
      stacktrace: "at take (stock.ts:7)",
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
      { spans: it.store, logs, recording, isInEngine: (id) => id === "w-9", engineOf },
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

Deno.test("explain() states unknown handler times and replicas", () => {
  const { ask } = setup();

  const { timing, replicas, nested, lines } = ask("i-4");

  assert.deepEqual(timing, { queued_ms: 1, wire_ms: null, handler_ms: null, total_ms: 10 });
  assert.deepEqual([replicas, nested], [null, []]);
  assert.match((lines as string[]).join("\n"), /its handler and the connection took is unknown/);
});

Deno.test("explain() includes payloads only on request", () => {
  const { ask } = setup();

  assert.match(JSON.stringify(ask("i-1", true).span), /engine\.request"/);
  assert.doesNotMatch(JSON.stringify(ask("i-1", false)), /engine\.request"/);
});

Deno.test("explain() has the stack trace of the handler for operators only", () => {
  const { ask } = setup();

  assert.equal(ask("i-3", true).stacktrace, "at take (stock.ts:7)");
  assert.equal(ask("i-3", false).stacktrace, null);
  assert.equal(ask("i-1", true).stacktrace, null);
  assert.doesNotMatch(JSON.stringify(ask("i-3", false)), /stock\.ts/);
});

for (
  const [recording, expected] of [
    [
      "all",
      /go back 5 s; increase traces\.memory_mb of engine-observability; calls whose/,
    ],
    ["some", /not every call is sampled/],
    ["none", /tracing is off; turn it on with traces\.enabled/],
  ] as const
) {
  Deno.test(`explain() says why nothing is found when ${recording} calls are recorded`, () => {
    const { ask } = setup(recording);

    for (const id of ["nothing", idOf(5, 32), "", "'; --"]) {
      assert.throws(() => ask(id), { code: "NOT_FOUND", message: expected });
    }
  });
}

Deno.test("explain() reports a trace without calls", () => {
  const { ask, ring } = setup();
  ring.add(storedSpan({ trace_id: idOf(7, 32), name: "cron", service_name: "batch" }));

  assert.throws(() => ask(idOf(7, 32)), {
    code: "NOT_FOUND",
    message: `Trace ${idOf(7, 32)} contains no call; it begins with cron of batch`,
  });
});

Deno.test("explain() reports that nothing is recorded yet", () => {
  const { store } = recorded();
  const logs = new LogRing(1);
  const setup = {
    spans: store,
    logs,
    recording: "all",
    isInEngine: () => false,
    engineOf,
  } as const;

  assert.throws(() => explain(setup, "i-1", true, NOW), { message: /no calls are recorded yet/ });
});

Deno.test("explain() does not compute the connection's time when a handler outlived its call", () => {
  const { ask, traces, ring } = setup();
  const end = { error_code: "timeout", ended_by: "its timeout passed" };
  traces.add(callSpan({ span_id: idOf(11, 16), invocation_id: "i-11", ...end }));
  const late = { span_id: idOf(12, 16), parent_span_id: idOf(11, 16), end_ms: NOON + 2_000 };
  ring.add(storedSpan(late, { "engine.kind": "handler" }));

  const { timing, lines } = ask("i-11");

  assert.deepEqual(timing, { queued_ms: 1, wire_ms: null, handler_ms: 2_000, total_ms: 10 });
  assert.match((lines as string[]).join("\n"), /ran for 2 s, 2 s longer than its caller waited/);
});

Deno.test("explain() states that a built-in worker runs inside the engine", () => {
  const { ask, traces } = setup();
  const callee = { worker_id: "w-9", name: "engine-state" };
  traces.add(callSpan({ span_id: idOf(13, 16), invocation_id: "i-13", callee }));

  assert.match((ask("i-13").lines as string[]).join("\n"), /^It ran inside the engine/m);
});

Deno.test("explain() names the engine that a call was sent to, and finds it there", () => {
  const { ask, traces, store, logs } = setup();
  const callee = { worker_id: "link", name: "b" };
  const candidates = [
    { worker_id: "w-2", name: "orders", in_flight: 17, passed_over: null },
    { worker_id: "link", name: "b", in_flight: 0, passed_over: null },
  ];
  const [span_id, parent_span_id] = [idOf(14, 16), idOf(14, 16)];
  traces.add(callSpan({ span_id, invocation_id: "i-14", callee, candidates }));
  traces.add(callSpan({ span_id: idOf(15, 16), invocation_id: "i-15", parent_span_id }));

  const { engine, lines, replicas } = ask("i-14");
  assert.equal(engine, "b");
  const text = (lines as string[]).join("\n");
  assert.match(text, /^engine b ran it: of 2 replicas it was the least busy \(idle\)$/m);
  assert.match(text, /^Other candidates: orders \(running 17\)$/m);
  assert.doesNotMatch(text, /telemetry/);
  assert.equal((replicas as JsonObject[])[1]!.engine, "b");

  // The other engine is asked by the span of the call that came from here.
  const sources = { spans: store, logs, recording: "all", isInEngine: () => false, engineOf };
  const there = explain(sources as never, span_id, false, NOW, idOf(1, 32));
  assert.equal((there.span as JsonObject).span_id, idOf(15, 16));
});

for (const payload of [null, {}, { invocation_id: 5 }, { invocation_id: " " }]) {
  Deno.test(`ExplainRequest refuses ${JSON.stringify(payload)}`, () => {
    assert.equal(v.safeParse(ExplainRequest, payload).success, false);
  });
}

function lines(changes: Partial<Explained>, call: Parameters<typeof callSpan>[0] = {}): string {
  const span = spanOfCall(callSpan(call), null);
  return explainLines({
    span,
    replicas: null,
    timing: { queued_ms: 0.04, wire_ms: null, handler_ms: null, total_ms: 10 },
    nested: [],
    attempts: [span],
    inEngine: false,
    engine: undefined,
    request: undefined,
    logs: [],
    nowMs: NOON + 3_000,
    ...changes,
  }).join("\n");
}

const NEVER_SENT = { queued_ms: null, wire_ms: null, handler_ms: null, total_ms: 0 };

function replica(changes: Partial<Replica>): Replica {
  const { name = "orders", ...rest } = changes;
  return {
    worker_id: name,
    name,
    in_flight: 0,
    passed_over: null,
    chosen: false,
    isEngine: false,
    ...rest,
  };
}

Deno.test("explainLines() begins with caller, function, time and request", () => {
  const text = lines({ request: storedSpan({ name: "POST /orders" }) }, { namespace: "eu" });

  assert.match(text, /^shop called orders::create in namespace eu at 2025-11-21T12:00:00\.000Z, /);
  assert.match(text, new RegExp(`in trace ${idOf(1, 32)}\nIt handled the HTTP request POST /or`));
});

Deno.test("explainLines() says what the request got, and when", () => {
  const request = storedSpan({ name: "POST /orders", end_ms: NOON + 14 }, {
    "http.response.status_code": 201,
  });

  assert.match(
    lines({ request }),
    /^It handled the HTTP request POST \/orders, which got 201 after 14 ms$/m,
  );
});

for (
  const [what, replicas, expected] of [
    ["the only one", [replica({ chosen: true })], /orders ran it, the only replica$/m],
    [
      "the only available one",
      [replica({ chosen: true }), replica({ name: "b", passed_over: "draining" })],
      /the only available one of 2 replicas\nPassed over: b \(draining\)/,
    ],
    [
      "the least busy",
      [replica({ chosen: true, in_flight: 2 }), replica({ name: "b", in_flight: 7 })],
      /of 2 replicas it was the least busy \(running 2 calls\)\nOther candidates: b \(running 7\)/,
    ],
    [
      "the next one",
      [replica({ chosen: true }), replica({ name: "b" })],
      /2 of 2 replicas were idle, and it was next/,
    ],
    [
      "the next of equally busy ones",
      [replica({ chosen: true, in_flight: 1 }), replica({ name: "b", in_flight: 1 })],
      /2 of 2 replicas were running 1 call, and it was next/,
    ],
    [
      "one of two replicas of a worker",
      [
        replica({ chosen: true, worker_id: "4129ca18-53b5-483c" }),
        replica({ worker_id: "e8150160-848b-4e43", in_flight: 1 }),
      ],
      /^orders 4129ca18 ran it: .*\nOther candidates: orders e8150160 \(running 1\)$/m,
    ],
    ["not recorded", null, /the other replicas are not recorded/],
  ] as const
) {
  Deno.test(`explainLines() says that the replica was ${what}`, () => {
    assert.match(lines({ replicas }), expected);
  });
}

Deno.test("explainLines() says that no replica was available", () => {
  const text = lines({
    replicas: [replica({ passed_over: "at its bound" })],
    timing: NEVER_SENT,
  }, { callee: null, sent_ms: null, error_code: "overloaded", error_message: "Too busy" });

  assert.match(text, /^No worker ran it: none of 1 replicas was available$/m);
  assert.match(text, /^It failed immediately with overloaded: Too busy$/m);
  assert.doesNotMatch(text, /handler/);
});

Deno.test("explainLines() describes known and unknown times", () => {
  const known = { queued_ms: 1_200, wire_ms: 0.4, handler_ms: 12, total_ms: 1_212.4 };

  const text = lines({ timing: known });

  assert.match(text, /^It waited 1\.2 s in the engine before .*, because .* being restarted$/m);
  assert.match(text, /^0\.4 ms passed on the connection and before and after its handler$/m);
  assert.match(text, /^Its handler ran for 12 ms$/m);
  assert.match(lines({}), /^It was sent immediately$/m);
  assert.match(lines({}), /^How much of the time its handler .* is unknown/m);
  assert.match(
    lines({ inEngine: true }),
    /^It ran inside the engine, without a network connection$/m,
  );
  assert.match(lines({ timing: { ...known, wire_ms: null } }), /^Its handler ran for 12 ms$/m);
});

Deno.test("explainLines() names the slowest nested calls and their errors", () => {
  const nested = Array.from({ length: 8 }, (_, n) =>
    spanOfCall(
      callSpan({
        function_id: `f${n}`,
        end_ms: NOON + n + 1,
        error_code: n === 7 ? "oops" : null,
      }),
      null,
    ));

  const text = lines({ nested });

  assert.match(text, /Its handler made 8 calls, 36 ms in total: f7 \(8 ms, oops\), f6 \(7 ms\)/);
  assert.match(text, / and 3 more$/m);
});

Deno.test("explainLines() counts the attempts of the same caller", () => {
  const spans = [2, 3, 1].map((n) =>
    spanOfCall(callSpan({ span_id: idOf(n, 16), error_code: n === 1 ? null : "oops" }), null)
  );

  assert.match(
    lines({ attempts: spans }),
    /called orders::create 3 times here; this was number 3, and 2 of them failed/,
  );
  const twice = [spans[0]!, spans[1]!];
  assert.match(lines({ attempts: twice }), /and all of them failed$/m);
});

Deno.test("explainLines() says that no worker offered the function", () => {
  const call = { callee: null, sent_ms: null, error_code: "function_not_found" };

  const text = lines({ timing: NEVER_SENT }, call);

  assert.match(text, /^No worker ran it: none offered orders::create$/m);
  assert.equal(text.split("\n").length, 3);
});

Deno.test("explainLines() says that a call waits, or waited without success, for a restart", () => {
  const call = { callee: null, sent_ms: null };
  const held = { ...NEVER_SENT, total_ms: 5_000 };

  assert.match(lines({ timing: held }, call), /^It waited 5 s and was never sent: .*restarted$/m);
  assert.match(
    lines({ timing: held }, { ...call, end_ms: null }),
    /^It is waiting in the engine, /m,
  );
});

Deno.test("explainLines() marks a call without a result", () => {
  assert.match(lines({}, { caller_invocation_id: null }), /Z without waiting for a result, in tr/);
});

Deno.test("explainLines() distinguishes a disconnected client from a cancelling caller", () => {
  const call = { error_code: "cancelled", ended_by: "the caller cancelled" };
  const request = storedSpan({ name: "GET /a" }, { "http.response.status_code": 499 });

  assert.match(lines({ request }, call), /with cancelled, because the HTTP client disconnected$/m);
  const other = storedSpan({ name: "GET /a" }, { "http.response.status_code": 503 });
  assert.match(lines({ request: other }, call), /because the caller cancelled$/m);
});

Deno.test("explainLines() names the nested call whose error was passed on", () => {
  const error = { error_code: "timeout", error_message: "Too slow" };
  const nested = [spanOfCall(callSpan({ function_id: "stock::take", ...error }), null)];

  const text = lines({ nested }, error);

  assert.match(text, /with timeout: Too slow, an error of stock::take, which it called$/m);
  assert.doesNotMatch(lines({ nested }, { error_code: "oops" }), /an error of/);
});

for (
  const [call, expected] of [
    [{}, /^It succeeded after 10 ms$/m],
    [{ error_code: "oops" }, /^It failed after 10 ms with oops$/m],
    [
      { error_code: "timeout", error_message: "Too slow", ended_by: "its timeout passed" },
      /^It failed after 10 ms with timeout, because its timeout of 30 s passed$/m,
    ],
    [
      { error_code: "cancelled", ended_by: "the caller left" },
      /cancelled, because the caller left$/m,
    ],
    [{ end_ms: null }, /^It has been running for 10 ms, of at most 30 s$/m],
  ] as const
) {
  Deno.test(`explainLines() ends with ${expected.source}`, () => {
    assert.match(lines({}, call), expected);
  });
}

Deno.test("explainLines() quotes the most severe record", () => {
  const logs = [
    newLog({ body: "fine" }),
    newLog({ body: "bad\nstack", severity: "error" }),
    newLog({ body: "done" }),
  ].map((log, seq) => ({ ...log, seq }));

  assert.match(lines({ logs }), /^3 records were logged; error: bad$/m);
});

Deno.test("explainLines() quotes the line before a stack trace, not its last line", () => {
  const logs = ["t::boom failed:", "  Error: boom", "      at deeper (worker.ts:1:1)"]
    .map((body, seq) => ({ ...newLog({ body, severity: "warn" }), seq }));

  assert.match(lines({ logs }), /^3 records were logged; warn: t::boom failed:$/m);
});
