import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { TELEMETRY_BYTES_PER_SECOND } from "../core/guards.ts";
import { TelemetryLine } from "./telemetry_line.ts";

Deno.test("telemetry is handed on by its kind, without its mark", () => {
  const { line, frames } = setup();

  for (const kind of ["OTLP", "MTRC", "LOGS"]) line.binary(bytes(`${kind}{"a":1}`));

  assert.deepEqual(frames, [
    'OTLP {"a":1} 10.0.0.7',
    'MTRC {"a":1} 10.0.0.7',
    'LOGS {"a":1} 10.0.0.7',
  ]);
});

Deno.test("what is no telemetry reaches nobody", () => {
  const { line, frames } = setup();

  for (const text of ["", "LO", "otlp{}", "XXXX{}", '{"type":"ping"}']) line.binary(bytes(text));
  line.text();
  line.drained();
  line.closed();

  assert.deepEqual(frames, []);
});

Deno.test("a line gets its share of each second, and one warning for the rest", () => {
  const { line, frames, clock, logged } = setup();
  const half = bytes("LOGS" + "x".repeat(TELEMETRY_BYTES_PER_SECOND / 2));

  for (let i = 0; i < 3; i++) line.binary(half);
  assert.equal(frames.length, 1);

  clock.tick(1_000);
  for (let i = 0; i < 3; i++) line.binary(half);
  assert.equal(frames.length, 2);
  assert.equal(logged.length, 1);
  assert.equal(logged[0]!.fields.address, "10.0.0.7");
});

function setup() {
  const clock = new FakeClock();
  const logged: LogLine[] = [];
  const frames: string[] = [];
  const line = new TelemetryLine({
    clock,
    log: recordingLog(logged),
    address: "10.0.0.7",
    listener: ({ kind, bytes, address, worker_id }) => {
      assert.equal(worker_id, null);
      frames.push(`${kind} ${new TextDecoder().decode(bytes).slice(0, 20)} ${address}`);
    },
  });
  return { line, frames, clock, logged };
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
