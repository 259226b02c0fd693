/**
 * What the parts of the store contract share: writing one value, texts and chance from a seed.
 *
 * @module
 */
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Changed, Entry, KeyChange, Store, StoreKey } from "../../engine/ports/store.ts";

/** Registers one test of the contract; the store is empty, and disposed behind it. */
export type Check = (what: string, body: (store: Store) => Promise<void>) => void;

/** Opens an empty store. */
export type OpenStore = () => Promise<Store>;

/** Writes a value; the new entry. */
export async function put(store: Store, key: StoreKey, value: Json): Promise<Entry> {
  const [changed] = await store.write([[key, () => value]]);
  return (changed as Changed).new!;
}

/** A change that counts. */
export function increment(key: StoreKey): KeyChange {
  return [key, (old) => (old ? old.value as number : 0) + 1];
}

/** A change that throws. */
export function refuse(): never {
  throw new Error("refused");
}

/** Keys of entries, in their order. */
export function keysOf(entries: readonly Entry[]): StoreKey[] {
  return entries.map(({ key }) => key);
}

/** 0, 1, 2 and so on. */
export function counting(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** A text of which every 256 characters differ, so that parts in a wrong order are noticed. */
export function textOf(length: number, seed: number): string {
  const block = (i: number): string =>
    (i * 2_654_435_761 + seed).toString(36).slice(0, 16).padEnd(16, "-") + BLOCK_REST;
  return Array.from({ length: Math.ceil(length / 256) }, (_, i) => block(i))
    .join("").slice(0, length);
}

const BLOCK_REST = "0123456789abcdef".repeat(15);

/** The items in another order that follows from a seed. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = randomFrom(seed);
  return items.map((item) => [random(), item] as const).sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** Numbers from 0 to 1 that follow from a seed. */
export function randomFrom(seed: number): () => number {
  let state = seed * 0x9e3779b9 | 0;
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let mixed = Math.imul(state ^ state >>> 15, 1 | state);
    mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}
