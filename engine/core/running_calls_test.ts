/**
 * Opening, sending and ending calls, and the observer's events.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import type { CallObserver, TraceBytes } from "../ports/call_observer.ts";
import { failure } from "./error_replies.ts";
import { ParkedCalls } from "./parked_calls.ts";
import { type Invocation, Peer } from "./peer.ts";
import { noopObserver } from "./router.ts";
import { RunningCalls } from "./running_calls.ts";
import { bytesOf, textOf, viewOf } from "./wire/bytes.ts";
import { Envelope } from "./wire/envelope.ts";
import { callerIdOf, type CallRemainder, remainderOf, UUID_BYTES } from "./wire/frame_parts.ts";

const SECRET = "00000000-0000-4000-9000-aabbccddeeff";
const FRAME = '{"type":"invokefunction","invocation_id":"i1","function_id":"f","data":{"n":1}}';
const RESULT = '{"type":"invocationresult","invocation_id":"x","function_id":"f","result":[2]}';
const SUBJECT = { function_id: "f", namespace: "default" };

function peer(id: string, builtin: string | null = null): Peer {
  const info = { address: null, launch_id: null, builtin };
  return new Peer(new FakeConnection(id), { id, reattach_token: "", info, connected_at_ms: 0 });
}

/** A frame as it was received, with other bytes around it. */
function read(frame: string): Envelope {
  const memory = bytesOf(`"},${frame}"}`);
  const envelope = new Envelope();
  assert.ok(envelope.read(memory, 3, memory.length - 2, true));
  return envelope;
}

/** The engine's id of a call. */
function idOf({ ids, idAt }: Invocation): string {
  return textOf(ids, idAt, idAt + UUID_BYTES);
}

function sentTo({ connection }: Peer): string[] {
  return (connection as FakeConnection).takeTexts();
}

/** Calls of `f` that a worker executes; `events` lists the observer's events. */
function setup(observing: Partial<CallObserver> = {}, builtin: string | null = null) {
  const clock = new FakeClock();
  const events: string[] = [];
  const due: Invocation[] = [];
  const observer: CallObserver = {
    ...noopObserver,
    opened: ({ since }) => void events.push(`opened at ${since}`),
    settled: (_call, memory, start, end) =>
      void events.push(`settled ${textOf(memory, start, end)}`),
    failed: (_call, { code }, endedBy) => void events.push(`failed ${code} by ${endedBy}`),
    ...observing,
  };
  const [caller, worker] = [peer("c"), peer("w", builtin)];
  const onDue = (invocation: Invocation) => void due.push(invocation);
  const parked = new ParkedCalls();
  const onEnd = () => {};
  const calls = new RunningCalls({ clock, parked, observer, secret: SECRET, onDue, onEnd });
  const remainder = read(FRAME);
  const call = { function_id: "f", subject: SUBJECT, timeout_ms: 50 };
  const about = { ...call, callee: worker, onEnd: undefined };
  const open = (ids = callerIdOf("i1"), its: CallRemainder = remainder) =>
    calls.open({ caller, ids, ...about, remainder: its });
  return { clock, events, due, caller, worker, calls, remainder, open };
}

Deno.test("a call is opened, sent and settled, and its observer is called before its caller", () => {
  const { calls, caller, worker, events, open, remainder, clock } = setup();
  clock.tick(4);
  const invocation = open();
  calls.send(invocation, caller, remainder, 4, undefined);
  const id = idOf(invocation);
  assert.deepEqual(sentTo(worker), [FRAME.replace("i1", id)]);
  assert.equal(calls.idOf(invocation.slot, invocation.uses), id);
  calls.settle(invocation, read(RESULT));

  assert.deepEqual(events, ["opened at 4", "settled [2]"]);
  assert.deepEqual(sentTo(caller), [RESULT.replace('"x"', '"i1"')]);
  assert.equal(calls.size, 0);
  assert.equal(calls.find(viewOf(bytesOf(id)), 0, id.length), undefined);
});

Deno.test("RunningCalls.send() replaces the traceparent by the observer's field", () => {
  const { calls, caller, worker, open, remainder } = setup({
    sent: () => field(',"traceparent":"t"'),
  });
  const invocation = open();
  calls.send(invocation, caller, remainder, 0, undefined);
  const [plain] = sentTo(worker);
  const traced = FRAME.replace(',"data"', ',"traceparent":"old","baggage":"b","data"');
  calls.send(invocation, caller, read(traced), 0, undefined);

  assert.equal(
    plain,
    FRAME.replace("i1", idOf(invocation)).replace(',"data"', ',"traceparent":"t","data"'),
  );
  assert.deepEqual(sentTo(worker), [traced.replace("i1", idOf(invocation)).replace("old", "t")]);
});

