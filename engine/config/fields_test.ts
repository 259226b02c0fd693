import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fitConfig } from "../../workers/kit/fit.ts";
import * as v from "../../workers/kit/schema.ts";
import { closest, Fields, issueTexts, isWorkerName, received } from "./fields.ts";
import { readYaml } from "./yaml.ts";

function setup(text: string, known: readonly string[]): { fields: Fields; problems: string[] } {
  const problems: string[] = [];
  const variables = (name: string) => name === "DIGITS" ? "0123" : "";
  const source = readYaml("file.yaml", text, variables);
  return { fields: new Fields(source, problems, known), problems };
}

Deno.test("Fields returns what fits and undefined for what is absent or empty", () => {
  const { fields, problems } = setup("a: x\nb: 5\nc: true\nd: [p, q]\ne:\n", [..."abcdef"]);

  assert.equal(fields.text("a"), "x");
  assert.equal(fields.integer("b", 1, 9), 5);
  assert.equal(fields.flag("c"), true);
  assert.deepEqual(fields.texts("d", () => undefined), ["p", "q"]);
  assert.equal(fields.text("e"), undefined);
  assert.equal(fields.has("f"), false);
  assert.deepEqual(problems, []);
});

Deno.test("Fields reports each kind of problem with path, value and line", () => {
  const text = "a: 5\nb: abc\nc: yes\nd: blue\ne: x\nf: [1, '']\n";
  const { fields, problems } = setup(text, [..."abcdef"]);

  fields.text("a");
  fields.integer("b", 1, 9);
  fields.flag("c");
  fields.choice("d", ["red", "green"]);
  fields.texts("e");
  fields.texts("f", () => "something else");

  assert.deepEqual(problems, [
    "a: expected a string, received 5 (line 1)",
    'b: expected 1 to 9, received "abc" (line 2)',
    'c: expected true or false, received "yes" (line 3)',
    'd: expected one of red, green, received "blue" (line 4)',
    'e: expected a list of strings, received "x" (line 5)',
    "f[0]: expected a string, received 1 (line 6)",
    'f[1]: expected a string, received "" (line 6)',
  ]);
});

Deno.test("Fields.texts() reports each text that a check has a word against", () => {
  const { fields, problems } = setup("a: [x, y, z]\n", ["a"]);

  const texts = fields.texts("a", (text) => text === "y" ? "anything but y" : undefined);

  assert.deepEqual(texts, ["x", "z"]);
  assert.deepEqual(problems, ['a[1]: expected anything but y, received "y" (line 1)']);
});

Deno.test("Fields takes a variable that looks like a number for the text it is", () => {
  const { fields, problems } = setup("a: ${DIGITS}\nb: ${EMPTY}\n", ["a", "b"]);

  assert.equal(fields.text("a"), "0123");
  assert.equal(fields.secret("a"), "0123");
  assert.equal(fields.secret("b"), undefined);
  assert.deepEqual(problems, []);
});

Deno.test("Fields.secret() shows no value", () => {
  const { fields, problems } = setup("a: 123456\n", ["a"]);

  assert.equal(fields.secret("a"), undefined);
  assert.deepEqual(problems, ["a: expected a string, received something else (line 1)"]);
});

Deno.test("Fields offers the key that was probably meant", () => {
  const { problems } = setup("prot: 1\nzebra: 2\n", ["host", "port"]);

  assert.deepEqual(problems, [
    "prot: expected one of the keys host, port, received an unknown key; " +
    "did you mean port? (line 1)",
    "zebra: expected one of the keys host, port, received an unknown key (line 2)",
  ]);
});

Deno.test("Fields.environment() takes numbers and flags as they were written", () => {
  const { fields, problems } = setup("env:\n  A: 1.10\n  B: true\n  C: x\n  D:\n", ["env"]);

  assert.deepEqual(fields.environment("env"), { A: "1.10", B: "true", C: "x", D: "" });
  assert.deepEqual(problems, []);
});

Deno.test("Fields.environment() reports odd names and values", () => {
  const { fields, problems } = setup("env:\n  a-b: x\n  C: [1]\n", ["env"]);

  fields.environment("env");

  assert.deepEqual(problems, [
    'env.a-b: expected a name of letters, digits and _, received "a-b" (line 2)',
    "env.C: expected a string, received a list (line 3)",
  ]);
});

