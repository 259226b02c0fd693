import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { CONTEXT_CHARS_MAX, readGrant } from "./grant.ts";

Deno.test("an empty grant allows to register functions, and nothing else", () => {
  const grant = readGrant({ allowed_functions: null, context: null, prefix: 7 }, "auth::f");

  assert.deepEqual({ ...grant, namespaces: [...grant.namespaces] }, {
    allowed: [],
    forbidden: [],
    namespaces: [],
    triggerTypes: undefined,
    mayRegisterTriggerTypes: false,
    mayRegisterFunctions: true,
    context: {},
    prefix: undefined,
  });
});

Deno.test("a grant has ids and patterns, flags, a context and a prefix", () => {
  const grant = readGrant({
    allowed_functions: ["a::b", 'match("c::*")'],
    forbidden_functions: ["d"],
    allowed_trigger_types: ["http"],
    allow_trigger_type_registration: true,
    allow_function_registration: false,
    context: { user: "u" },
    function_registration_prefix: "acme",
    namespaces: ["blue"],
  }, "auth::f");

  assert.deepEqual(grant.allowed.map((pattern) => pattern.matches("c::x")), [false, true]);
  assert.deepEqual(grant.forbidden.map(({ text }) => text), ["d"]);
  assert.deepEqual([...grant.triggerTypes!, ...grant.namespaces], ["http", "blue"]);
  assert.deepEqual([grant.mayRegisterTriggerTypes, grant.mayRegisterFunctions], [true, false]);
  assert.deepEqual([grant.context, grant.prefix], [{ user: "u" }, "acme"]);
});

const BAD: readonly [Json, RegExp][] = [
  [null, /expected an object/],
  [true, /expected an object/],
  [[], /expected an object/],
  ["yes", /expected an object/],
  [{ allowed_functions: "all" }, /allowed_functions: expected a list of strings/],
  [{ allowed_functions: [5] }, /allowed_functions\[0\]: expected a string/],
  [{ forbidden_functions: ["a", "admin::*"] }, /forbidden_functions\[1\]: expected match\("admin/],
  [{ namespaces: {} }, /namespaces: expected a list/],
  [{ allow_function_registration: "no" }, /allow_function_registration: expected true or false/],
  [{ context: [] }, /context: expected an object/],
  [{ context: { a: "x".repeat(CONTEXT_CHARS_MAX) } }, /context: expected at most/],
  [{ function_registration_prefix: "" }, /function_registration_prefix/],
  [{ function_registration_prefix: "x".repeat(5_000) }, /function_registration_prefix/],
  [{ allowed_trigger_types: Array(1_001).fill("x") }, /allowed_trigger_types: expected at most/],
];

for (const [value, message] of BAD) {
  Deno.test(`${JSON.stringify(value).slice(0, 60)} is no grant`, () => {
    assert.throws(() => readGrant(value, "auth::f"), { code: "invalid_grant", message });
  });
}
