/**
 * Functions of a live system whose schemas have all that a generated client has to say, for the
 * tests of generated clients in both languages.
 *
 * `deno run -A tests/types/live_functions.ts` writes the client that the Python SDK's tests use.
 *
 * @module
 */
import { writePython } from "../../cli/types/python.ts";
import type { LiveFunction } from "../../cli/types/tree.ts";

/** Where the Python client is. */
export const PYTHON_CLIENT = new URL("../../sdk/python/tests/generated_api.py", import.meta.url);

const CIRCLE = {
  type: "object",
  properties: { kind: { const: "circle" }, radius: { type: "number" } },
  required: ["kind", "radius"],
};
const SQUARE = {
  type: "object",
  properties: {
    kind: { const: "square" },
    "side-length": { type: "number" },
    class: { type: "string", nullable: true },
  },
  required: ["kind"],
};
const TREE = {
  type: "object",
  description: "A tree of numbers.",
  properties: {
    value: { type: "integer", description: "Of this node", default: 0 },
    children: { type: "array", items: { $ref: "#/$defs/Tree" } },
  },
  required: ["value"],
};

/** The functions. */
export const FUNCTIONS: readonly LiveFunction[] = [
  {
    function_id: "math::add",
    description: "Add two numbers",
    request_schema: {
      type: "object",
      properties: { a: { type: "number", description: "The first" }, b: { type: "number" } },
      required: ["a", "b"],
    },
    response_schema: { type: "object", properties: { c: { type: "number" } }, required: ["c"] },
  },
  { function_id: "math::untyped" },
  {
    function_id: "a::b",
    request_schema: { enum: ["x", "y", 2, null] },
    response_schema: { type: "integer" },
  },
  {
    function_id: "a::b::name",
    description: 'Several lines,\nwith */ and """ and \\ in them',
    request_schema: { $ref: "#/$defs/Tree", $defs: { Tree: TREE } },
    response_schema: { $ref: "#/$defs/Tree", $defs: { Tree: TREE } },
  },
  { function_id: "a::b::c::d", response_schema: { type: ["string", "null"] } },
  {
    function_id: "my-shop::price.of",
    request_schema: {
      allOf: [
        { type: "object", properties: { sku: { type: "string" } }, required: ["sku"] },
        { type: "object", properties: { count: { type: "integer" } } },
      ],
    },
    response_schema: { type: "object", additionalProperties: { type: "number" } },
  },
  {
    function_id: "shapes::area",
    request_schema: { oneOf: [CIRCLE, SQUARE] },
    response_schema: { type: "number" },
  },
  {
    function_id: "shapes::list",
    request_schema: {
      type: "object",
      properties: { page: { type: "object", properties: { size: { type: "integer" } } } },
      additionalProperties: true,
    },
    response_schema: { type: "array", items: { anyOf: [CIRCLE, { type: "null" }] } },
  },
  {
    function_id: "shapes::corner",
    request_schema: { prefixItems: [{ type: "number" }, { type: "number" }] },
    response_schema: { type: "array", items: { $ref: "#" } },
  },
  { function_id: "publish", request_schema: { type: "object" }, response_schema: { type: "null" } },
  { function_id: "odd::__proto__", response_schema: { type: "string" } },
  { function_id: "odd::class", response_schema: { type: "boolean" } },
  { function_id: "odd::str", response_schema: { type: "string" } },
  { function_id: "odd::1st", response_schema: false },
  { function_id: "::", response_schema: { $ref: "#/nowhere" } },
];

if (import.meta.main) await Deno.writeTextFile(PYTHON_CLIENT, writePython(FUNCTIONS, undefined));
