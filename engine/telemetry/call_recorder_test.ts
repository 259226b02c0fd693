/**
 * Spans and counts of calls, from the events of a router.
 *
 * @module
 */
import assert from "node:assert/strict";
import { announce, answer, call, handed, recordedRouter } from "../../tests/fakes/fake_router.ts";
import type { CallSpan } from "../ports/telemetry.ts";

const CALL = '{"type":"invokefunction","invocation_id":';
const OBJECT = { type: "object", required: ["a"] };

/** The one call that ended since the last query. */
function only(spans: CallSpan[]): CallSpan {
  assert.equal(spans.length, 1);
  return spans[0]!;
}

/** What the result of a call names. */
function idsOf({ invocation_id, function_id }: { invocation_id?: string; function_id: string }) {
  return { invocation_id: invocation_id!, function_id };
}

function ends({ error_code, ended_by, callee, end_ms }: CallSpan): unknown[] {
  return [error_code, ended_by, callee !== null, end_ms !== null];
}

Deno.test("a call is one span with its endpoints, times, payloads and candidates", () => {
  const { caller, worker, clock, recorder, take, open } = recordedRouter();
  const other = open();
  other.say({ type: "registerfunction", id: "f" });
  announce(other);
  take();
  clock.tick(10);
  const began = clock.wall();
  caller.say(`${CALL}"i1","function_id":"f","timeout_ms":900,"baggage":"a=%22","data":{"n": 1}}`);
  const [running] = recorder.find({}, 1);
  assert.deepEqual([running!.end_ms, running!.sent_ms], [null, began]);
  clock.tick(5);
  const [handedOn] = handed(worker);
  answer(worker, handedOn!.invocation_id, { cents: 1 });

  const span = only(take());
  assert.equal(span.invocation_id, handedOn!.invocation_id);
  assert.equal(handedOn!.traceparent, `00-${span.trace_id}-${span.span_id}-01`);
  assert.deepEqual({ ...span, seq: 0, trace_id: "", span_id: "", invocation_id: "" }, {
    seq: 0,
    trace_id: "",
    span_id: "",
    parent_span_id: null,
    function_id: "f",
    namespace: "default",
    invocation_id: "",
    caller_invocation_id: "i1",
    caller: { worker_id: caller.worker_id, name: "w" },
    callee: { worker_id: worker.worker_id, name: "w" },
    start_ms: began,
    sent_ms: began,
    end_ms: began + 5,
    error_code: null,
    error_message: null,
    stacktrace: null,
    ended_by: null,
    timeout_ms: 900,
    request_chars: 8,
    response_chars: 11,
    request: '{"n": 1}',
    response: '{"cents":1}',
    baggage: "a=%22",
    candidates: [
      { worker_id: worker.worker_id, name: "w", in_flight: 0, passed_over: null },
      { worker_id: other.worker_id, name: "w", in_flight: 0, passed_over: null },
    ],
  });
});

Deno.test("the span of a parked call has the time of its sending", () => {
  const { caller, worker, clock, router, take, recorder, open } = recordedRouter();
  router.traffic.drain([worker.worker_id], { isComingBack: true });
  worker.cut();
  call(caller, "i1", { data: { n: 1 } });
  assert.deepEqual(recorder.find({ running: true }, 9).map(({ sent_ms }) => sent_ms), [null]);
  assert.equal(recorder.load().parked, 1);
  clock.tick(300);
  const next = open();
  next.say({ type: "registerfunction", id: "f" });
  clock.tick(7);
  const [handedOn] = handed(next);
  answer(next, handedOn!.invocation_id);

  const span = only(take().filter(({ function_id }) => function_id === "f"));
  assert.deepEqual([span.sent_ms! - span.start_ms, span.end_ms! - span.start_ms], [300, 307]);
  assert.equal(span.request, '{"n":1}');
  assert.equal(handedOn!.traceparent, `00-${span.trace_id}-${span.span_id}-01`);
});

