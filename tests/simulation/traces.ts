/**
 * The recorded spans of a simulated router, compared with the calls of the model.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallSpan } from "../../engine/ports/telemetry.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import {
  ANNOUNCE_FUNCTION_ID,
  type InvocationResult,
  type InvokeFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import type { FakeClock } from "../fakes/fake_clock.ts";
import type { SimCall } from "./calls.ts";
import type { SimPeer } from "./world.ts";

/** Trace contexts of callers: recorded, not recorded, and an invalid one. */
export const SIM_TRACEPARENTS: readonly string[] = [
  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b8-00",
  "00-00000000000000000000000000000000-00f067aa0ba902b8-01",
];
const UNSAMPLED = SIM_TRACEPARENTS[1];
const VALID = SIM_TRACEPARENTS.slice(0, 2);
const ALL = 1_000_000;

/** Checks the recorder of a simulated world. */
export class SimTraces {
  readonly recorder: CallRecorder;
  readonly #isOn: boolean;
  #seen = new Set<number>();

  /** Records all calls, or none. */
  constructor(clock: FakeClock, isOn: boolean) {
    this.#isOn = isOn;
    this.recorder = new CallRecorder({ clock });
    const memory_bytes = 4 * 1024 * 1024;
    const settings = { enabled: isOn, ratio: 1, rules: [], memory_bytes, payload_chars: 100 };
    this.recorder.configure(settings);
  }

  /** A worker receives a call: its trace continues under a span of the engine. */
  handed({ traceparent }: SimCall, message: InvokeFunction): void {
    if (!this.#isOn) return assert.equal(message.traceparent, traceparent);
    assert.match(message.traceparent ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/);
    const [, trace, span, flags] = message.traceparent!.split("-");
    if (traceparent === undefined || !VALID.includes(traceparent)) {
      return assert.equal(flags, "01", "a new trace is recorded");
    }
    const [, wasTrace, wasSpan, wasFlags] = traceparent.split("-");
    assert.deepEqual([trace, flags], [wasTrace, wasFlags], "its trace does not go on");
    assert.notEqual(span, wasSpan, "it got no span of its own");
  }

  /** A caller receives a result: the span has the same outcome. */
  ended(peer: SimPeer, call: SimCall, { invocation_id, error }: InvocationResult): void {
    if (!this.#isRecorded(call)) return;
    const spans = this.recorder.find({ invocation_id, running: false }, ALL);
    const span = spans.find(({ caller }) => caller.worker_id === peer.worker_id);
    assert.ok(span, "a call ended without a span");
    assert.equal(span.error_code, error?.code ?? null);
  }

  /** As many spans run as calls are open, and each span that ended did so once. */
  check(open: readonly SimCall[]): void {
    const meters = [...this.recorder.functions(), this.recorder.other];
    const inFlight = meters.reduce((sum, { in_flight }) => sum + in_flight, 0);
    assert.equal(inFlight, open.length, "calls in flight are miscounted");
    for (const { function_id, calls, in_flight, durations } of meters) {
      const ended = Array.from(durations).reduce((sum, count) => sum + count, 0);
      assert.ok(ended <= calls - in_flight, `${function_id} has more ends than calls`);
    }
    const expected = open.filter((call) => this.#isRecorded(call));
    assert.equal(this.recorder.find({ running: true }, ALL).length, expected.length);
  }

  /** At the end each call that was to be recorded has ended once. */
  over(made: Iterable<SimCall>): void {
    const { spans } = this.recorder.ended(0, ALL);
    for (const span of spans) this.#checkEnded(span);
    const of = spans.filter(({ function_id }) => function_id !== ANNOUNCE_FUNCTION_ID);
    assert.equal(of.length, [...made].filter((call) => this.#isRecorded(call)).length);
    assert.equal(spans.length, this.recorder.usage.recorded);
    assert.deepEqual(this.recorder.find({ running: true }, ALL), []);
    assert.equal(this.#seen.size, Math.max(0, ...this.#seen), "a call has no end");
  }

  #isRecorded({ traceparent }: SimCall): boolean {
    return this.#isOn && traceparent !== UNSAMPLED;
  }

  #checkEnded({ seq, start_ms, sent_ms, end_ms, callee, error_code }: CallSpan): void {
    assert.ok(!this.#seen.has(seq), "a call ended twice");
    this.#seen.add(seq);
    assert.ok(end_ms !== null && start_ms <= end_ms);
    assert.equal(sent_ms === null, callee === null);
    assert.ok(sent_ms === null || (start_ms <= sent_ms && sent_ms <= end_ms));
    assert.ok(callee !== null || error_code !== null, "a call succeeded that no worker ran");
  }
}
