import assert from "node:assert/strict";
import { MemoryLogServer } from "../../../tests/cluster/memory_log.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { TimedLog } from "./mod.ts";

Deno.test("TimedLog counts how long each acknowledged append took, and passes everything on", async () => {
  const clock = new FakeClock();
  const inner = new MemoryLogServer().open();
  const append = inner.append.bind(inner);
  inner.append = (bytes, after) => {
    clock.tick(after === 0 ? 0.4 : 12_000);
    return append(bytes, after);
  };
  await using log = new TimedLog(inner, clock);

  assert.equal(await log.append(Uint8Array.of(1, 2), 0), 1);
  assert.equal(await log.append(Uint8Array.of(3), 1), 2);
  await assert.rejects(log.append(Uint8Array.of(4), 1));

  const { bounds, counts, sum } = log.times;
  assert.equal(counts.length, bounds.length + 1);
  assert.deepEqual([counts[0], counts.at(-1), sum], [1, 1, 12.0004]);
  assert.equal((await log.end()).number, 2);
  assert.equal(log.bytes, inner.bytes);
  const found: number[] = [];
  for await (const { bytes } of log.read(1)) found.push(bytes.length);
  assert.deepEqual(found, [2, 1]);
});
