/**
 * The part of the store contract that is found by chance: random use against a plain map.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { KeyChange, Store, StoreKey } from "../../engine/ports/store.ts";
import { counting, randomFrom, refuse } from "../fakes/store_values.ts";

/** Random writes, reads and lists, many at once, against a map that does the same in order. */
export async function compareWithMap(store: Store, seed: number): Promise<void> {
  const random = randomFrom(seed);
  const model = new Map<string, Json>();
  const names = ["", "a", "b", "ab", "\0", "😀"];
  const pick = (): string => names[Math.floor(random() * names.length)]!;
  const randomKey = (): StoreKey => random() < 0.5 ? ["m", pick()] : ["m", pick(), pick()];
  const running: Promise<unknown>[] = [];

  for (let step = 0; step < 150; step++) {
    const what = random();
    if (what < 0.6) running.push(writeBoth(store, model, random, randomKey));
    else if (what < 0.8) {
      const key = randomKey();
      const expected = model.get(JSON.stringify(key));
      // What later writes make of the key may be seen as well, so the reader goes alone.
      await Promise.all(running);
      assert.deepEqual((await store.get(key))?.value, expected, `seed ${seed}, step ${step}`);
    } else if (what < 0.9) await compareLists(store, model, `seed ${seed}, step ${step}`);
    else await Promise.all(running.splice(0));
  }
  await Promise.all(running);
  await compareLists(store, model, `seed ${seed}, at the end`);
}

async function writeBoth(
  store: Store,
  model: Map<string, Json>,
  random: () => number,
  randomKey: () => StoreKey,
): Promise<void> {
  const fails = random() < 0.1;
  const trial = new Map(model);
  const changes = counting(1 + Math.floor(random() * 3)).map((): KeyChange => {
    const key = randomKey();
    const kind = random();
    const size = random() < 0.1 ? Math.floor(random() * 150_000) : Math.floor(random() * 50);
    const change = (old: Json | undefined): Json | undefined =>
      kind < 0.2 ? undefined : kind < 0.3 ? old : [`${old}`.length, "x".repeat(size)];
    const id = JSON.stringify(key);
    const next = change(trial.get(id));
    if (next === undefined) trial.delete(id);
    else trial.set(id, next);
    return [key, (old) => kind >= 0.2 && kind < 0.3 ? old : change(old?.value)];
  });
  if (fails) changes.push([["m", "never"], refuse]);
  else for (const id of new Set([...model.keys(), ...trial.keys()])) copy(trial, model, id);

  const write = store.write(changes);
  if (fails) await assert.rejects(write, { message: "refused" });
  else await write;
}

function copy(from: Map<string, Json>, to: Map<string, Json>, id: string): void {
  const value = from.get(id);
  if (value === undefined) to.delete(id);
  else to.set(id, value);
}

async function compareLists(store: Store, model: Map<string, Json>, at: string): Promise<void> {
  const expected = new Map(model);
  const list = await store.list(["m"], 1_000);

  assert.deepEqual(
    new Map(list.map(({ key, value }) => [JSON.stringify(key), value])),
    expected,
    at,
  );
  const versions = list.map(({ version }) => version);
  assert.equal(new Set(versions).size, versions.length, at);
  assert.ok(list.every(({ created, version }) => created <= version), at);
}
