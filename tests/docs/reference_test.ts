/**
 * docs/reference is what `deno task reference` writes now, and has every function, key, code and
 * metric that the code has.
 *
 * @module
 */
import assert from "node:assert/strict";
import { CONFIG_TEXTS, MANIFEST_TEXTS } from "../../engine/config/reference.ts";
import { ERRORS } from "../../sdk/typescript/wire/errors.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { examplesOf, readPages } from "./pages.ts";
import { REFERENCE, referencePages } from "./reference.ts";
import { schemaRows, typeText } from "./schema_rows.ts";

const pages = await referencePages();

/** What stands as code in the first column of a page's tables. */
function firstColumn(page: string): Set<string> {
  return new Set([...pages.get(page)!.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!));
}

for (const [name, text] of pages) {
  Deno.test(`docs/reference/${name} is up to date`, async () => {
    const written = await Deno.readTextFile(new URL(name, REFERENCE)).catch(() => "");

    assert.ok(written === text, `Run: deno task reference\n${firstDifference(written, text)}`);
  });
}

/** The first line that is different, as it is and as it has to be. */
function firstDifference(is: string, wanted: string): string {
  const [lines, others] = [is.split("\n"), wanted.split("\n")];
  const at = others.findIndex((line, i) => line !== lines[i]);
  return `line ${at + 1}\n  is     ${lines[at]}\n  wanted ${others[at]}`;
}

Deno.test("the reference has every key that has a text", () => {
  const builtins = builtinWorkers.map(({ name }) => name).filter((name) => name !== "engine");
  const config = firstColumn("config.md");
  const ownKey = (path: string): string => {
    const worker = builtins.find((name) => path.startsWith(`${name}.`));
    return worker === undefined ? path : path.slice(worker.length + 1);
  };
  const sections = ["engine", "log", "workers"];

  const missing = Object.keys(CONFIG_TEXTS).map(ownKey)
    .filter((path) => !config.has(path) && !sections.includes(path));
  const left = Object.keys(MANIFEST_TEXTS).filter((path) => !firstColumn("manifest.md").has(path));

  assert.deepEqual({ missing, left }, { missing: [], left: [] });
});

Deno.test("the reference has every error code, with a text", () => {
  assert.deepEqual([...firstColumn("errors.md")], Object.keys(ERRORS));
  assert.doesNotMatch(pages.get("errors.md")!, /\| +\|$/m);
});

Deno.test("the reference has every metric that the code writes", async () => {
  const source = await Deno.readTextFile(
    new URL("../../workers/observability/metrics/prometheus.ts", import.meta.url),
  );
  const names = [
    ...[...source.matchAll(/"((?:engine|process)_\w+)"/g)].map(([, name]) => name!),
    ...[...source.matchAll(/`\$\{prefix\}(_\w+)`/g)].map(([, name]) => `engine_cluster${name}`),
  ].filter((name) => name !== "engine_cluster");

  assert.ok(names.length > 30);
  assert.deepEqual(names.filter((name) => !firstColumn("metrics.md").has(name)), []);
});

Deno.test("the reference describes every function, and what each takes", () => {
  const text = pages.get("functions.md")!;
  const functions = text.split(/^### /m).slice(1);

  assert.ok(functions.length > 80);
  assert.deepEqual(functions.filter((each) => !/^`[^`]+`\n\n\w.*\.\n/.test(each)), []);
  assert.match(text, /### `state::set`[^#]*Payload:[^#]*\| `scope` \| string/);
});

Deno.test("the reference says what every key of a function is", () => {
  const missing = pages.get("functions.md")!.split(/^## /m).slice(1)
    .flatMap((section) => section.split(/^### /m).slice(1))
    .flatMap((part) =>
      [...part.matchAll(/^\| `([^`]+)` \| [^\n]* \| *(?:required *)?\|$/gm)]
        .map(([, key]) => `${part.split("\n", 1)[0]} ${key}`)
    );

  assert.deepEqual(missing, []);
});

Deno.test("events that the documents show have the members of their trigger type", async () => {
  const values = examplesOf(await readPages(), "json").flatMap(({ path, code }) =>
    code.trim().split("\n").filter((line) => line.startsWith('{"type"'))
      .map((line) => ({ path, value: JSON.parse(line) as Record<string, unknown> }))
  );
  const types = pages.get("triggers.md")!.split(/^### /m);
  let checked = 0;
  for (const { path, value } of values) {
    const section = types.find((part) => part.startsWith(`\`${value.type}\``));
    const [, payload] = section?.split("Payload of the function:") ?? [];
    if (payload === undefined) continue; // A message of a client.
    const members = new Set([...payload.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name!));

    assert.deepEqual(Object.keys(value).filter((key) => !members.has(key)), [], path);
    checked++;
  }
  assert.ok(checked >= 4, `${checked} events`);
});

Deno.test("schemaRows() names inner members by paths, without variables of the environment", () => {
  const variable = { type: "string", pattern: "\\$\\{" };
  const queue = {
    type: "object",
    required: ["type"],
    properties: {
      type: { anyOf: [{ enum: ["standard", "fifo"] }, variable], description: "How" },
      jobs: { type: "array", items: { type: "integer", minimum: 1, maximum: 9 }, default: [] },
      rate: { anyOf: [{ type: "object", properties: { per_ms: {} } }, { type: "null" }] },
    },
  };

  const rows = schemaRows({ properties: { queues: { additionalProperties: queue } } });

  assert.deepEqual(rows.map(({ path, type, required }) => [path, type, required]), [
    ["queues", "any", false],
    ["queues{}.type", "`standard`, `fifo`", true],
    ["queues{}.jobs", "list of integer, 1 to 9", false],
    ["queues{}.rate", "object or null", false],
    ["queues{}.rate.per_ms", "any", false],
  ]);
  assert.deepEqual(rows.map(({ meaning }) => meaning), ["", "How", "Default: `[]`", "", ""]);
});

Deno.test("typeText() names bounds and choices", () => {
  assert.equal(typeText({ type: "integer", minimum: 0 }), "integer, from 0");
  assert.equal(typeText({ type: ["string", "null"] }), "string or null");
  assert.equal(typeText({ anyOf: [{ type: "string" }, { type: "array" }] }), "string or list");
  assert.equal(
    typeText({ type: "object", additionalProperties: { type: "string" } }),
    "mapping of string",
  );
  assert.equal(typeText({}), "any");
});
