/**
 * What is known of a call, in words.
 *
 * @module
 */
import assert from "node:assert/strict";
import { callSpan, idOf, newLog, NOON, storedSpan } from "../../../tests/fakes/spans.ts";
import type { Explained, Replica } from "./explain.ts";
import { explainLines } from "./explain_lines.ts";
import { spanOfCall } from "../traces/spans_made.ts";

function lines(changes: Partial<Explained>, call: Parameters<typeof callSpan>[0] = {}): string {
  const span = spanOfCall(callSpan(call), null);
  return explainLines({
    span,
    replicas: null,
    timing: { queued_ms: 0.04, wire_ms: null, handler_ms: null, total_ms: 10 },
    nested: [],
    attempts: [span],
    inEngine: false,
    request: undefined,
    logs: [],
    nowMs: NOON + 3_000,
    ...changes,
  }).join("\n");
}

const NEVER_SENT = { queued_ms: null, wire_ms: null, handler_ms: null, total_ms: 0 };

function replica(changes: Partial<Replica>): Replica {
  const { name = "orders", ...rest } = changes;
  return { worker_id: name, name, in_flight: 0, passed_over: null, chosen: false, ...rest };
}

Deno.test("explainLines() begins with who called what, when, and for which request", () => {
  const text = lines({ request: storedSpan({ name: "POST /orders" }) }, { namespace: "eu" });

  assert.match(text, /^shop called orders::create in namespace eu at 2025-11-21T12:00:00\.000Z, /);
  assert.match(text, new RegExp(`in trace ${idOf(1, 32)}\nIt answered the HTTP request POST /or`));
});

for (
  const [what, replicas, expected] of [
    ["the only one", [replica({ chosen: true })], /orders ran it, the only replica there was/],
    [
      "the only one that could",
      [replica({ chosen: true }), replica({ name: "b", passed_over: "draining" })],
      /the only one of 2 replicas that could take it\nPassed over: b \(draining\)/,
    ],
    [
      "the least busy",
      [replica({ chosen: true, in_flight: 2 }), replica({ name: "b", in_flight: 7 })],
      /of 2 replicas it was the least busy \(running 2 calls\)\n.*gone to b \(running 7\)/,
    ],
    [
      "one in turn",
      [replica({ chosen: true }), replica({ name: "b" })],
      /2 of 2 replicas were idle, and it was its turn/,
    ],
    [
      "one of equally busy ones",
      [replica({ chosen: true, in_flight: 1 }), replica({ name: "b", in_flight: 1 })],
      /2 of 2 replicas were running 1 call, and it was its turn/,
    ],
    [
      "one of two copies of a worker",
      [
        replica({ chosen: true, worker_id: "4129ca18-53b5-483c" }),
        replica({ worker_id: "e8150160-848b-4e43", in_flight: 1 }),
      ],
      /^orders 4129ca18 ran it: .*\nIt could also have gone to orders e8150160 \(running 1\)$/m,
    ],
    ["not recorded", null, /which other replicas there were is not recorded/],
  ] as const
) {
  Deno.test(`explainLines() says that the replica was ${what}`, () => {
    assert.match(lines({ replicas }), expected);
  });
}

Deno.test("explainLines() says that none could take it, and that it was never sent", () => {
  const text = lines({
    replicas: [replica({ passed_over: "at its bound" })],
    timing: NEVER_SENT,
  }, { callee: null, sent_ms: null, error_code: "overloaded", error_message: "Too busy" });

  assert.match(text, /^No worker ran it: none of 1 replicas could take it$/m);
  assert.match(text, /^It failed at once with overloaded: Too busy$/m);
  assert.doesNotMatch(text, /handler/);
});

