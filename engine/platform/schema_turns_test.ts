/**
 * Schemas that are compiled in turns.
 *
 * @module
 */
import assert from "node:assert/strict";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { SchemaCheck } from "../ports/schemas.ts";
import type { Work } from "../ports/turns.ts";
import { AT_ONCE_CHARS_MAX, createSchemas, SCHEMA_CHARS_MAX } from "./schema_check.ts";
import { PART_SUBSCHEMAS_MAX } from "./schema_keywords.ts";
import { SchemaTurns, type Stages, WAITING_SCHEMAS_MAX } from "./schema_turns.ts";

/** Turns of one stage each, which the test gives. */
function setup(prepare = (): Promise<void> => Promise.resolve()) {
  const queued: Work[] = [];
  const turns = { queue: (work: Work) => void queued.push(work), isSpent: () => true };
  const schemas = new SchemaTurns(turns, prepare);
  const log: string[] = [];
  function* stagesOf(name: string, count: number): Stages {
    for (let stage = 1; stage <= count; stage++) {
      log.push(`${name}${stage}`);
      yield;
    }
    if (name === "bad") throw new Error("it cannot be used");
    return () => [];
  }
  const add = (owner: object, name: string, stages = 1, starts = 0): void =>
    schemas.add(owner, stagesOf(name, stages), (outcome) => {
      log.push(outcome instanceof Error ? `${name}: ${outcome.message}` : `${name} is compiled`);
      return startsOf(name, starts);
    });
  function* startsOf(name: string, count: number): Generator<void, void, void> {
    for (let start = 1; start <= count; start++) {
      log.push(`${name} starts ${start}`);
      yield;
    }
  }
  /** Gives turns until nothing is left to be done; returns how many. */
  const run = async (): Promise<number> => {
    for (let i = 0; i < 5; i++) await Promise.resolve();
    let count = 0;
    for (let work = queued.shift(); work; count++) if (!work.work()) work = queued.shift();
    return count;
  };
  return { schemas, log, add, run, queued };
}

Deno.test("each stage of a schema is a turn of its own", async () => {
  const { log, add, run } = setup();

  add({}, "a", 3);
  assert.deepEqual(log, []);

  assert.equal(await run(), 4);
  assert.deepEqual(log, ["a1", "a2", "a3", "a is compiled"]);
});

Deno.test("owners take turns, so that very many schemas of one do not delay another's", async () => {
  const { log, add, run } = setup();
  const [one, other] = [{}, {}];
  for (let i = 0; i < 5; i++) add(one, "flood");

  add(other, "own");
  await run();

  assert.ok(log.indexOf("own is compiled") < 5, log.join());
  assert.equal(log.filter((entry) => entry === "flood is compiled").length, 5);
});

Deno.test("a schema that cannot be used is reported, and the next one compiled", async () => {
  const { log, add, run } = setup();

  add({}, "bad");
  add({}, "good");
  await run();

  assert.deepEqual(log, ["bad1", "bad: it cannot be used", "good1", "good is compiled"]);
});

Deno.test("what waited for a schema starts in turns, between the schemas of other owners", async () => {
  const { log, add, run } = setup();

  add({}, "a", 1, 3);
  add({}, "b", 2);
  const turns = await run();

  const starts = ["a1", "a is compiled", "a starts 1", "b1", "b2", "b is compiled", "a starts 2"];
  assert.deepEqual(log, [...starts, "a starts 3"]);
  assert.equal(turns, 8);
});

Deno.test("nothing is compiled before the compiler is loaded", async () => {
  const loaded = Promise.withResolvers<void>();
  const { log, add, run } = setup(() => loaded.promise);

  add({}, "a");
  assert.equal(await run(), 0);
  loaded.resolve();
  await run();

  assert.deepEqual(log, ["a1", "a is compiled"]);
});

Deno.test("a schema that comes when all others are compiled gets turns again", async () => {
  const { log, add, run } = setup();
  add({}, "a");
  await run();

  add({}, "b");
  await run();

  assert.deepEqual(log.slice(2), ["b1", "b is compiled"]);
});

Deno.test("a bounded number of schemas waits", async () => {
  const { schemas, add, run } = setup();
  for (let i = 0; i < WAITING_SCHEMAS_MAX; i++) {
    assert.equal(schemas.hasRoom, true);
    add({}, "a");
  }

  assert.equal(schemas.hasRoom, false);
  await run();
  assert.equal(schemas.hasRoom, true);
});

