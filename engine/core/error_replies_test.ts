/**
 * Calls that cannot start: invalid payloads, overloaded workers, unknown functions.
 *
 * @module
 */
import assert from "node:assert/strict";
import { WARNINGS_MAX, WARNINGS_WINDOW_MS } from "../ports/events.ts";
import {
  answer,
  call,
  calling,
  fakeRouter,
  handed,
  only,
  results,
} from "../../tests/fakes/fake_router.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { CallRecorder } from "../telemetry/call_recorder.ts";
import { unopenedCallOf } from "./error_replies.ts";
import { Peer } from "./peer.ts";

const FORMAT = { type: "object", required: ["a"] };

Deno.test("an invalid payload never reaches the worker", () => {
  const { worker, caller } = calling();
  worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });

  call(caller, "i1", { function_id: "g", data: {} });

  const message = only(caller);
  assert.deepEqual(message.type === "invocationresult" && message.error, {
    code: "invalid_payload",
    message: "Payload of g does not fit its request_format: must have required property 'a'",
    details: { errors: [{ path: "", message: "must have required property 'a'" }] },
  });
  assert.deepEqual(handed(worker), []);
});

Deno.test("a rejected call counts for its function if that exists, else for (other)", () => {
  let recorder!: CallRecorder;
  const engine = fakeRouter({}, (clock) => recorder = new CallRecorder({ clock }));
  const [worker, caller] = [engine.open(), engine.open()];
  worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });

  call(caller, "i1", { function_id: "g", data: {} });
  call(caller, "i2", { function_id: "none", data: {} });

  const counts = [...recorder.functions()].map((
    { function_id, calls, errors },
  ) => [function_id, calls, [...errors]]);
  assert.deepEqual(counts, [["g", 1, [["invalid_payload", 1]]]]);
  assert.deepEqual([...recorder.other.errors], [["function_not_found", 1]]);
});

Deno.test("a missing payload is checked as null", () => {
  const { worker, caller } = calling();
  worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });

  caller.say({ type: "invokefunction", invocation_id: "i1", function_id: "g" });

  assert.deepEqual(results(caller), { i1: "invalid_payload" });
});

Deno.test("a valid payload is forwarded with its original bytes", () => {
  const { worker, caller } = calling();
  worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });

  caller.say(
    '{"type":"invokefunction","invocation_id":"i1","function_id":"g","data":{"a": 12345678901234567890}}',
  );

  assert.ok(worker.connection.takeTexts()[0]?.endsWith('"data":{"a": 12345678901234567890}}'));
});

Deno.test("each replica's own request_format counts", () => {
  const { worker, caller, open } = calling();
  const strict = open();
  strict.say({ type: "registerfunction", id: "f", request_format: FORMAT });

  for (let i = 0; i < 4; i++) call(caller, `${i}`, { data: {} });

  assert.equal(handed(strict).length, 0);
  assert.ok(handed(worker).length > 0);
  assert.ok(Object.values(results(caller)).every((code) => code === "invalid_payload"));
});

Deno.test("payloads are not checked when the setting is off, nor those of built-in workers", () => {
  const off = calling({ validate_payloads: false });
  off.worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });
  call(off.caller, "i1", { function_id: "g" });
  assert.equal(handed(off.worker).length, 1);

  const on = calling();
  on.worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });
  call(on.openBuiltin("engine-http"), "i1", { function_id: "g" });
  assert.equal(handed(on.worker).length, 1);
});

Deno.test("the request_format of a built-in function is not enforced", () => {
  const { caller, openBuiltin } = calling();
  const builtin = openBuiltin("engine-state");
  builtin.say({ type: "registerfunction", id: "s", request_format: FORMAT });

  call(caller, "i1", { function_id: "s", data: {} });

  assert.deepEqual(results(caller), {});
  assert.equal(handed(builtin).length, 1);
});

