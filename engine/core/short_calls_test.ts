/**
 * Calls that are over as soon as they came.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { Peer } from "./peer.ts";
import { shortCallOf } from "./short_calls.ts";

const info = { address: null, launch_id: null, builtin: null };
const caller = new Peer(new FakeConnection("c"), {
  id: "c",
  reattach_token: "",
  info,
  connected_at_ms: 0,
});

Deno.test("shortCallOf() says what the frame says, its payload as it was written", () => {
  const text = '{"data":{"n": 1.50},"type":"invokefunction"}';
  const said = { invocation_id: "i", function_id: "f", namespace: "eu", timeout_ms: 5 };
  const trace = { traceparent: "t", baggage: "b" };
  const { request, ...call } = shortCallOf(
    caller,
    { type: "invokefunction", ...said, ...trace },
    text,
  );

  assert.deepEqual(call, {
    function_id: "f",
    namespace: "eu",
    caller: caller.party,
    caller_invocation_id: "i",
    timeout_ms: 5,
    ...trace,
  });
  assert.equal(request(), '{"n": 1.50}');
});

Deno.test("shortCallOf() says that nobody waits for a call with an action", () => {
  const type = "invokefunction";
  const action = { type: "void" } as const;
  const call = shortCallOf(caller, { type, invocation_id: "i", function_id: "f", action });

  assert.equal(call.caller_invocation_id, undefined);
  assert.deepEqual([call.namespace, call.timeout_ms, call.request()], ["default", 0, undefined]);
});
