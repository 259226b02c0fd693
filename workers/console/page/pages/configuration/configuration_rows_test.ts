import assert from "node:assert/strict";
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import {
  type ConfigurationChange,
  type ConfigurationRow,
  isRestorable,
  matchesSearch,
  noteOn,
  REFERENCES_MAX,
  referencesIn,
} from "./configuration_rows.ts";

const VALUE: Json = { port: "${PORT:80}", list: [1, { host: "https://${HOST}/" }], plain: "$" };

Deno.test("matchesSearch() looks at id, name and description", () => {
  const row = { id: "shop", name: "Shop of Ann", description: "ports" } as ConfigurationRow;

  assert.equal(matchesSearch(row, "ANN port"), true);
  assert.equal(matchesSearch(row, "bob"), false);
  assert.equal(matchesSearch({ ...row, description: null }, ""), true);
});

Deno.test("referencesIn() finds references wherever they are, and what they stand for", () => {
  const expanded = { port: 80, list: [1, { host: "https://a/" }], plain: "$" };

  assert.deepEqual(referencesIn(VALUE, expanded), [
    { place: "port", text: "${PORT:80}", standsFor: 80 },
    { place: "list[1].host", text: "https://${HOST}/", standsFor: "https://a/" },
  ]);
  assert.deepEqual(referencesIn(VALUE, undefined).map(({ standsFor }) => standsFor), [
    undefined,
    undefined,
  ]);
  assert.deepEqual(referencesIn("${A}", "x")[0]!.place, "value");
});

Deno.test("referencesIn() lists a bounded number", () => {
  const many = Array.from({ length: REFERENCES_MAX + 5 }, () => "${A}");

  assert.equal(referencesIn(many, undefined).length, REFERENCES_MAX);
});

Deno.test("noteOn() says what the reference at a place stands for", () => {
  const note = noteOn(referencesIn(VALUE, { port: 80 }));

  assert.equal(note(["port"]), "${PORT:80} stands for 80");
  assert.equal(note(["list", 1, "host"]), undefined);
  assert.equal(note(["plain"]), undefined);
});

Deno.test("isRestorable() is false for a value that the history left out", () => {
  const change = { version: 1, at_ms: 0, by: null, old_value: null } as const;

  assert.equal(isRestorable({ ...change, new_value: { a: 1 } }), true);
  assert.equal(
    isRestorable({ ...change, new_value: "[too large to be kept]" } as ConfigurationChange),
    false,
  );
});
