import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { expanded, hasSecrets, masked, unmasked } from "./schema.ts";

const SECRET = { type: "string", "x-secret": true };
const R = "[redacted]";

const CASES: [what: string, schema: Json, value: Json, masked: Json][] = [
  ["a member", { properties: { key: SECRET } }, { key: "k", n: 1 }, { key: R, n: 1 }],
  ["the value itself", SECRET, "k", R],
  ["an object", { properties: { db: { "x-secret": true } } }, { db: { a: 1 } }, { db: R }],
  ["items", { items: { properties: { key: SECRET } } }, [{ key: 1 }], [{ key: R }]],
  ["first items", { prefixItems: [{}, SECRET] }, ["a", "b"], ["a", R]],
  ["any member", { additionalProperties: SECRET, properties: { a: {} } }, { a: 1, b: 2 }, {
    a: 1,
    b: R,
  }],
  ["members by pattern", { patternProperties: { "^k": SECRET } }, { k1: 1 }, { k1: R }],
  ["a reference", { $defs: { s: SECRET }, properties: { a: { $ref: "#/$defs/s" } } }, { a: 1 }, {
    a: R,
  }],
  ["a branch", { anyOf: [{}, { properties: { a: SECRET } }] }, { a: 1 }, { a: R }],
  ["a condition", { if: {}, then: { properties: { a: SECRET } } }, { a: 1 }, { a: R }],
  [
    "a recursive schema",
    {
      $ref: "#/$defs/n",
      $defs: { n: { properties: { key: SECRET, next: { $ref: "#/$defs/n" } } } },
    },
    { key: 1, next: { key: 2, next: { key: 3 } } },
    {
      key: R,
      next: { key: R, next: { key: R } },
    },
  ],
  ["nothing", { properties: { key: { "x-secret": false } } }, { key: "k" }, { key: "k" }],
  [
    "a name of the prototype",
    { properties: { key: SECRET } },
    JSON.parse('{"__proto__":{"a":1}}'),
    JSON.parse('{"__proto__":{"a":1}}'),
  ],
];
for (const [what, schema, value, expected] of CASES) {
  Deno.test(`masked() hides ${what}, if the schema says so`, () => {
    assert.equal(JSON.stringify(masked(schema, value)), JSON.stringify(expected));
  });
}

Deno.test("masked() hides all of a value that takes too long to look at", () => {
  const branches = Array.from({ length: 1_000 }, () => ({ properties: { a: {} } }));
  const value = Array.from({ length: 1_000 }, () => ({ a: 1 }));

  assert.equal(masked({ items: { anyOf: branches } }, value), R);
  let deep: Json = "s";
  for (let i = 0; i < 200; i++) deep = [deep];
  assert.equal(masked({}, deep), R);
});

Deno.test("unmasked() keeps the secrets that a value has masked, and no others", () => {
  const schema = { properties: { key: SECRET, list: { items: SECRET } } };
  const old = { key: "k", list: ["a", "b"], text: "t" };

  assert.deepEqual(unmasked(schema, { key: R, list: [R, "c"], text: R }, old), {
    value: { key: "k", list: ["a", "c"], text: R },
    lost: [],
  });
});

Deno.test("unmasked() names masked secrets that were not there before", () => {
  const schema = { properties: { key: SECRET, "a/b": { properties: { "~": SECRET } } } };

  assert.deepEqual(unmasked(schema, { key: R }, undefined).lost, ["/key"]);
  assert.deepEqual(unmasked(schema, { key: R, "a/b": { "~": R } }, {}).lost, ["/key", "/a~1b/~0"]);
});

Deno.test("unmasked() never gives a secret to another item of a list", () => {
  const schema = { items: { properties: { key: SECRET } } };
  const old = [{ host: "a", key: "ka" }, { host: "b", key: "kb" }];
  const cases: [what: string, value: Json, keys: Json, lost?: string[]][] = [
    ["an edit in place", [{ host: "a2", key: R }, { host: "b", key: R }], ["ka", "kb"]],
    ["one more", [...old.map(({ host }) => ({ host, key: R })), { host: "c", key: "kc" }], [
      "ka",
      "kb",
      "kc",
    ]],
    ["one removed", [{ host: "b", key: R }], ["kb"]],
    ["another order", [{ host: "b", key: R }, { host: "a", key: R }], ["kb", "ka"]],
    ["one inserted", [{ host: "c", key: "kc" }, { host: "a", key: R }, { host: "b", key: R }], [
      "kc",
      "ka",
      "kb",
    ]],
    ["one removed, one edited", [{ host: "b2", key: R }], [R], ["/0/key"]],
    ["one replaced", [{ host: "b", key: R }, { host: "c", key: R }], ["kb", R], ["/1/key"]],
  ];
  for (const [what, value, keys, lost = []] of cases) {
    const { value: whole, lost: found } = unmasked(schema, value, old);
    assert.deepEqual((whole as { key: Json }[]).map(({ key }) => key), keys, what);
    assert.deepEqual(found, lost, what);
  }
  const plain = { items: SECRET };
  assert.deepEqual(unmasked(plain, [R, R, "c"], ["a", "b"]).value, ["a", "b", "c"]);
  assert.deepEqual(unmasked(plain, [R], ["a", "b"]).lost, ["/0"]);
});

Deno.test("expanded() tells which texts are secret, or stand in a secret", () => {
  const secret = { "x-secret": true };
  const schema = { properties: { a: secret, b: { type: "string" }, c: { items: secret } } };
  const seen: [string, boolean][] = [];

  expanded(schema, { a: { deep: ["1"] }, b: "2", c: ["3"] }, (text, isSecret) => {
    seen.push([text, isSecret]);
    return text;
  });

  assert.deepEqual(seen, [["1", true], ["2", false], ["3", true]]);
});

Deno.test("expanded() makes numbers and booleans where the schema has no text", () => {
  const schema = {
    properties: {
      port: { type: "integer" },
      on: { type: ["boolean", "null"] },
      text: { type: "string" },
      free: {},
      wrong: { type: "integer" },
    },
  };
  const value = { port: "$P", on: "$T", text: "$P", free: "$P", wrong: "$W", plain: 7 };
  const texts: Record<string, string> = { $P: "8080", $T: "true", $W: "8080 " + "x" };

  assert.deepEqual(expanded(schema, value, (text) => texts[text] ?? text), {
    port: 8080,
    on: true,
    text: "8080",
    free: "8080",
    wrong: "8080 x",
    plain: 7,
  });
});

Deno.test("hasSecrets() finds the mark anywhere", () => {
  assert.equal(hasSecrets({ $defs: { a: { items: SECRET } } }), true);
  assert.equal(hasSecrets({ properties: { "x-secret": { type: "boolean" } } }), false);
});
