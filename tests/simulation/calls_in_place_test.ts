/**
 * Calls and results that are rewritten in the read buffer: the frames behind them in the same
 * memory, and those of which a part came before, arrive as sent.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FrameReader, OPCODE } from "../../engine/transport/frames.ts";
import type { ConnectionEvents } from "../../engine/ports/connection.ts";
import { CallRecorder } from "../../engine/telemetry/call_recorder.ts";
import { fakeRouter, handed, results } from "../fakes/fake_router.ts";

const FIELD = `,"traceparent":"00-${"a".repeat(32)}-${"b".repeat(16)}-01"`;
/** None, a field as long as the engine's, a shorter and a longer one. */
const FIELDS = ["", FIELD, ',"traceparent":"x"', `,"traceparent":"${"y".repeat(99)}"`];
const MESSAGES = 24;

/** Frames of `messages`, so many in each; the last of every four frames is in two fragments. */
function framesOf(messages: readonly string[], each: number): number[] {
  const bytes: number[] = [];
  const add = (first: number, payload: readonly number[]): void => {
    bytes.push(first, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0, ...payload);
  };
  for (let at = 0, frame = 1; at < messages.length; at += each, frame++) {
    const payload = [...new TextEncoder().encode(messages.slice(at, at + each).join("\n"))];
    if (frame % 4 !== 0) add(0x80 | OPCODE.text, payload);
    else {
      add(OPCODE.text, payload.slice(0, 50));
      add(0x80 | OPCODE.more, payload.slice(50));
    }
  }
  return bytes;
}

/** Reads bytes as a raw connection does, so many at a time. */
function say(events: ConnectionEvents, bytes: readonly number[], atOnce: number): void {
  const fail = (): void => assert.fail("only text is sent");
  const text = (memory: Uint8Array, start: number, end: number, isPlain: boolean): void =>
    events.textBytes(memory, start, end, isPlain);
  const other = { binary: fail, ping: fail, closeFrame: fail, violation: fail };
  const reader = new FrameReader({ text, ...other }, 1_000_000, { isBatching: true });
  for (let at = 0; at < bytes.length;) {
    const part = bytes.slice(at, at + Math.min(atOnce, reader.room().length));
    reader.room().set(part);
    reader.added(part.length);
    reader.read();
    at += part.length;
  }
}

for (const each of [1, 3]) {
  for (const atOnce of [100_000, 500]) {
    Deno.test(`calls of which ${each} share a frame arrive as sent, ${atOnce} bytes a read`, () => {
      const engine = fakeRouter({}, (clock) => {
        const recorder = new CallRecorder({ clock });
        const memory = { memory_bytes: 1_000_000, payload_chars: 100 };
        recorder.configure({ enabled: true, ratio: 1, rules: [], ...memory });
        return recorder;
      });
      const [worker, caller] = [engine.open(), engine.open()];
      worker.say({ type: "registerfunction", id: "f" });
      const ids = Array.from({ length: MESSAGES }, () => crypto.randomUUID());
      const calls = ids.map((id, i) =>
        `{"type":"invokefunction","invocation_id":"${id}","function_id":"f"` +
        `${FIELDS[i % FIELDS.length]},"data":"${String(i).repeat(20)}"}`
      );

      say(caller.events, framesOf(calls, each), atOnce);
      const arrived = handed(worker);
      const answers = arrived.map(({ invocation_id, data }) =>
        `{"type":"invocationresult","invocation_id":"${invocation_id}","function_id":"f"` +
        `,"result":${JSON.stringify(data)}}`
      );
      say(worker.events, framesOf(answers, each), atOnce);

      assert.ok(arrived.every(({ traceparent }) => /^00-\w{32}-\w{16}-01$/.test(traceparent!)));
      const expected = ids.map((id, i) => [id, String(i).repeat(20)]);
      assert.deepEqual(Object.entries(results(caller)), expected);
    });
  }
}
