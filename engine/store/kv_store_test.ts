import { testStore } from "../../tests/store_contract.ts";
import type { Store } from "../ports/store.ts";
import { openKvStore } from "./kv_store.ts";

testStore("KvStore", () => openTemporary(256 * 1024 * 1024));
testStore("KvStore without a cache", () => openTemporary(0));

async function openTemporary(cacheBytesMax: number): Promise<Store> {
  const directory = await Deno.makeTempDir();
  const store = await openKvStore(`${directory}/state.db`, { cacheBytesMax });
  return {
    get: (key) => store.get(key),
    list: (prefix, limit, after) => store.list(prefix, limit, after),
    write: (changes) => store.write(changes),
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      await Deno.remove(directory, { recursive: true }).catch(() => {}); // Disposed twice.
    },
  };
}
