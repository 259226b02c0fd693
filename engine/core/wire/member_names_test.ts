import assert from "node:assert/strict";
import { MemberNames, NameHash } from "./member_names.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** The hash of a name of a message, whose bytes come in parts. */
function hashOf(message: number, ...parts: readonly string[]): number {
  const hash = new NameHash(message);
  hash.add(encode("an earlier string"), 0, 17);
  hash.restart();
  for (const part of parts) hash.add(encode(part), 0, part.length);
  return hash.value;
}

Deno.test("a name is new once in a message, in however many parts it comes", () => {
  const names = new MemberNames();
  const message = names.begin();

  assert.equal(names.isNew(hashOf(message, "sku")), true);
  assert.equal(names.isNew(hashOf(message, "price")), true);
  assert.equal(names.isNew(hashOf(message, "s", "ku")), false);
  assert.equal(names.isNew(hashOf(message, "skus")), true);
  assert.equal(names.isNew(hashOf(names.begin(), "sku")), true);
});

Deno.test("of long names the start counts, also in parts", () => {
  const long = "n".repeat(1_024);

  assert.equal(hashOf(1, `${long}a`), hashOf(1, `${long}b`));
  assert.equal(hashOf(1, long.slice(0, 1_000), `${long.slice(1_000)}a`), hashOf(1, long));
  assert.notEqual(hashOf(1, `${long.slice(1)}a`), hashOf(1, `${long.slice(1)}b`));
});

Deno.test("nearly all of many different names are new, also when they come again", () => {
  const names = new MemberNames();
  const count = 300_000;
  const newOnes = (): number => {
    const message = names.begin();
    let found = 0;
    for (let i = 0; i < count; i++) if (names.isNew(hashOf(message, `k${i}`))) found++;
    return found;
  };

  assert.ok(newOnes() > count * 0.95);
  assert.ok(newOnes() > count * 0.95);
});
