import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { createSchemas } from "./schema_check.ts";
import { PART_MS, PART_REST_FACTOR, SchemaLoading } from "./schema_loading.ts";

/** A clock for which each look at it takes time. */
function setup(ms: number) {
  const clock = new FakeClock();
  const now = (): number => {
    clock.tick(ms);
    return clock.now();
  };
  const loading = new SchemaLoading({ now, after: (wait, task) => clock.after(wait, task) });
  let isLoaded = false;
  const prepare = () => loading.prepare().then(() => isLoaded = true);
  return { clock, loading, prepare, isLoaded: () => isLoaded };
}

Deno.test("the compiler is loaded in parts with a rest behind each", async () => {
  const { clock, prepare, isLoaded } = setup(PART_MS);

  void prepare();
  let rests = 0;
  for (; !isLoaded() && rests < 100; rests++) {
    clock.tick(PART_REST_FACTOR * PART_MS - 1);
    await Promise.resolve();
    assert.equal(isLoaded(), false);
    clock.tick(1);
    for (let i = 0; i < 5; i++) await Promise.resolve();
  }

  assert.ok(rests >= 5, `${rests} rests`);
});

Deno.test("parts that are quick follow each other at once", async () => {
  const { prepare, isLoaded } = setup(0);

  await prepare();

  assert.equal(isLoaded(), true);
});

Deno.test("a schema that comes before the last part gets the others at once", async () => {
  const { clock, loading, prepare, isLoaded } = setup(PART_MS);

  void prepare();
  assert.equal(loading.drafts.validateSchema({ type: "nothing" }), false);
  clock.tick(PART_REST_FACTOR * PART_MS);
  for (let i = 0; i < 5; i++) await Promise.resolve();

  assert.equal(isLoaded(), true);
});

Deno.test("nothing more is loaded once it is disposed of", async () => {
  const { clock, loading, prepare, isLoaded } = setup(PART_MS);

  void prepare();
  loading[Symbol.dispose]();
  clock.tick(1_000_000);
  await Promise.resolve();

  assert.equal(isLoaded(), false);
});

Deno.test("prepare() may be called at any time, and changes nothing", async () => {
  const schemas = createSchemas();
  await schemas.prepare!();
  const check = schemas.compile({ type: "string" });
  await schemas.prepare!();

  assert.deepEqual([check("x").length, check(1).length], [0, 1]);
});
