/**
 * A function reads the baggage of its call, and cannot change that of its caller.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { FakeOffers } from "../../tests/fakes/offers.ts";
import { offerBaggage, readBaggage } from "./baggage.ts";

function setup(baggage: string | undefined) {
  const offers = new FakeOffers();
  offerBaggage(offers);
  return (name: string, payload: Json = {}) =>
    offers.call(`engine::baggage::${name}`, payload, { baggage });
}

Deno.test("engine::baggage::get answers with the value of the current call, or null", async () => {
  const call = setup("tenant=acme;ttl=5, user = Ann%20B");

  assert.deepEqual(await call("get", { key: "tenant" }), { value: "acme" });
  assert.deepEqual(await call("get", { key: "user" }), { value: "Ann B" });
  assert.deepEqual(await call("get", { key: "other" }), { value: null });
  assert.deepEqual(await setup(undefined)("get", { key: "tenant" }), { value: null });
});

Deno.test("engine::baggage::get_all answers with everything", async () => {
  assert.deepEqual(await setup("a=1,b=2")("get_all"), { baggage: { a: "1", b: "2" } });
  assert.deepEqual(await setup(undefined)("get_all"), { baggage: {} });
});

Deno.test("engine::baggage::set says that nothing was changed", async () => {
  const answer = await setup("a=1")("set", { key: "a", value: "2" }) as Record<string, Json>;

  assert.equal(answer.success, false);
  assert.match(String(answer.note), /nothing was changed/);
});

for (const payload of [null, {}, { key: 5 }, { key: "a", value: 5 }, { key: "", value: "x" }]) {
  Deno.test(`engine::baggage::set refuses ${JSON.stringify(payload)}`, async () => {
    await assert.rejects(setup("a=1")("set", payload), { code: "deserialization_error" });
  });
}

Deno.test("readBaggage() leaves out what is no member and keeps broken escapes", () => {
  assert.deepEqual([...readBaggage(",=x,,a,b=%zz,c=1,c=2,__proto__=3")], [
    ["b", "%zz"],
    ["c", "2"],
    ["__proto__", "3"],
  ]);
});

Deno.test("readBaggage() reads no more members than W3C allows", () => {
  const header = Array.from({ length: 1_000 }, (_, i) => `k${i}=v`).join(",");

  assert.equal(readBaggage(header).size, 180);
});