Deno.test("Fields reports a list or a text instead of a mapping", () => {
  const { fields, problems } = setup("a: [1]\nitems:\n  - x\n  -\nmore: 1\n", [
    "a",
    "items",
    "more",
  ]);

  fields.fields("a", []);
  fields.items("items", []);
  fields.items("more", []);

  assert.deepEqual(problems, [
    "a: expected a mapping, received a list (line 1)",
    'items[0]: expected a mapping, received "x" (line 3)',
    "items[1]: expected a mapping, received nothing (line 4)",
    "more: expected a list, received 1 (line 5)",
  ]);
});

Deno.test("isWorkerName() refuses what cannot be a file name", () => {
  for (const name of ["math", "math-worker", "a.b_c", "7up"]) assert.ok(isWorkerName(name), name);
  for (const name of ["", "two words", "../up", ".hidden", "a/b", "ä", "-x", "a".repeat(65)]) {
    assert.ok(!isWorkerName(name), name);
  }
});

Deno.test("closest() finds typing errors and nothing far-fetched", () => {
  assert.equal(closest("isolaton", ["name", "isolation"]), "isolation");
  assert.equal(closest("Port", ["port"]), "port");
  assert.equal(closest("memory", ["cpus", "memory_mb"]), "memory_mb");
  assert.equal(closest("mem", ["cpus", "memory_mb"]), undefined);
  assert.equal(closest("banana", ["port", "host"]), undefined);
});

Deno.test("received() is short", () => {
  assert.equal(received("x".repeat(100)).length, 59);
  assert.equal(received({}), "a mapping");
  assert.equal(received(null), "nothing");
});

/** What a schema finds wrong with `config` in a file. */
function textsOf(schema: v.Schema, text: string): string[] {
  const source = readYaml("config.yaml", text);
  const { config = null } = source.value as JsonObject;
  try {
    fitConfig(schema, config);
  } catch (thrown) {
    return issueTexts(thrown, "config", config, source);
  }
  return [];
}

Deno.test("issueTexts() gives paths inside lists and their lines", () => {
  const schema = v.strictObject({
    routes: v.array(v.strictObject({ path: v.string() })),
  });

  const texts = textsOf(schema, "config:\n  routes:\n    - path: /a\n    - path: 5\n");

  assert.deepEqual(texts, ["config.routes[1].path: expected a string, received 5 (line 4)"]);
});

Deno.test("issueTexts() does not show a value that may be a secret", () => {
  const source = readYaml("file.yaml", "config:\n  auth_token: a b\n", () => "");
  const schema = v.strictObject({ auth_token: v.pipe(v.string(), v.regex(/^\w*$/, "letters")) });

  try {
    fitConfig(schema, { auth_token: "a b" });
    assert.fail("the token fits");
  } catch (thrown) {
    const texts = issueTexts(thrown, "config", { auth_token: "a b" }, source);
    assert.deepEqual(texts, [
      "config.auth_token: expected letters, received another string (line 2)",
    ]);
  }
});

Deno.test("issueTexts() reports missing and unknown keys", () => {
  const schema = v.strictObject({ size: v.int() });

  const texts = textsOf(schema, "config:\n  sise: 1\n  more: 2\n");

  assert.deepEqual(texts, [
    "config.size: expected a number, received nothing (line 1)",
    "config.sise: expected a known key, received an unknown key (line 2)",
    "config.more: expected a known key, received an unknown key (line 3)",
  ]);
});

Deno.test("issueTexts() gives bounds and single values", () => {
  const schema = v.object({
    low: v.pipe(v.number(), v.minValue(3)),
    word: v.literal("yes"),
    deep: v.object({}),
  });

  const texts = textsOf(schema, "config:\n  low: 1\n  word: no\n  deep: [1]\n");

  assert.deepEqual(texts, [
    "config.low: expected at least 3, received 1 (line 2)",
    'config.word: expected "yes", received "no" (line 3)',
    "config.deep: expected a mapping, received a list (line 4)",
  ]);
});

Deno.test("issueTexts() uses the schema's own words", () => {
  const schema = v.object({
    port: v.number("expected a free port"),
    odd: v.pipe(v.string(), v.regex(/@/)),
  });

  assert.deepEqual(textsOf(schema, "config:\n  port: x\n  odd: y\n"), [
    'config.port: expected a free port, received "x" (line 2)',
    'config.odd: expected a string that matches /@/, received "y" (line 3)',
  ]);
});
