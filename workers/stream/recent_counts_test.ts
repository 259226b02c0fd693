import assert from "node:assert/strict";
import { RecentCounts } from "./recent_counts.ts";

Deno.test("RecentCounts counts names, and knows a bounded number of them", () => {
  const counts = new RecentCounts(10);
  for (let i = 0; i < 1_000; i++) {
    counts.add("busy");
    counts.add(`rare-${i}`);
  }

  assert.equal(counts.get("busy"), 1_000);
  assert.equal(counts.get("rare-999"), 1);
  assert.equal(counts.get("rare-0"), 0);
  assert.ok(counts.names().size <= 20, `${counts.names().size}`);
  assert.ok(counts.names().has("busy"));
});
