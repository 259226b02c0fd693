import assert from "node:assert/strict";
import * as shape from "../../workers/kit/mod.ts";
import { issueTexts } from "./issues.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { readYaml } from "./yaml_text.ts";

/** What a schema finds wrong with `config` in a file. */
function textsOf(schema: shape.Any, text: string): string[] {
  const source = readYaml("config.yaml", text);
  const { config = null } = source.value as JsonObject;
  try {
    schema.parse(config);
  } catch (thrown) {
    return issueTexts(thrown, "config", config, source);
  }
  return [];
}

Deno.test("issueTexts() gives places inside lists and their lines", () => {
  const schema = shape.strictObject({
    routes: shape.array(shape.strictObject({ path: shape.string() })),
  });

  const texts = textsOf(schema, "config:\n  routes:\n    - path: /a\n    - path: 5\n");

  assert.deepEqual(texts, ["config.routes[1].path: expected a text, received 5 (line 4)"]);
});

Deno.test("issueTexts() says what is missing and what is unknown", () => {
  const schema = shape.strictObject({ size: shape.int() });

  const texts = textsOf(schema, "config:\n  sise: 1\n  more: 2\n");

  assert.deepEqual(texts, [
    "config.size: expected a number, received nothing (line 1)",
    "config.sise: expected a known key, received an unknown key (line 2)",
    "config.more: expected a known key, received an unknown key (line 3)",
  ]);
});

Deno.test("issueTexts() gives bounds and single values", () => {
  const schema = shape.object({
    low: shape.number().min(3),
    word: shape.literal("yes"),
    deep: shape.object({}),
  });

  const texts = textsOf(schema, "config:\n  low: 1\n  word: no\n  deep: [1]\n");

  assert.deepEqual(texts, [
    "config.low: expected at least 3, received 1 (line 2)",
    'config.word: expected "yes", received "no" (line 3)',
    "config.deep: expected a mapping, received a list (line 4)",
  ]);
});

Deno.test("issueTexts() uses the schema's own words", () => {
  const schema = shape.object({
    port: shape.int({ error: "expected a free port" }),
    odd: shape.string().regex(/@/),
  });

  assert.deepEqual(textsOf(schema, "config:\n  port: x\n  odd: y\n"), [
    'config.port: expected a free port, received "x" (line 2)',
    'config.odd: expected a valid regex, received "y" (line 3)',
  ]);
});