Deno.test("RunningCalls.send() adds the caller for built-in workers, before the traceparent", () => {
  const { calls, caller, worker, open, remainder } = setup(
    { sent: () => field(',"traceparent":"t"') },
    "own",
  );
  calls.send(open(), caller, remainder, 0, undefined);

  assert.match(sentTo(worker)[0]!, /"caller":"c","function_id":"f","traceparent":"t","data":/);
});

/** The field of an observer. */
function field(text: string): TraceBytes {
  const memory = bytesOf(text);
  return { memory, view: viewOf(memory) };
}

/** A frame between other bytes, of which only those of earlier frames may change. */
function between(frame: string, before = ""): { envelope: Envelope; untouched: () => boolean } {
  const around = '"},{"x":"';
  const memory = bytesOf(before + around + frame + around);
  const [start, end] = [before.length + around.length, memory.length - around.length];
  const envelope = new Envelope();
  assert.ok(envelope.read(memory, start, end, true));
  const ends = () => [textOf(memory, 0, start), textOf(memory, end, memory.length)];
  const untouched = () => ends()[1] === around && (before !== "" || ends()[0] === around);
  return { envelope, untouched };
}

const LONG_ID = "7d0e4b1e-9f0a-4f1b-8f4f-0123456789ab";
const FIELD = `,"traceparent":"00-${"a".repeat(32)}-${"b".repeat(16)}-01"`;
const OTHER_FIELD = `,"traceparent":"00-${"c".repeat(32)}-${"d".repeat(16)}-00"`;
/** Earlier frames, which a longer prefix may overwrite. */
const BEFORE = FRAME.repeat(2);
const LONG_FIELD = `,"traceparent":"${"e".repeat(99)}"`;
const TRACES = ["", LONG_FIELD, ',"traceparent":"x"', OTHER_FIELD, `${OTHER_FIELD},"baggage":"b"`];

for (const id of ["i", "ï", LONG_ID.slice(1), LONG_ID, `${LONG_ID}x`]) {
  Deno.test(`a call with the id ${id} is forwarded, and so is its result`, () => {
    for (const trace of TRACES) {
      for (const sent of [undefined, field(FIELD)]) {
        for (const [builtin, before] of [[null, ""], [null, BEFORE], ["own", BEFORE]] as const) {
          const { calls, caller, worker, open } = setup({ sent: () => sent }, builtin);
          const frame = FRAME.replace("i1", id).replace(',"data"', `${trace},"data"`);
          const { envelope, untouched } = between(frame, before);
          const invocation = open(envelope, envelope);
          calls.send(invocation, caller, envelope, 0, undefined);

          const baggage = trace.includes("baggage") ? ',"baggage":"b"' : "";
          const own = builtin ? `${idOf(invocation)}","caller":"c` : idOf(invocation);
          const expected = FRAME.replace("i1", own)
            .replace(',"data"', `${sent ? FIELD + baggage : trace},"data"`);
          assert.deepEqual(sentTo(worker), [expected]);
          assert.ok(untouched());

          const answer = between(RESULT.replace('"x"', `"${idOf(invocation)}"`));
          calls.settle(invocation, answer.envelope);
          assert.deepEqual(sentTo(caller), [RESULT.replace('"x"', `"${id}"`)]);
          assert.ok(answer.untouched());
        }
      }
    }
  });
}

Deno.test("each way in which a call ends is observed once", () => {
  const { calls, caller, events, open } = setup();
  const error = failure("timeout", "late");
  calls.fail(open(), error, "its time");
  calls.drop(open(), error, "no worker");
  calls.settleError(open(), remainderOf(`","error":1}`), error);

  const ends = events.filter((line) => !line.startsWith("opened"));
  assert.deepEqual(ends, [
    "failed timeout by its time",
    "failed timeout by no worker",
    "failed timeout by null",
  ]);
  assert.equal(sentTo(caller).length, 2, "one was dropped without a word");
  assert.equal(calls.size, 0);
});

Deno.test("onDue is called while the record is open, and not after the end", () => {
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
