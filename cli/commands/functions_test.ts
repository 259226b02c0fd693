import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { describeFunction } from "./functions.ts";

function setup(
  functions: {
    function_id: string;
    worker_name: string;
    description?: string;
    served_by?: string;
  }[],
) {
  return new FakeTerminal({ functions: { "engine::functions::list": () => ({ functions }) } });
}

Deno.test("functions are listed with their workers", async () => {
  const terminal = setup([
    { function_id: "math::add", worker_name: "math-worker", description: "Adds" },
    { function_id: "a::b", worker_name: "a" },
  ]);

  assert.equal(await terminal.run("functions"), 0);

  assert.deepEqual(terminal.outLines, [
    "FUNCTION   WORKER       DESCRIPTION",
    "math::add  math-worker  Adds",
    "a::b       a",
  ]);
  assert.deepEqual(terminal.calls[0]!.payload, { include_internal: false });
});

Deno.test("the search and --all are passed on, and --json is one line", async () => {
  const terminal = setup([{ function_id: "math::add", worker_name: "m" }]);

  await terminal.run("functions", "math", "--all", "--json");

  assert.deepEqual(terminal.calls[0]!.payload, { include_internal: true, search: "math" });
  assert.deepEqual(terminal.outLines, ['[{"function_id":"math::add","worker_name":"m"}]']);
});

Deno.test("an empty list is explained on standard error", async () => {
  const terminal = setup([]);

  assert.equal(await terminal.run("functions"), 0);
  assert.equal(await terminal.run("functions", "x"), 0);

  assert.deepEqual(terminal.outLines, []);
  assert.match(terminal.errLines[0]!, /No functions yet; add a worker with/);
  assert.equal(terminal.errLines[1], 'No function has "x" in its id');
});

Deno.test("a function's help shows its parameters with types, descriptions and defaults", () => {
  const lines = describeFunction({
    function_id: "orders::create",
    worker_name: "orders",
    description: "Takes an order",
    request_schema: {
      type: "object",
      required: ["sku", "kind"],
      properties: {
        sku: { type: "string", description: "What to send" },
        kind: { enum: ["gift", "own"] },
        count: { type: "integer", default: 1 },
        tags: { type: "array", items: { type: "string" } },
        note: { anyOf: [{ type: "string" }, { type: "null" }] },
      },
    },
    response_schema: { type: "object", properties: { id: { type: ["string", "null"] } } },
    registered_triggers: [{ trigger_type: "http", config: { api_path: "/orders" } }],
  });

  assert.deepEqual(lines, [
    "orders::create",
    "  Takes an order",
    "",
    "Worker: orders",
    "",
    "Payload:",
    "  sku    string           required  What to send",
    '  kind   "gift" | "own"   required',
    "  count  integer          optional  (default 1)",
    "  tags   array of string  optional",
    "  note   string | null    optional",
    "",
    "Result:",
    "  id  string | null",
    "",
    "Triggers:",
    '  http {"api_path":"/orders"}',
    "",
    "Example:",
    "  engine trigger orders::create sku=text kind=gift",
  ]);
});

Deno.test("a function without schemas says so", () => {
  const lines = describeFunction({ function_id: "a::b" });

  assert.deepEqual(lines.slice(2), [
    "Worker: unknown",
    "",
    "Payload:",
    "  anything (its worker has not said what)",
    "",
    "Result:",
    "  anything (its worker has not said what)",
    "",
    "Example:",
    "  engine trigger a::b",
  ]);
});

Deno.test("a schema without properties is shown by its type", () => {
  const lines = describeFunction({
    function_id: "a::b",
    request_schema: { type: "number", description: "Degrees" },
    response_schema: true,
  });

  assert.ok(lines.includes("  number  Degrees"));
});

Deno.test("an example that a shell would split is quoted", () => {
  const lines = describeFunction({
    function_id: "a::b",
    request_schema: {
      type: "object",
      properties: { "x y": { type: "object" }, "it's": { const: "a b" } },
    },
  });

  assert.equal(lines.at(-1), "  engine trigger a::b 'x y={}' 'it'\\''s=a b'");
});

Deno.test("an example uses the first of several alternatives", () => {
  const exampleOf = (request_schema: Json) =>
    describeFunction({ function_id: "a::b", request_schema }).at(-1);
  const properties: JsonObject = {
    kind: { anyOf: [{ type: "string", enum: ["microvm", "process"] }, { type: "null" }] },
    deep: { oneOf: [{ anyOf: [{ type: "boolean" }] }] },
    config: { anyOf: [{ type: "object" }, { type: "null" }] },
    none: { anyOf: [] },
  };

  assert.equal(
    exampleOf({ type: "object", properties }),
    "  engine trigger a::b kind=microvm deep=true 'config={}' none=text",
  );
  assert.equal(
    exampleOf({ properties, anyOf: [{ required: ["kind"] }, { required: ["deep"] }] }),
    "  engine trigger a::b kind=microvm",
  );
  assert.equal(
    exampleOf({ oneOf: [{ properties: { n: { type: "integer" } } }, { type: "null" }] }),
    "  engine trigger a::b n=1",
  );
});

Deno.test("the description of a function cannot control the terminal", () => {
  const lines = describeFunction({ function_id: "a::b", description: "\u001b[2Jgone\u0007" });

  assert.equal(lines[1], "  gone");
});

Deno.test("a function that is served by a URL is marked in the list", async () => {
  const served = { function_id: "web::quote", worker_name: "quotes", description: "A quote" };
  const terminal = setup([{ ...served, served_by: "https://api.example.com" }]);

  await terminal.run("functions");

  assert.equal(
    terminal.outLines[1],
    "web::quote  quotes  (https://api.example.com) A quote",
  );
});

Deno.test("a function's help says which URL executes it, as far as one may know", () => {
  const detail = { function_id: "web::quote", served_by: "https://api.example.com" };
  const invocation = {
    url: "https://api.example.com/quote?…",
    method: "POST",
    timeout_ms: 800,
    headers: { "X-Tenant": "…" },
    auth: { type: "bearer", token_key: "QUOTES_TOKEN" },
  };

  assert.ok(describeFunction(detail).includes("Served by: https://api.example.com"));
  const lines = describeFunction({ ...detail, invocation });
  const at = lines.indexOf("Served by: POST https://api.example.com/quote?…");
  assert.deepEqual(lines.slice(at + 1, at + 4), [
    "  within 800 ms",
    "  headers X-Tenant",
    '  auth {"type":"bearer","token_key":"QUOTES_TOKEN"}',
  ]);
});

Deno.test("functions of other engines are listed with their engine", async () => {
  const terminal = new FakeTerminal({
    functions: {
      "engine::functions::list": () => ({
        functions: [
          { function_id: "a::b", worker_name: "w", description: "Near" },
          { function_id: "c::d", worker_name: "v", engine: "other" },
        ],
      }),
    },
  });

  assert.equal(await terminal.run("functions"), 0);

  assert.deepEqual(terminal.outLines, [
    "FUNCTION  WORKER  ENGINE  DESCRIPTION",
    "a::b      w       here    Near",
    "c::d      v       other",
  ]);
});
