/**
 * What one call costs in the core: from the caller's frame to the result, without any socket.
 *
 * Expected: a few microseconds in canonical order, whatever the payload up to some kilobytes, and
 * flat in the calls that run besides; several times that when the frame has to be parsed.
 *
 * @module
 */
import { fakeRouter, type FakeWorker } from "../fakes/fake_router.ts";

const DATA = JSON.stringify({ sku: "A1", text: "x".repeat(80) });
const CALL = '{"type":"invokefunction","invocation_id":"';
const RESULT = '{"type":"invocationresult","invocation_id":"';
const HEX = "0123456789abcdef";
const ID = "7d0e4b1e-9f0a-2f1b-6f4f-000000000000";

/** A frame whose id can be written over, and what hands it to the engine as a listener does. */
interface Frame {
  say(id: Uint8Array): void;
}

function frame(worker: FakeWorker, start: string, rest: string): Frame {
  const bytes = new TextEncoder().encode(`${start}${ID}","function_id":"math::add",${rest}}`);
  return {
    say(id) {
      bytes.set(id, start.length);
      worker.events.textBytes(bytes, 0, bytes.length, true);
    },
  };
}

/** Keeps nothing but the id of the last call it was sent. */
function remember(worker: FakeWorker, id: Uint8Array): void {
  worker.connection.forward = (head) => id.set(head.subarray(CALL.length, CALL.length + ID.length));
  worker.connection.send = (text) => {
    new TextEncoder().encodeInto(text.slice(CALL.length, CALL.length + ID.length), id);
  };
}

/** Calls one after the other, beside so many calls that never end. */
function setup(running: number, space: string): () => void {
  const engine = fakeRouter({ max_inflight_calls_per_worker: running + 10 });
  const [worker, caller] = [engine.open(), engine.open()];
  worker.say({ type: "registerfunction", id: "math::add" });
  for (let i = 0; i < running; i++) {
    caller.say({ type: "invokefunction", invocation_id: `${i}`, function_id: "math::add" });
  }
  const id = new TextEncoder().encode(ID);
  remember(worker, id);
  remember(caller, id.slice());
  const call = frame(caller, `${space}${CALL}`, `"data":${DATA}`);
  const result = frame(worker, `${space}${RESULT}`, `"result":${DATA}`);
  const own = new TextEncoder().encode(ID);
  let calls = 0;
  return () => {
    // Each call has an id of its own, as with real callers: its last eight digits count.
    for (let at = 0, left = calls++; at < 8; at++, left >>>= 4) {
      own[ID.length - 1 - at] = HEX.charCodeAt(left & 15);
    }
    call.say(own);
    result.say(id);
  };
}

for (const running of [0, 5_000]) {
  const group = "call and result";
  const [read, parsed] = [setup(running, ""), setup(running, " ")];

  Deno.bench({ group, name: `${running} running`, baseline: running === 0, fn: read });
  Deno.bench({ group, name: `${running} running, parsed`, fn: parsed });
}
