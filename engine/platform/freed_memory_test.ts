/**
 * Giving memory back: when it is due, and that the C library does it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/fakes/until.ts";
import { FreedMemory, RETURN_MS } from "./freed_memory.ts";

const MIB = 1024 * 1024;

function setup() {
  const clock = new FakeClock();
  const state = { times: 0 };
  const giveBack = () => Promise.resolve(void state.times++);
  return { clock, state, freed: new FreedMemory({ clock, giveBack }) };
}

Deno.test("memory that was freed is returned once, some time later", async () => {
  const { clock, state, freed } = setup();

  freed.freed();
  freed.freed();
  clock.tick(RETURN_MS - 1);
  await Promise.resolve();
  assert.equal(state.times, 0);
  clock.tick(1);
  await Promise.resolve();
  assert.equal(state.times, 1);

  freed.freed();
  clock.tick(RETURN_MS);
  await freed[Symbol.asyncDispose]();
  assert.equal(state.times, 2);
});

Deno.test("an engine that stops returns nothing any more", async () => {
  const { clock, state, freed } = setup();
  freed.freed();
  await freed[Symbol.asyncDispose]();
  freed.freed();
  clock.tick(RETURN_MS * 2);
  await Promise.resolve();
  assert.equal(state.times, 0);
});

Deno.test({
  name: "what large buffers used leaves the resident memory, though nothing is allocated",
  ignore: Deno.build.os !== "linux" || !Deno.build.target.endsWith("gnu"),
  async fn() {
    const clock = new FakeClock();
    await using freed = new FreedMemory({ clock });
    const resident = (): number => Deno.memoryUsage().rss;
    const before = resident();
    const kept = useBlocks();
    assert.ok(resident() - before > 200 * MIB);

    freed.freed();
    clock.tick(RETURN_MS);

    await until(() => resident() - before < 64 * MIB, () => `${resident() - before} bytes`);
    assert.equal(kept[0]!.length, BLOCK_BYTES);
  },
});

const BLOCK_BYTES = 256 * 1024;

/** Uses a thousand blocks and leaves one of 16, so that the C library keeps what lies between. */
function useBlocks(): Uint8Array[] {
  const blocks = Array.from({ length: 1_024 }, () => new Uint8Array(BLOCK_BYTES).fill(1));
  return blocks.filter((_, i) => i % 16 === 15);
}