for (
  const [how, expected, happens] of [
    ["its time passes", ["timeout", "its timeout passed", true, true], "tick"],
    ["it is cancelled", ["cancelled", "the caller cancelled", true, true], "cancel"],
    ["its caller leaves", ["cancelled", "the caller left", true, true], "caller"],
    ["its worker leaves", ["invocation_stopped", "the worker left", true, true], "worker"],
    ["its worker says something unreadable", ["bad_message", null, true, true], "broken"],
    ["its worker says an error", ["oops", null, true, true], "error"],
  ] as const
) {
  Deno.test(`a call is recorded once when ${how}`, () => {
    const { caller, worker, clock, take, recorder } = recordedRouter();
    call(caller, "i1", { timeout_ms: 50 });
    const { invocation_id } = handed(worker)[0]!;
    const result = { type: "invocationresult", invocation_id, function_id: "f" };
    if (happens === "tick") clock.tick(50);
    if (happens === "cancel") caller.say({ type: "cancelinvocation", invocation_id: "i1" });
    if (happens === "caller") caller.cut();
    if (happens === "worker") worker.cut();
    if (happens === "broken") worker.say({ ...result, function_id: 5 });
    if (happens === "error") worker.say({ ...result, error: { code: "oops", message: "no" } });
    if (happens !== "worker") answer(worker, invocation_id, "late");

    const span = only(take());
    assert.deepEqual(ends(span), expected);
    assert.equal(span.response, null);
    const [meter] = [...recorder.functions()].filter(({ function_id }) => function_id === "f");
    assert.deepEqual([meter!.calls, meter!.in_flight], [1, 0]);
    assert.deepEqual([...meter!.errors], [[expected[0], 1]]);
  });
}

Deno.test("a void call is a span with its result and without a caller id", () => {
  const { caller, worker, take } = recordedRouter();
  call(caller, "i1", { action: { type: "void" } });
  answer(worker, handed(worker)[0]!.invocation_id);

  const span = only(take());
  assert.deepEqual([span.caller_invocation_id, span.response], [null, '"done"']);
  assert.equal(span.caller.worker_id, caller.worker_id);
});

Deno.test("a rejected call is a span with its error and without a callee", () => {
  const { caller, worker, take, recorder } = recordedRouter({}, {
    max_inflight_calls_per_worker: 1,
  });
  worker.say({ type: "registerfunction", id: "checked", request_format: OBJECT });
  call(caller, "i1", { function_id: "missing", data: { n: 1 } });
  call(caller, "i2", { function_id: "checked", data: {} });
  call(caller, "i3", { action: { type: "enqueue", queue: "q" } });
  call(caller, "i4");
  call(caller, "i5");
  call(caller, "i6", { function_id: "missing", action: { type: "void" } });

  const spans = take();
  assert.deepEqual(spans.map(({ error_code }) => error_code), [
    "function_not_found",
    "invalid_payload",
    "enqueue_error",
    "overloaded",
    "function_not_found",
  ]);
  const [first] = spans;
  assert.deepEqual(ends(first!), ["function_not_found", null, false, true]);
  assert.equal(first!.error_message, "Function missing not found");
  assert.deepEqual([first!.request, first!.caller_invocation_id], ['{"n":1}', "i1"]);
  assert.equal(recorder.other.calls, 2, "unknown functions are counted together");
  assert.deepEqual([...recorder.other.errors], [["function_not_found", 2]]);
});

Deno.test("a malformed call is a span if its function id can be read", () => {
  const { caller, take } = recordedRouter();
  call(caller, "i1", { namespace: "" });
  caller.say(`${CALL}"i2","function_id":5}`);
  caller.say(`${CALL}"i3","function_id":"f","data":`);

  assert.deepEqual(
    take().map(({ error_code, caller_invocation_id }) => [
      caller_invocation_id,
      error_code,
    ]),
    [["i1", "INVALID_NAMESPACE"]],
  );
});

Deno.test("a call of a core function is a span", () => {
  const { caller, take } = recordedRouter();
  call(caller, "i1", { function_id: "engine::unregister_trigger", data: { id: "t" } });
  call(caller, "i2", { function_id: "engine::unregister_trigger", data: 1 });

  const spans = take();
  assert.deepEqual(spans.map(({ error_code }) => error_code), [null, "deserialization_error"]);
  const [answered] = spans;
  assert.deepEqual(answered!.callee, { worker_id: "engine", name: "engine" });
  assert.equal(answered!.response, '{"removed":false}');
});

