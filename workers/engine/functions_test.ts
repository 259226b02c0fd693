/**
 * Functions offered with a shape: what fits, what does not, and what is told of it.
 *
 * @module
 */
import assert from "node:assert/strict";
import * as v from "../kit/schema.ts";
import type { CallContext, Handler } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { Offers } from "./functions.ts";

/** Offers one function; the result calls it. */
function setup(): { offers: Offers; call(payload: Json): unknown } {
  let handler: Handler | undefined;
  const worker = {
    registerFunction(id: string, given: Handler) {
      handler = given;
      return { id, unregister() {} };
    },
  } as unknown as Worker;
  const offers = new Offers(worker);
  const greeting = v.object({ name: v.optional(v.string(), "nobody") });
  offers.add("f", "Greets", greeting, ({ name }) => `hello ${name}`);
  return { offers, call: (payload) => handler!(payload, undefined, undefined as never) };
}

Deno.test("An offered function gets its payload as the shape says", () => {
  const { call } = setup();

  assert.equal(call({ name: "you", more: 1 }), "hello you");
  assert.equal(call({}), "hello nobody");
  assert.equal(call(null), "hello nobody");
});

for (const payload of ["text", 5, true, [], { name: 5 }, { name: null }]) {
  Deno.test(`An offered function refuses ${JSON.stringify(payload)}`, () => {
    const { call } = setup();

    assert.throws(() => call(payload), { code: "deserialization_error" });
  });
}

Deno.test("An offered function hears of its call besides its payload", () => {
  let handler: Handler | undefined;
  const worker = {
    registerFunction(id: string, given: Handler) {
      handler = given;
      return { id, unregister() {} };
    },
  } as unknown as Worker;
  new Offers(worker).add(
    "f",
    "Who asks",
    v.object({}),
    (_payload, { caller }) => caller ?? null,
  );

  assert.equal(handler!(null, undefined, { caller: "w7" } as CallContext), "w7");
});

Deno.test("Offers.schemaOf() tells the shape of its own functions only", () => {
  const { offers } = setup();

  const schema = offers.schemaOf("f") as { properties: { name: { type: string } } };

  assert.equal(schema.properties.name.type, "string");
  assert.equal(offers.schemaOf("g"), undefined);
});
