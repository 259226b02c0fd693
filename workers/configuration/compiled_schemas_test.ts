import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { CompiledSchemas, QUICK_MS, REST_FACTOR, SMALL_CHARS } from "./compiled_schemas.ts";

const LARGE = { title: "t".repeat(SMALL_CHARS) };

/** Schemas that take so long to compile. */
function setup(ms: number) {
  const clock = new FakeClock();
  const compiled: Json[] = [];
  const compile = (schema: Json) => {
    clock.tick(ms);
    if ((schema as JsonObject).bad === true) throw new EngineError("invalid_schema", "no");
    compiled.push(schema);
    return () => [];
  };
  const schemas = new CompiledSchemas({ compile }, clock);
  const settle = async () => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return { clock, compiled, schemas, settle };
}

Deno.test("CompiledSchemas compiles the next schema after a rest, and a known one never", async () => {
  const { clock, compiled, schemas, settle } = setup(50);
  const [first, second] = [{ ...LARGE, a: 1 }, { ...LARGE, b: 1 }];

  void schemas.of(first);
  const asked = schemas.of(second);
  const again = schemas.of(second);
  await settle();
  assert.deepEqual(compiled, [first]);
  await schemas.of(first);
  clock.tick(REST_FACTOR * 50 - 1);
  await settle();
  assert.equal(compiled.length, 1);
  clock.tick(1);
  await settle();

  assert.deepEqual(compiled, [first, second]);
  clock.tick(REST_FACTOR * 50);
  assert.equal(await asked, await again);
  assert.equal(compiled.length, 2);
});

Deno.test("CompiledSchemas compiles nothing before the compiler is loaded", async () => {
  const { promise: prepared, resolve } = Promise.withResolvers<void>();
  const done: string[] = [];
  const compile = () => (done.push("a schema"), () => []);
  const schemas = new CompiledSchemas({ prepare: () => prepared, compile }, new FakeClock());

  const asked = [schemas.of({ ...LARGE }), schemas.of({ type: "string" })];
  await Promise.resolve();
  assert.deepEqual(done, []);
  resolve();
  await Promise.all(asked);

  assert.equal(done.length, 2);
});

Deno.test("CompiledSchemas rests after a schema that cannot be used, too", async () => {
  const { clock, compiled, schemas, settle } = setup(50);

  const failing = schemas.of({ ...LARGE, bad: true });
  void schemas.of({ ...LARGE });
  await assert.rejects(failing, { code: "invalid_schema" });
  await settle();
  assert.equal(compiled.length, 0);
  clock.tick(REST_FACTOR * 50);
  await settle();

  assert.equal(compiled.length, 1);
});

Deno.test("CompiledSchemas compiles quick ones one after the other", async () => {
  const { compiled, schemas } = setup(QUICK_MS - 1);

  await Promise.all([schemas.of({ ...LARGE }), schemas.of({ ...LARGE }), schemas.of(true)]);

  assert.equal(compiled.length, 2);
});

Deno.test("CompiledSchemas compiles a small schema while a large one waits", async () => {
  const { compiled, schemas } = setup(50);
  const small = { type: "string" };
  await schemas.of({ ...LARGE });
  void schemas.of({ ...LARGE });

  await schemas.of(small);

  assert.equal(compiled.at(-1), small);
});