Deno.test("a call that registers a trigger runs until the provider has replied", () => {
  const { caller, take, recorder, clock, worker } = recordedRouter();
  worker.say({ type: "registertriggertype", id: "x", description: "" });
  const data = { trigger_type: "x", function_id: "f", config: {} };
  call(caller, "i1", { function_id: "engine::register_trigger", data });
  const [running] = recorder.find({ running: true }, 9);
  assert.equal(running?.callee?.name, "engine");
  clock.tick(10_000);

  const span = only(take());
  assert.deepEqual(ends(span), [null, null, true, true]);
  assert.match(span.response!, /^\{"id":/);
});

Deno.test("a span has the name that the worker had at the time of the call", () => {
  const { open, take } = recordedRouter();
  const line = open();
  call(line, "i1", { function_id: "missing::x" });
  announce(line);
  call(line, "i2", { function_id: "missing::x" });

  const names = take().filter(({ function_id }) => function_id === "missing::x")
    .map(({ caller }) => caller.name);
  assert.deepEqual(names, ["missing", "w"]);
});

Deno.test("with tracing off calls are counted, and frames are forwarded unchanged", () => {
  const { caller, worker, recorder, take, clock } = recordedRouter({ enabled: false });
  const frame = `${CALL}"i1","function_id":"f","traceparent":"x","data":1}`;
  caller.say(frame);
  assert.equal(recorder.load().running, 1);
  clock.tick(3);
  const [sent] = worker.connection.takeTexts();
  assert.equal(sent!.replace(/"invocation_id":"[^"]*"/, '"invocation_id":"i1"'), frame);
  answer(worker, (JSON.parse(sent!) as { invocation_id: string }).invocation_id);

  assert.deepEqual(take(), []);
  assert.equal(recorder.usage.recorded, 0);
  const [meter] = [...recorder.functions()].filter(({ function_id }) => function_id === "f");
  assert.equal(meter!.duration_sum_ms, 3);
  const place = recorder.bounds_ms.findIndex((bound) => bound >= 3);
  assert.deepEqual([meter!.durations[place], meter!.in_flight], [1, 0]);
});

Deno.test("calls that pages of the console make by themselves are not counted", () => {
  const { caller, worker, recorder, openBuiltin, open } = recordedRouter();
  const [console, page] = [openBuiltin("engine-console"), open({})];
  worker.say({ type: "registerfunction", id: "g" });
  announce(page, undefined, "engine-console"); // Not the console, whatever it calls itself.
  const parent = `00-${"a".repeat(32)}-${"b".repeat(16)}`;
  let count = 0;
  const say = (from: typeof caller, function_id: string, flags: string) => {
    from.say(
      `${CALL}"i${count++}","function_id":"${function_id}","traceparent":"${parent}-${flags}","data":1}`,
    );
  };
  const numbers = () =>
    Object.fromEntries(
      [...recorder.functions(), recorder.other].filter(({ calls }) => calls > 0)
        .map(({ function_id, calls, in_flight, errors }) => [
          function_id,
          [calls, in_flight, [...errors.values()].length],
        ]),
    );

  say(console, "f", "00");
  say(console, "absent", "00");
  say(console, "engine::functions::list", "00");
  say(console, "f", "01");
  say(page, "f", "00");
  say(caller, "g", "00");
  const before = numbers();
  const [unseen, ...seen] = handed(worker);
  const failed = { code: "broken", message: "It broke" };
  worker.say({ type: "invocationresult", ...idsOf(unseen!), error: failed });
  for (const each of seen) answer(worker, each.invocation_id, 1);

  assert.deepEqual(before["f"], [2, 2, 0]);
  assert.deepEqual([before["g"], before["(other)"]], [[1, 1, 0], undefined]);
  assert.equal(before["engine::functions::list"], undefined);
  assert.deepEqual([numbers()["f"], numbers()["g"]], [[2, 0, 0], [1, 0, 0]]);
});

Deno.test("CallRecorder.load() returns the load of the router", () => {
  const { caller, recorder, worker } = recordedRouter();
  call(caller, "i1");
  worker.connection.queuedBytes = 7;

  assert.deepEqual(recorder.load(), { running: 1, parked: 0, connections: 2, queued_bytes: 7 });
});

Deno.test("CallRecorder.clear() removes ended calls and keeps running ones", () => {
  const { caller, worker, recorder } = recordedRouter();
  call(caller, "i1");
  call(caller, "i2");
  answer(worker, handed(worker)[0]!.invocation_id);
  recorder.clear();

  assert.deepEqual(recorder.find({}, 9).map(({ caller_invocation_id }) => caller_invocation_id), [
    "i2",
  ]);
});