Deno.test("explainLines() tells where the time went, and what is not known of it", () => {
  const known = { queued_ms: 1_200, wire_ms: 0.4, handler_ms: 12, total_ms: 1_212.4 };

  const text = lines({ timing: known });

  assert.match(text, /^It waited 1\.2 s in the engine before .*, because .* being restarted$/m);
  assert.match(text, /^0\.4 ms went by on the wire and before and after its handler$/m);
  assert.match(text, /^Its handler ran for 12 ms$/m);
  assert.match(lines({}), /^It was sent at once$/m);
  assert.match(lines({}), /^How much of its time the handler took, .* is not known/m);
  assert.match(lines({ inEngine: true }), /^It ran inside the engine, without a wire between$/m);
  assert.match(lines({ timing: { ...known, wire_ms: null } }), /^Its handler ran for 12 ms$/m);
});

Deno.test("explainLines() names the slowest of the calls it made, and how they failed", () => {
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

  assert.match(text, /It made 8 calls of its own, 36 ms together: f7 \(8 ms, oops\), f6 \(7 ms\)/);
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

Deno.test("explainLines() says that nobody offered the function, and nothing of a worker", () => {
  const call = { callee: null, sent_ms: null, error_code: "function_not_found" };

  const text = lines({ timing: NEVER_SENT }, call);

  assert.match(text, /^No worker ran it: none offered orders::create$/m);
  assert.equal(text.split("\n").length, 3);
});

Deno.test("explainLines() says that a call waits, or waited in vain, for a restart", () => {
  const call = { callee: null, sent_ms: null };
  const held = { ...NEVER_SENT, total_ms: 5_000 };

  assert.match(lines({ timing: held }, call), /^It waited 5 s and was never sent: .*restarted$/m);
  assert.match(
    lines({ timing: held }, { ...call, end_ms: null }),
    /^It is waiting in the engine, /m,
  );
});

Deno.test("explainLines() says that nobody waited for the result", () => {
  assert.match(lines({}, { caller_invocation_id: null }), /Z without waiting for a result, in tr/);
});

Deno.test("explainLines() tells a client that went away from a caller that cancelled", () => {
  const call = { error_code: "cancelled", ended_by: "the caller cancelled" };
  const request = storedSpan({ name: "GET /a" }, { "http.response.status_code": 499 });

  assert.match(lines({ request }, call), /with cancelled, because the HTTP client went away$/m);
  const other = storedSpan({ name: "GET /a" }, { "http.response.status_code": 503 });
  assert.match(lines({ request: other }, call), /because the caller cancelled$/m);
});

Deno.test("explainLines() names the nested call whose error was handed on", () => {
  const error = { error_code: "timeout", error_message: "Too slow" };
  const nested = [spanOfCall(callSpan({ function_id: "stock::take", ...error }), null)];

  const text = lines({ nested }, error);

  assert.match(text, /with timeout: Too slow; it was stock::take, which it had called, that/);
  assert.doesNotMatch(lines({ nested }, { error_code: "oops" }), /that failed so/);
});

for (
  const [call, expected] of [
    [{}, /^It ended well after 10 ms$/m],
    [{ error_code: "oops" }, /^It failed after 10 ms with oops$/m],
    [
      { error_code: "timeout", error_message: "Too slow", ended_by: "its time-out passed" },
      /^It failed after 10 ms with timeout, because its time-out of 30 s passed$/m,
    ],
    [
      { error_code: "cancelled", ended_by: "the caller left" },
      /cancelled, because the caller left$/m,
    ],
    [{ end_ms: null }, /^It is still running, for 10 ms, of 30 s at most$/m],
  ] as const
) {
  Deno.test(`explainLines() ends with ${expected.source}`, () => {
    assert.match(lines({}, call), expected);
  });
}

Deno.test("explainLines() quotes the line that says most", () => {
  const logs = [
    newLog({ body: "fine" }),
    newLog({ body: "bad\nstack", severity: "error" }),
    newLog({ body: "done" }),
  ].map((log, seq) => ({ ...log, seq }));

  assert.match(lines({ logs }), /^3 lines were logged; error: bad$/m);
});
