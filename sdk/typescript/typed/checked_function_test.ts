import assert from "node:assert/strict";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import * as v from "valibot";
import * as z from "zod";
import { planFunction } from "../implementation.ts";
import type { CallContext, Handler, SchemaOptions } from "../options.ts";
import type { Json } from "../wire/protocol.ts";
import { formatsOf } from "./checked_function.ts";
import type { StandardSchema } from "./standard_schema.ts";

const INVALID = { name: "EngineError", code: "INVALID_ARGUMENTS" };

/** The same pair of numbers, in each library. */
const PAIRS: Readonly<Record<string, StandardSchema>> = {
  zod: z.object({ a: z.number(), b: z.number() }),
  valibot: toStandardJsonSchema(v.object({ a: v.number(), b: v.number() })),
  arktype: type({ a: "number", b: "number" }),
};

function call(options: SchemaOptions, handler: Handler, payload: Json): Promise<unknown> {
  const planned = planFunction("math::add", handler, options);
  return Promise.resolve(planned.handler(payload, undefined, undefined as unknown as CallContext));
}

for (const [library, input] of Object.entries(PAIRS)) {
  Deno.test(`a schema of ${library} makes the format, and rejects what does not fit`, async () => {
    const handler: Handler = (payload) => Object.keys(payload as object).length;

    const { request_format } = planFunction("math::add", handler, { input }).message;

    const { type, required, properties } = request_format as Record<string, Json>;
    assert.deepEqual([type, required], ["object", ["a", "b"]]);
    assert.deepEqual(properties, { a: { type: "number" }, b: { type: "number" } });
    assert.equal(await call({ input }, handler, { a: 2, b: 3 }), 2);
    await assert.rejects(call({ input }, handler, { a: 2, b: "3" }), (error: unknown) => {
      const { code, details } = error as { code: string; details: { errors: Json[] } };
      assert.equal(code, "invalid_payload");
      assert.deepEqual(details.errors.map((each) => (each as { path: string }).path), ["/b"]);
      return true;
    });
  });
}

Deno.test("a handler gets what the schema returns, and the result passes that of the output", async () => {
  const options = {
    input: z.object({ at: z.coerce.date(), name: z.string().default("none") }),
    request_format: null,
    output: z.object({ year: z.number() }),
  };
  const handler = (({ at, name }: { at: Date; name: string }) => ({
    year: at.getUTCFullYear(),
    name,
  })) as unknown as Handler;

  assert.deepEqual(await call(options, handler, { at: "2026-11-27" }), { year: 2026 });
  await assert.rejects(call(options, () => ({ year: "x" }), { at: "2026-11-27" }), {
    code: "invalid_result",
    message: "Result of math::add does not fit its schema: " +
      "/year Invalid input: expected number, received string",
  });
});

Deno.test("a path is a JSON Pointer, and errors are bounded", async () => {
  const input = z.object({ "a/b~": z.array(z.number()) });

  await assert.rejects(
    call({ input }, () => 1, { "a/b~": Array(50).fill("x") }),
    (error: unknown) => {
      const { errors } = (error as { details: { errors: { path: string }[] } }).details;
      assert.equal(errors.length, 20);
      assert.equal(errors[1]!.path, "/a~1b~0/1");
      return true;
    },
  );
});

Deno.test("formatsOf() takes the formats of the options before those of schemas", () => {
  const input = z.number();

  assert.deepEqual(formatsOf("a::b", { input }), { request_format: { type: "number" } });
  assert.deepEqual(formatsOf("a::b", { input, request_format: { minimum: 1 } }), {
    request_format: { minimum: 1 },
  });
  assert.deepEqual(formatsOf("a::b", { output: v.string() }), {}, "valibot alone writes none");
  assert.deepEqual(formatsOf("a::b", {}), {});
});

Deno.test("formatsOf() rejects what is no schema, and what JSON Schema cannot represent", () => {
  const input = { type: "object" } as unknown as StandardSchema;

  assert.throws(() => formatsOf("a::b", { input }), {
    ...INVALID,
    message: /^input of a::b must be/,
  });
  assert.throws(() => formatsOf("a::b", { input: z.date() }), {
    ...INVALID,
    message: /Date cannot be represented.*set request_format, or request_format: null for none$/,
  });
  assert.deepEqual(formatsOf("a::b", { input: z.date(), request_format: null }), {});
});
