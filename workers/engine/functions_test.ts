/**
 * Functions with a payload schema: valid payloads, invalid ones, and the published schema.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { CallContext, Handler } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import { CheckedFunctions } from "./functions.ts";

/** Registers one function; the result calls it. */
function setup(): { registry: CheckedFunctions; call(payload: Json): unknown } {
  let handler: Handler | undefined;
  const worker = {
    registerFunction(id: string, given: Handler) {
      handler = given;
      return { id, unregister() {} };
    },
  } as unknown as Worker;
  const registry = new CheckedFunctions(worker);
  const greeting = v.object({ name: v.optional(v.string(), "missing") });
  registry.add("f", "Greets", greeting, ({ name }) => `hello ${name}`);
  return { registry, call: (payload) => handler!(payload, undefined, undefined as never) };
}

Deno.test("A checked function receives its parsed payload", () => {
  const { call } = setup();

  assert.equal(call({ name: "you", more: 1 }), "hello you");
  assert.equal(call({}), "hello missing");
  assert.equal(call(null), "hello missing");
});

for (const payload of ["text", 5, true, [], { name: 5 }, { name: null }]) {
  Deno.test(`A checked function rejects ${JSON.stringify(payload)}`, () => {
    const { call } = setup();

    assert.throws(() => call(payload), { code: "deserialization_error" });
  });
}

Deno.test("A checked function receives the context of its call", () => {
  let handler: Handler | undefined;
  const worker = {
    registerFunction(id: string, given: Handler) {
      handler = given;
      return { id, unregister() {} };
    },
  } as unknown as Worker;
  new CheckedFunctions(worker).add(
    "f",
    "Who asks",
    v.object({}),
    (_payload, { caller }) => caller ?? null,
  );

  assert.equal(handler!(null, undefined, { caller: "w7" } as CallContext), "w7");
});

Deno.test("CheckedFunctions.schemaOf() has the schemas of the functions it checks only", () => {
  const { registry } = setup();

  const schema = registry.schemaOf("f") as { properties: { name: { type: string } } };

  assert.equal(schema.properties.name.type, "string");
  assert.equal(registry.schemaOf("g"), undefined);
});
