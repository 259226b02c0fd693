/**
 * Commands beside workers: bytes in order, in pieces.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Ended, OutputChunk } from "../../engine/ports/launcher.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { runBeside } from "./exec.ts";

/** Runs a command that prints this and ends like that; what was sent, and how it ended. */
async function setup(printed: readonly OutputChunk[], ended: Ended) {
  const sent: { stream: string; data: string }[] = [];
  const exec = (_request: unknown, output: (chunk: OutputChunk) => void) => {
    for (const chunk of printed) output(chunk);
    return Promise.resolve(ended);
  };
  const context = {
    signal: new AbortController().signal,
    progress: (data: Json) => void sent.push(data as { stream: string; data: string }),
  };
  const result = await runBeside({ exec }, { name: "m", command: ["c"] }, context);
  return { sent, result };
}

Deno.test("output is cut into pieces whose bytes are the same, in order", async () => {
  const bytes = new Uint8Array(100_000).map((_, i) => i % 251);

  const { sent, result } = await setup([
    { stream: "stdout", bytes },
    { stream: "stderr", bytes: new Uint8Array() },
    { stream: "stderr", bytes: new Uint8Array([0, 255]) },
  ], { code: 0, signal: null });

  assert.deepEqual(result, { code: 0, signal: null });
  assert.deepEqual(sent.map(({ stream }) => stream), ["stdout", "stdout", "stdout", "stderr"]);
  const received = sent.flatMap(({ data }) => [...Uint8Array.fromBase64(data)]);
  assert.deepEqual(received, [...bytes, 0, 255]);
});

Deno.test("why a command was ended is passed on", async () => {
  const ended = { code: null, signal: "SIGKILL", reason: "took longer than 600 s" };

  assert.deepEqual((await setup([], ended)).result, ended);
});

Deno.test("a command that cannot be started is a failure of the call", async () => {
  const exec = () => Promise.reject(new Error("no such program"));
  const context = { signal: new AbortController().signal, progress: () => {} };

  const running = runBeside({ exec }, { name: "m", command: ["c"] }, context);

  await assert.rejects(running, /no such program/);
});
