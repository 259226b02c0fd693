import { Ajv } from "ajv";
import assert from "node:assert/strict";
import { parse } from "yaml";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { examplesOf, readPages } from "../../tests/docs/pages.ts";
import { templates } from "../../templates/mod.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { manifestSchema } from "../install/manifest.ts";
import { configSchema } from "./config.ts";
import { CONFIG_TEXTS, describedSchema, MANIFEST_TEXTS } from "./reference.ts";

const SCHEMAS = [
  ["config.yaml", configSchema(builtinWorkers), CONFIG_TEXTS],
  ["engine.worker.yaml", manifestSchema(), MANIFEST_TEXTS],
] as const;

for (const [file, schema, texts] of SCHEMAS) {
  Deno.test(`every key of ${file} has a text, and every text a key`, () => {
    const seen = new Set<string>();

    describedSchema(schema, texts, (path) => seen.add(path));

    const missing = [...seen].filter((path) => !(path in texts));
    const left = Object.keys(texts).filter((path) => !seen.has(path));
    assert.deepEqual({ missing, left }, { missing: [], left: [] });
  });
}

/** The problems of a YAML text that the schema of a file finds. */
function problemsOf(schema: JsonObject, text: string): string[] {
  const check = new Ajv({ strict: false, allErrors: true }).compile(schema);
  check(parse(text) ?? {});
  return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

for (const template of templates) {
  for (const [path, text] of Object.entries(template.files)) {
    const schema = SCHEMAS.find(([file]) => path.endsWith(file))?.[1];
    if (!schema) continue;
    Deno.test(`${path} of the template ${template.name} fits its schema`, () => {
      assert.deepEqual(problemsOf(schema, text.replaceAll("{{name}}", "shop")), []);
    });
  }
}

Deno.test("each config.yaml and manifest of the documents fits its schema", async () => {
  const blocks = examplesOf(await readPages(), "yaml").map(({ code }) => code);
  const configs = blocks.filter((text) => /^(?:#.*\n)*(?:engine|workers):/.test(text));
  const manifests = blocks.filter((text) => /^runtime:/m.test(text));

  assert.ok(configs.length > 1 && manifests.length > 0);
  for (const text of configs) assert.deepEqual(problemsOf(SCHEMAS[0][1], text), [], text);
  for (const text of manifests) assert.deepEqual(problemsOf(SCHEMAS[1][1], text), [], text);
});

for (
  const [text, problem] of [
    ["engine: { prot: 1 }", "/engine must NOT have additional properties"],
    ["engine: { port: 70000 }", "/engine/port must match"],
    ["workers: [{ path: ./x }]", "/workers/0 must have required property 'name'"],
    ["workers: [{ name: engine-http, config: { prot: 1 } }]", "/workers/0/config must NOT have"],
    ["workers: [{ name: engine-http, config: { port: yes } }]", "/workers/0/config/port must"],
    ["log: { level: loud }", "/log/level must match"],
  ] as const
) {
  Deno.test(`the schema finds what is wrong with ${text}`, () => {
    const found = problemsOf(SCHEMAS[0][1], text);

    assert.ok(found.some((each) => each.startsWith(problem)), found.join("\n"));
  });
}

Deno.test("variables may stand for numbers, flags and words", () => {
  const text = "engine: { port: '${PORT:49134}', insecure: '${OPEN:false}' }\n" +
    "log: { level: '${LEVEL}' }\nworkers: [{ name: engine-http, config: { port: '${HTTP}' } }]";

  assert.deepEqual(problemsOf(SCHEMAS[0][1], text), []);
});
