/**
 * The records of running calls, and what an observer hears of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import type { CallObserver } from "../ports/call_observer.ts";
import { readEnvelope } from "./envelope.ts";
import type { CallEnvelope, ResultEnvelope } from "./envelope.ts";
import { HeldCalls } from "./held_calls.ts";
import type { Invocation } from "./invocations.ts";
import { Peer } from "./peer.ts";
import { failure } from "./refusals.ts";
import { RunningCalls } from "./running_calls.ts";
import { unobserved } from "./unobserved.ts";

const SECRET = "00000000-0000-4000-9000-aabbccddeeff";
const FRAME = '{"type":"invokefunction","invocation_id":"i1","function_id":"f","data":{"n":1}}';
const RESULT = '{"type":"invocationresult","invocation_id":"x","function_id":"f","result":[2]}';
const SUBJECT = { function_id: "f", namespace: "default" };

function peer(id: string, builtin: string | null = null): Peer {
  const info = { address: null, launch_id: null, builtin };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

function sentTo({ connection }: Peer): string[] {
  return (connection as FakeConnection).takeTexts();
}

/** Calls of `f`, which a worker runs for a caller; `heard` is what the observer was told. */
function setup(observing: Partial<CallObserver> = {}, builtin: string | null = null) {
  const clock = new FakeClock();
  const heard: string[] = [];
  const due: Invocation[] = [];
  const observer: CallObserver = {
    ...unobserved,
    opened: ({ since }) => void heard.push(`opened at ${since}`),
    settled: (_call, text, start) => void heard.push(`settled ${text.slice(start, -1)}`),
    failed: (_call, { code }, endedBy) => void heard.push(`failed ${code} by ${endedBy}`),
    ...observing,
  };
  const [caller, worker] = [peer("c"), peer("w", builtin)];
  const onDue = (invocation: Invocation) => void due.push(invocation);
  const held = new HeldCalls();
  const calls = new RunningCalls({ clock, held, observer, secret: SECRET, onDue });
  const tail = readEnvelope(FRAME) as CallEnvelope;
  const who = { caller, callerId: "i1", callee: worker };
  const open = () =>
    calls.open({ ...who, function_id: "f", subject: SUBJECT, timeout_ms: 50, tail });
  return { clock, heard, due, caller, worker, calls, tail, open };
}

Deno.test("a call is opened, sent and settled, and its observer hears before its caller", () => {
  const { calls, caller, worker, heard, open, tail, clock } = setup();
  clock.tick(4);
  const invocation = open();
  calls.send(invocation, caller, tail, 4, undefined);
  const { id } = invocation;
  assert.deepEqual(sentTo(worker), [FRAME.replace("i1", id)]);
  assert.equal(calls.idOf(invocation.slot, invocation.uses), id);
  calls.settle(invocation, readEnvelope(RESULT) as ResultEnvelope);

  assert.deepEqual(heard, ["opened at 4", "settled [2]"]);
  assert.deepEqual(sentTo(caller), [RESULT.replace('"x"', '"i1"')]);
  assert.equal(calls.size, 0);
  assert.equal(calls.find(id), undefined);
});

Deno.test("RunningCalls.send() puts the observer's field where a traceparent stands", () => {
  const { calls, caller, worker, open, tail } = setup({ sent: () => ',"traceparent":"t"' });
  const invocation = open();
  calls.send(invocation, caller, tail, 0, undefined);
  const [plain] = sentTo(worker);
  const traced = FRAME.replace(',"data"', ',"traceparent":"old","baggage":"b","data"');
  calls.send(invocation, caller, readEnvelope(traced) as CallEnvelope, 0, undefined);

  assert.equal(
    plain,
    FRAME.replace("i1", invocation.id).replace(',"data"', ',"traceparent":"t","data"'),
  );
  assert.deepEqual(sentTo(worker), [traced.replace("i1", invocation.id).replace("old", "t")]);
});

Deno.test("RunningCalls.send() tells the engine's own workers who calls, before the traceparent", () => {
  const { calls, caller, worker, open, tail } = setup({ sent: () => ',"traceparent":"t"' }, "own");
  calls.send(open(), caller, tail, 0, undefined);

  assert.match(sentTo(worker)[0]!, /"caller":"c","function_id":"f","traceparent":"t","data":/);
});

Deno.test("each way in which a call ends is told once", () => {
  const { calls, caller, heard, open } = setup();
  const error = failure("timeout", "late");
  calls.fail(open(), error, "its time");
  calls.drop(open(), error, "nobody");
  calls.settleError(open(), { text: `","error":1}`, idEnd: 0, resultStart: -1 }, error);

  const ends = heard.filter((line) => !line.startsWith("opened"));
  assert.deepEqual(ends, [
    "failed timeout by its time",
    "failed timeout by nobody",
    "failed timeout by null",
  ]);
  assert.equal(sentTo(caller).length, 2, "one was dropped without a word");
  assert.equal(calls.size, 0);
});

Deno.test("a call falls due with its record open, and not after its end", () => {
  const { calls, clock, due, open } = setup();
  const first = open();
  calls.drop(open(), failure("timeout", ""), null);
  clock.tick(50);

  assert.deepEqual(due, [first]);
  assert.equal(calls.size, 1);
  calls.drop(first, failure("timeout", ""), null);
  calls.stop();
  assert.equal(clock.waiting, 0);
});
