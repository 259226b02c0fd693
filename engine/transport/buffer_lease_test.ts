import assert from "node:assert/strict";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { BufferLease, FREE_BYTES } from "./buffer_lease.ts";

const KIB = 1024;

Deno.test("a small buffer takes nothing, a larger one takes all of itself in steps", () => {
  const memory = createMemoryBudget(1024 * KIB);
  const lease = new BufferLease(memory);

  assert.ok(lease.fit(FREE_BYTES));
  assert.equal(memory.usedBytes, 0);
  assert.ok(lease.fit(FREE_BYTES + 1));
  assert.equal(memory.used("buffers"), 128 * KIB);
  assert.ok(lease.fit(100 * KIB));
  assert.equal(memory.usedBytes, 128 * KIB);
  assert.ok(lease.fit(0));
  assert.equal(memory.usedBytes, 0);
});

Deno.test("what does not fit is refused and changes nothing; a small buffer always fits", () => {
  const memory = createMemoryBudget(256 * KIB);
  const [one, other] = [new BufferLease(memory), new BufferLease(memory)];

  assert.ok(one.fit(200 * KIB));
  assert.equal(other.fit(100 * KIB), false);
  assert.ok(other.fit(FREE_BYTES));
  assert.deepEqual([one.heldBytes, other.heldBytes], [256 * KIB, 0]);
  assert.ok(one.fit(100 * KIB));
  assert.ok(other.fit(100 * KIB));
  assert.ok(one.isTight);
});

Deno.test("a buffer larger than the whole budget can never fit", () => {
  const lease = new BufferLease(createMemoryBudget(256 * KIB));

  assert.equal(lease.exceeds(300 * KIB), true);
  assert.equal(lease.exceeds(190 * KIB), false);
  assert.equal(new BufferLease().exceeds(2 ** 40), false);
});
