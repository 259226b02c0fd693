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

/** A line that keeps nothing. */
function quiet(line: FakeWorker, send: (head: string, rest: string) => void): FakeWorker {
  line.connection.send = (head, rest = "") => send(String(head), String(rest));
  return line;
}

/** Makes one call after the other, with so many others that never end. */
function setup(running: number): (head: string) => void {
  const engine = fakeRouter({ max_inflight_calls_per_worker: running + 10 });
  let id = "";
  const worker = quiet(engine.open(), (head) => id = head.slice(-36));
  const caller = quiet(engine.open(), () => {});
  worker.say({ type: "registerfunction", id: "math::add" });
  for (let i = 0; i < running; i++) {
    caller.say({ type: "invokefunction", invocation_id: `${i}`, function_id: "math::add" });
  }
  let calls = 0;
  return (space) => {
    caller.say(
      `${space}{"type":"invokefunction","invocation_id":"7d0e4b1e-9f0a-2f1b-6f4f-${++calls}",` +
        `"function_id":"math::add","data":${DATA}}`,
    );
    worker.say(
      `${space}{"type":"invocationresult","invocation_id":"${id}","function_id":"math::add",` +
        `"result":${DATA}}`,
    );
  };
}

for (const running of [0, 5_000]) {
  const run = setup(running);
  const group = "call and result";

  Deno.bench({ group, name: `${running} running`, baseline: running === 0, fn: () => run("") });
  Deno.bench({ group, name: `${running} running, parsed`, fn: () => run(" ") });
}
