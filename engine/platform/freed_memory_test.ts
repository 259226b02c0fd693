/**
 * Giving memory back: when it is due, and that the C library does it.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { freeBuffer, FREED_BYTES_MIN } from "../ports/memory.ts";
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
  name: "what lies between blocks in use leaves the resident memory",
  ignore: Deno.build.os !== "linux" || !Deno.build.target.endsWith("gnu"),
  async fn() {
    const clock = new FakeClock();
    const freed = new FreedMemory({ clock });
    // Freed blocks of this size have it taken from the heap from then on, not from the system.
    freeBuffer(new Uint8Array(16 * MIB));
    const blocks = Array.from({ length: 512 }, () => new Uint8Array(FREED_BYTES_MIN).fill(1));
    const kept = blocks.filter((_, i) => i % 16 === 15);
    for (const [i, block] of blocks.entries()) if (i % 16 !== 15) freeBuffer(block);
    const before = Deno.memoryUsage().rss;

    freed.freed();
    clock.tick(RETURN_MS);
    await freed[Symbol.asyncDispose]();

    const returned = before - Deno.memoryUsage().rss;
    assert.ok(returned > 64 * MIB, `${returned} bytes`);
    assert.equal(kept[0]!.length, FREED_BYTES_MIN);
  },
});
