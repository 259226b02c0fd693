import assert from "node:assert/strict";
import { fitConfig } from "../../workers/kit/fit.ts";
import * as v from "../../workers/kit/schema.ts";
import { issueTexts } from "./issues.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { readYaml } from "./yaml.ts";

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

Deno.test("issueTexts() gives places inside lists and their lines", () => {
  const schema = v.strictObject({
    routes: v.array(v.strictObject({ path: v.string() })),
  });

  const texts = textsOf(schema, "config:\n  routes:\n    - path: /a\n    - path: 5\n");

  assert.deepEqual(texts, ["config.routes[1].path: expected a text, received 5 (line 4)"]);
});

Deno.test("issueTexts() says what is missing and what is unknown", () => {
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
    'config.odd: expected a text that matches /@/, received "y" (line 3)',
  ]);
});
