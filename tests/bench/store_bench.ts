/**
 * How much writes gain when many are in flight, since they share one fsync.
 *
 * Expected: one at a time costs one fsync each; 64 in flight at least 8 times the rate, 1,024
 * more. A write to a new key has to look at the disk first, so it gains less than one to a key that
 * is in the cache. A cached read costs a few microseconds.
 *
 * Each measured run makes the same number of writes, so its time is to be compared directly. Only
 * ratios of one run mean something: the first row is the fsync of the disk at that moment.
 *
 * @module
 */
import type { Store, StoreKey } from "../../engine/ports/store.ts";
import { openKvStore } from "../../engine/store/kv_store.ts";

const WRITES = 2_048;
const VALUE = { n: 1, text: "x".repeat(80) };

let store: Store | undefined;
let fresh = 0;

/** Opened with the first use: a bench file is also read when none of its benches runs. */
async function opened(): Promise<Store> {
  if (store) return store;
  const directory = await Deno.makeTempDir();
  addEventListener("unload", () => Deno.removeSync(directory, { recursive: true }));
  return store = await openKvStore(`${directory}/state.db`);
}

async function writeAll(inFlight: number, keyOf: (i: number) => StoreKey): Promise<void> {
  const into = await opened();
  let next = 0;
  await Promise.all(Array.from({ length: inFlight }, async () => {
    while (next < WRITES) await into.write([[keyOf(next++), () => VALUE]]);
  }));
}

for (const inFlight of [1, 64, 1_024]) {
  Deno.bench({
    group: `${WRITES} writes to keys in the cache`,
    name: `${inFlight} in flight`,
    baseline: inFlight === 1,
    n: 5,
    warmup: 1,
    // Declared async, since Deno waits only for functions that are.
    fn: async () => await writeAll(inFlight, (i) => ["bench", `${i}`]),
  });
}

for (const inFlight of [1, 64, 1_024]) {
  Deno.bench({
    group: `${WRITES} writes to new keys`,
    name: `${inFlight} in flight, new keys`,
    baseline: inFlight === 1,
    n: 5,
    warmup: 1,
    fn: async () => await writeAll(inFlight, () => ["fresh", `${fresh++}`]),
  });
}

Deno.bench({
  group: "read",
  name: "1,000 reads of a cached key",
  fn: async () => {
    const from = await opened();
    for (let i = 0; i < 1_000; i++) await from.get(["bench", "1"]);
  },
});
