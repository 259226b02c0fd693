import assert from "node:assert/strict";
import { testStore } from "../../tests/contracts/store_contract.ts";
import { MemoryStore } from "./memory_store.ts";

testStore("MemoryStore", () => Promise.resolve(new MemoryStore()));

Deno.test("MemoryStore keeps a copy of what it was given", async () => {
  await using store = new MemoryStore();
  const value = { list: [1] };
  await store.write([[["a"], () => value]]);

  value.list.push(2);

  assert.deepEqual((await store.get(["a"]))?.value, { list: [1] });
});