/** Schemas of a thread whose turns the test gives, one stage each. */
function setupTurns() {
  const queued: Work[] = [];
  let looks = 0;
  const thread = {
    queue: (work: Work) => void queued.push(work),
    isSpent: () => true,
    look: () => void looks++,
  };
  const schemas = createSchemas(undefined, thread);
  const compileInTurns = async (schema: Json): Promise<[SchemaCheck | Error, number]> => {
    let outcome: SchemaCheck | Error | undefined;
    const isSoon = schemas.compileSoon!(schema, schemas, (compiled) => {
      outcome = compiled;
      return [];
    });
    assert.equal(isSoon, true);
    let turns = 0;
    for (; outcome === undefined; turns++) {
      await Promise.resolve();
      if (queued.length > 0 && !queued[0]!.work()) queued.shift();
    }
    return [outcome, turns];
  };
  return { schemas, compileInTurns, looks: () => looks };
}

const LARGE = "x".repeat(AT_ONCE_CHARS_MAX);

Deno.test("a large schema is compiled in several turns, to the same check", async () => {
  const { compileInTurns } = setupTurns();
  const schema = {
    description: LARGE,
    type: "object",
    properties: { name: { type: "string" }, children: { items: { $ref: "#" } } },
    required: ["name"],
  };

  const [check, turns] = await compileInTurns(schema);

  assert.ok(turns >= 5, `${turns} turns`);
  for (const value of [{ name: "a" }, { name: 1 }, { name: "a", children: [{ name: 1 }, {}] }]) {
    assert.deepEqual((check as SchemaCheck)(value), createSchemas().compile(schema)(value));
  }
});

Deno.test("a schema that refers to itself gets the errors of all levels", async () => {
  const { compileInTurns } = setupTurns();
  const $defs = { node: { properties: { root: { $ref: "#" }, n: { type: "integer" } } } };
  const schema = { description: LARGE, $defs, properties: { next: { $ref: "#/$defs/node" } } };

  const [check] = await compileInTurns({ ...schema, additionalProperties: false });

  assert.deepEqual((check as SchemaCheck)({ next: { root: { next: { n: "x" }, more: 1 } } }), [
    { path: "/next/root", message: "must NOT have additional properties: more" },
    { path: "/next/root/next/n", message: "must be integer" },
  ]);
});

Deno.test("a small schema is left to compile(), once the compiler is loaded", async () => {
  const { schemas, compileInTurns } = setupTurns();
  const small = { type: "string" };

  const [check] = await compileInTurns(small);
  assert.equal((check as SchemaCheck)(1).length, 1);

  assert.equal(schemas.compileSoon!(small, schemas, () => assert.fail()), false);
});

Deno.test("in turns, too, a schema that cannot be used is refused with the reason", async () => {
  const { compileInTurns } = setupTurns();

  const [outcome] = await compileInTurns({ description: LARGE, type: "nothing" });

  assert.ok(outcome instanceof EngineError);
  assert.match(outcome.message, /^The schema cannot be used: data\/type must be/);
});

Deno.test("each part of the members of a schema is a stage of its own", async () => {
  const { compileInTurns } = setupTurns();
  const named = (count: number): Json => {
    return Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: "null" }]));
  };
  const of = (count: number): Json => ({ description: LARGE, properties: named(count) });

  const [, turns] = await compileInTurns(of(PART_SUBSCHEMAS_MAX));
  const [, turnsOfParts] = await compileInTurns(of(4 * PART_SUBSCHEMAS_MAX));

  assert.equal(turnsOfParts - turns, 4);
});

Deno.test("a schema that is too long, or for which is no room, is left to compile()", () => {
  const { schemas } = setupTurns();
  const soon = (description: string): boolean => {
    return schemas.compileSoon!({ description }, schemas, () => []);
  };

  assert.equal(soon("x".repeat(SCHEMA_CHARS_MAX)), false);
  for (let i = 0; i < WAITING_SCHEMAS_MAX; i++) assert.equal(soon(LARGE), true);
  assert.equal(soon(LARGE), false);
});

Deno.test("compile() has the clock asked behind it, and stages do not", async () => {
  const { schemas, compileInTurns, looks } = setupTurns();

  await compileInTurns({ description: LARGE });
  assert.equal(looks(), 0);
  schemas.compile({});

  assert.equal(looks(), 1);
});