Deno.test("a request_format that is not a schema is one warning and not enforced", () => {
  const { worker, caller, events } = calling();
  worker.say({ type: "registerfunction", id: "g", request_format: { type: "strange" } });

  for (const id of ["i1", "i2"]) call(caller, id, { function_id: "g" });

  assert.equal(handed(worker).length, 2);
  const warnings = events.filter((event) => event.type === "warning");
  assert.deepEqual(warnings.map(({ worker_id, detail }) => [worker_id, detail]), [
    [worker.worker_id, "g: only objects are understood"],
  ]);
});

Deno.test("a call for which all replicas are at their limit ends with overloaded, and is retryable", () => {
  const { worker, caller, open } = calling({ max_inflight_calls_per_worker: 1 });
  const other = open();
  other.say({ type: "registerfunction", id: "f" });
  for (const id of ["i1", "i2", "i3"]) call(caller, id);

  const message = only(caller);
  assert.ok(message.type === "invocationresult");
  assert.deepEqual([message.invocation_id, message.error?.code, message.error?.retryable], [
    "i3",
    "overloaded",
    true,
  ]);
  answer(worker, handed(worker)[0]!.invocation_id);
  call(caller, "i3");
  assert.equal(handed(worker).length, 1);
});

Deno.test("a worker that does not read gets no more calls", () => {
  const { worker, caller } = calling({ max_inflight_bytes_per_worker: 10_000 });
  worker.connection.queuedBytes = 10_000;

  call(caller, "i1");
  worker.connection.queuedBytes = 0;
  call(caller, "i2");

  assert.deepEqual(results(caller), { i1: "overloaded" });
  assert.equal(handed(worker).length, 1);
});

Deno.test("a rejected void call is a warning and an error frame", () => {
  const { worker, caller, events } = calling({ max_inflight_calls_per_worker: 1 });
  worker.say({ type: "registerfunction", id: "g", request_format: FORMAT });
  const action = { type: "void" } as const;

  call(caller, "i1", { function_id: "g", action });
  call(caller, "i1", { action });
  call(caller, "i2", { action });

  const codes = caller.connection.take().map((message) =>
    message.type === "error" && message.error.code
  );
  assert.deepEqual(codes, ["invalid_payload", "overloaded"]);
  assert.equal(events.filter(({ type }) => type === "warning").length, 2);
});

Deno.test("the warnings of a connection are limited, until some time has passed", () => {
  const { caller, events, clock, open } = calling();
  const call100 = () => {
    for (let i = 0; i < 100; i++) caller.say({ type: "invokefunction", function_id: "missing" });
    return events.splice(0).filter(({ type }) => type === "warning").length;
  };

  assert.deepEqual([call100(), call100()], [WARNINGS_MAX, 0]);
  open().say({ type: "invokefunction", function_id: "missing" });
  assert.equal(events.splice(0).filter(({ type }) => type === "warning").length, 1);
  clock.tick(WARNINGS_WINDOW_MS);
  assert.equal(call100(), WARNINGS_MAX);
});

const info = { address: null, launch_id: null, builtin: null };
const caller = new Peer(new FakeConnection("c"), {
  id: "c",
  reattach_token: "",
  info,
  connected_at_ms: 0,
});

Deno.test("unopenedCallOf() has the fields of the frame, and its payload as it was written", () => {
  const payload = '{"n": 1.50}';
  const said = { invocation_id: "i", function_id: "f", namespace: "eu", timeout_ms: 5 };
  const trace = { traceparent: "t", baggage: "b" };
  const { request, ...call } = unopenedCallOf(
    caller,
    { type: "invokefunction", ...said, ...trace },
    { field: (name) => name === "data" ? payload : undefined },
  );

  assert.deepEqual(call, {
    function_id: "f",
    namespace: "eu",
    caller: caller.endpoint,
    caller_invocation_id: "i",
    timeout_ms: 5,
    ...trace,
  });
  assert.equal(request(), payload);
});

Deno.test("unopenedCallOf() has no caller id for a call with an action", () => {
  const type = "invokefunction";
  const action = { type: "void" } as const;
  const call = unopenedCallOf(caller, { type, invocation_id: "i", function_id: "f", action });

  assert.equal(call.caller_invocation_id, undefined);
  assert.deepEqual([call.namespace, call.timeout_ms, call.request()], ["default", 0, undefined]);
});
