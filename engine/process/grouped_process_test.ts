import assert from "node:assert/strict";
import { GroupedProcess } from "./grouped_process.ts";
import { isGroupAlive } from "./process_group.ts";

const NOTHING = (): Promise<void> => Promise.resolve();

/** A process that collects what it prints on both streams. */
function setup(...argv: string[]) {
  const bytes = { stdout: [] as number[], stderr: [] as number[] };
  const process = new GroupedProcess({ argv, directory: "/", env: { A: "1" } }, (chunk) => {
    bytes[chunk.stream].push(...chunk.bytes);
  });
  return { process, bytes };
}

Deno.test("GroupedProcess runs nothing before it is opened, and not when it may not", async () => {
  const { process, bytes } = setup("echo", "ran");

  const refused = process.open(1_000, () => Promise.reject(new Error("disk full")));

  await assert.rejects(refused, { message: "disk full" });
  assert.deepEqual(await process.ended, { code: 125, signal: null });
  assert.deepEqual(bytes.stdout, []);
});

Deno.test("GroupedProcess hands on every byte of both streams", async () => {
  const { process, bytes } = setup("sh", "-c", "printf '\\377\\000\\r\\n'; printf '%s' $A >&2");

  await process.open(1_000, NOTHING);
  await process.ended;

  assert.deepEqual(bytes, { stdout: [255, 0, 13, 10], stderr: [0x31] });
});

Deno.test("GroupedProcess passes arguments on as they are", async () => {
  const { process, bytes } = setup("printf", "%s|", "a b", "$A", "*", "-n", "");

  await process.open(1_000, NOTHING);
  await process.ended;

  assert.equal(String.fromCharCode(...bytes.stdout), "a b|$A|*|-n||");
});

Deno.test("GroupedProcess.stop() before it is opened leaves nobody behind", async () => {
  const { process } = setup("sleep", "1000");

  const ended = process.stop(1_000);
  await assert.rejects(process.open(1_000, () => process.ended.then(() => {})));

  assert.deepEqual(await ended, { code: null, signal: "SIGTERM" });
  assert.equal(await isGroupAlive(process.pid), false);
});
