/**
 * @module
 */
import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { derive, keptSecret } from "./secrets.ts";

Deno.test("keptSecret() is the same for one store, and another for another", async () => {
  await using store = new MemoryStore();
  await using other = new MemoryStore();

  const secret = await keptSecret(store);

  assert.match(secret, /^[0-9a-f]{64}$/);
  assert.equal(await keptSecret(store), secret);
  assert.notEqual(await keptSecret(other), secret);
});

Deno.test("keptSecret() is a new one where the store cannot keep it", async () => {
  const broken = { write: () => Promise.reject(new Error("read-only")) };

  assert.notEqual(await keptSecret(broken), await keptSecret(broken));
});

Deno.test("keptSecret() trusts nothing but a text in its place", async () => {
  await using store = new MemoryStore();
  await store.write([[["console", "secret"], () => ({ not: "a text" })]]);

  assert.match(await keptSecret(store), /^[0-9a-f]{64}$/);
});

Deno.test("derive() gives another secret for each purpose, always the same", async () => {
  const one = await derive("secret", "operator");

  assert.match(one, /^[0-9a-f]{32}$/);
  assert.equal(await derive("secret", "operator"), one);
  assert.notEqual(await derive("secret", "guest"), one);
  assert.notEqual(await derive("secre", "operator"), one);
});
