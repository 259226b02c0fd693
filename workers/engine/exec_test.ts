/**
 * Commands beside workers: bytes in order, and bounds on time and output.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type { Supervision } from "../../engine/ports/supervision.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { runBeside } from "./exec.ts";

type Output = (chunk: OutputChunk) => void;

/** A command that runs until it is ended; `print` is its output. */
function setup() {
  const clock = new FakeClock();
  const sent: { stream: string; data: string }[] = [];
  const giveUp = new AbortController();
  const ended = Promise.withResolvers<Ended>();
  const started = Promise.withResolvers<{ output: Output; signal: AbortSignal }>();
  const supervision = {
    exec: (_request: unknown, output: Output, signal: AbortSignal) => {
      started.resolve({ output, signal });
      signal.addEventListener("abort", () => ended.resolve({ code: null, signal: "SIGKILL" }));
      return ended.promise;
    },
  } as unknown as Supervision;
  const context = {
    signal: giveUp.signal,
    progress: (data: Json) => void sent.push(data as { stream: string; data: string }),
  };
  const result = runBeside({ clock, supervision }, { name: "m", command: ["c"] }, context);
  return { clock, sent, giveUp, ended, started, result };
}

function bytesOf(sent: readonly { data: string }[]): number[] {
  return sent.flatMap(({ data }) => [...Uint8Array.fromBase64(data)]);
}

Deno.test("output is cut into pieces whose bytes are the same, in order", async () => {
  const it = setup();
  const { output } = await it.started.promise;
  const bytes = new Uint8Array(100_000).map((_, i) => i % 251);

  output({ stream: "stdout", bytes });
  output({ stream: "stdout", bytes: new Uint8Array() });
  it.ended.resolve({ code: 0, signal: null });

  assert.deepEqual(await it.result, { code: 0, signal: null });
  assert.equal(it.sent.length, 3);
  assert.deepEqual(bytesOf(it.sent), [...bytes]);
});

Deno.test("a command that prints without end is ended at the bound, and the caller told", async () => {
  const it = setup();
  const { output, signal } = await it.started.promise;
  const bytes = new Uint8Array(1024 * 1024 - 1);

  for (let i = 0; i < 66 && !signal.aborted; i++) output({ stream: "stderr", bytes });
  const count = it.sent.length;
  output({ stream: "stderr", bytes });

  assert.deepEqual(await it.result, {
    code: null,
    signal: "SIGKILL",
    reason: "it printed more than 64 MiB and was ended",
  });
  assert.equal(it.sent.length, count);
  const total = it.sent.reduce((sum, { data }) => sum + Uint8Array.fromBase64(data).length, 0);
  assert.equal(total, 64 * 1024 * 1024);
});

Deno.test("a command that runs too long is ended, and the caller told", async () => {
  const it = setup();
  const { signal } = await it.started.promise;

  it.clock.tick(599_999);
  assert.equal(signal.aborted, false);
  it.clock.tick(1);

  assert.deepEqual(await it.result, {
    code: null,
    signal: "SIGKILL",
    reason: "it took longer than 600 s and was ended",
  });
});

Deno.test("a command that has ended leaves no timer behind", async () => {
  const it = setup();
  await it.started.promise;

  it.ended.resolve({ code: 1, signal: null });
  await it.result;

  assert.equal(it.clock.waiting, 0);
});

Deno.test("a caller that gives up ends the command, which is not called too long", async () => {
  const it = setup();
  await it.started.promise;

  it.giveUp.abort();

  assert.deepEqual(await it.result, { code: null, signal: "SIGKILL" });
});
