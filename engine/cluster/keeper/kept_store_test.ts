import assert from "node:assert/strict";
import { put } from "../../../tests/fakes/fake_store.ts";
import { MemoryStore } from "../../store/memory_store.ts";
import { KeptStore } from "./kept_store.ts";

Deno.test("KeptStore is the store behind it while that is held, and refuses otherwise", async () => {
  await using store = new MemoryStore();
  await using kept = new KeptStore();
  await assert.rejects(kept.get(["a"]), { code: "store_unavailable" });
  assert.equal(kept.status.path, null);
  let isHeld = true;
  kept.set(store, () => isHeld);

  await put(kept, ["a"], 1);
  assert.equal((await kept.get(["a"]))?.value, 1);
  assert.equal((await kept.list([], 10)).length, 1);
  assert.equal(kept.stats, store.stats);

  const slow = kept.get(["a"]);
  isHeld = false;
  await assert.rejects(slow, { code: "store_unavailable" }, "it was replaced while it read");
  await assert.rejects(put(kept, ["a"], 2), { code: "store_unavailable" });
  kept.set(undefined);
  await assert.rejects(kept.list([], 10), { code: "store_unavailable" });
});
