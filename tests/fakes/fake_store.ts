/**
 * Helpers for tests of stores: values and texts from a seed, and a Deno KV database that fails or
 * blocks when the test says so.
 *
 * @module
 */
import type { Changed, Entry, KeyChange, Store, StoreKey } from "../../engine/ports/store.ts";
import type { JsonText } from "../../sdk/typescript/wire/member_text.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

/** Registers one test of the contract; the store is empty, and disposed behind it. */
export type Check = (what: string, body: (store: Store) => Promise<void>) => void;

/** Opens an empty store. */
export type OpenStore = () => Promise<Store>;

/** Writes a value; the new entry. */
export async function put(store: Store, key: StoreKey, value: Json | JsonText): Promise<Entry> {
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

/** What a test may do with the operations of a database. */
export interface Faults {
  /** Runs before every commit; a throw is what the commit fails with. */
  beforeCommit?: (() => Promise<void> | void) | undefined;
  /** Runs before every read; a throw is what the read fails with. */
  beforeRead?: (() => Promise<void> | void) | undefined;
}

/** An opener of databases in which `faults` happen; they may be changed at any time. */
export function faultyKv(faults: Faults): (path: string) => Promise<Deno.Kv> {
  return async (path) => withFaults(await Deno.openKv(path), faults);
}

function withFaults(kv: Deno.Kv, faults: Faults): Deno.Kv {
  const own: Record<string, unknown> = {
    atomic: () => faultyCommit(kv.atomic(), faults),
    getMany: async (keys: readonly Deno.KvKey[]) => {
      await faults.beforeRead?.();
      return await kv.getMany([...keys]);
    },
  };
  return new Proxy(kv, { get: (target, name) => memberOf(own, target, name) });
}

function faultyCommit(operation: Deno.AtomicOperation, faults: Faults): Deno.AtomicOperation {
  return new Proxy(operation, {
    get: (target, name, proxy) => {
      const member = memberOf({}, target, name);
      if (typeof member !== "function") return member;
      if (name !== "commit") return (...values: unknown[]) => (member(...values), proxy);
      return async () => {
        await faults.beforeCommit?.();
        return await member();
      };
    },
  });
}

/** Methods keep the object they belong to, which has private fields. */
function memberOf(own: Record<string, unknown>, target: object, name: string | symbol): unknown {
  if (typeof name === "string" && Object.hasOwn(own, name)) return own[name];
  const member = Reflect.get(target, name, target);
  return typeof member === "function" ? member.bind(target) : member;
}
