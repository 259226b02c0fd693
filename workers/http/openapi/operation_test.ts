import assert from "node:assert/strict";
import type { FunctionView } from "../../../engine/ports/directory.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { parseTriggerConfig } from "../config.ts";
import { operationOf, schemasOf } from "./operation.ts";
import { templateOf } from "./paths.ts";
import { SchemaComponents } from "./schemas.ts";

/** Parts of a function that matter here. */
interface Shapes {
  readonly request?: Json;
  readonly response?: Json;
  readonly description?: string;
}

/** The parts of an operation, and the components beside it. */
interface Described {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly parameters: readonly { readonly name: string }[];
  readonly requestBody: { readonly content: JsonObject };
  readonly responses: Readonly<Record<string, DescribedResponse>>;
  readonly security: Json;
  readonly schemas: JsonObject;
}

interface DescribedResponse {
  readonly description: string;
  readonly headers: JsonObject;
  readonly content: Readonly<Record<string, { readonly schema: JsonObject }>>;
}

/** The operation of a route such as `GET /orders/:id`. */
function describe(
  line: string,
  shapes: Shapes = {},
  config: JsonObject = {},
  token = false,
): Described {
  const [method, path] = line.split(" ") as [string, string];
  const view = {
    function_id: "orders::run",
    namespace: "default",
    worker_name: "shop",
    description: shapes.description,
    request_schema: shapes.request,
    response_schema: shapes.response,
  } as unknown as FunctionView;
  const components = new SchemaComponents(100_000);
  const route = {
    method,
    path,
    view,
    function_id: "orders::run",
    params: templateOf(path).params,
    config: parseTriggerConfig({ api_path: path, http_method: method, ...config }),
  };
  const operation = operationOf(route, schemasOf(view, components), { hasToken: token });
  const schemas = JSON.parse(`{${[...components.take()].join(",")}}`);
  return { ...operation, schemas } as unknown as Described;
}

const anything = { "*/*": {} };
const object = (properties: JsonObject, required: string[] = []): JsonObject => {
  return { type: "object", properties, required };
};

Deno.test("a route of a function without schemas has its path's parameters and any body", () => {
  const { operationId, tags, parameters, requestBody, responses } = describe("PUT /orders/:id");

  assert.equal(operationId, "put_orders_by_id");
  assert.deepEqual(tags, ["shop"]);
  assert.deepEqual(parameters, [
    { name: "id", in: "path", required: true, schema: { type: "string" } },
  ]);
  assert.deepEqual(requestBody, { content: anything });
  assert.deepEqual(responses["200"]!.content, anything);
});

Deno.test("a description is the summary; of a longer one the first line", () => {
  assert.equal(describe("GET /", { description: "Lists" }).summary, "Lists");
  assert.equal(describe("GET /", { description: "Lists" }).description, undefined);

  const { summary, description } = describe("GET /", { description: " Lists\n\nall of it " });

  assert.deepEqual([summary, description], ["Lists", "Lists\n\nall of it"]);
  assert.equal(describe("GET /", { description: "x".repeat(9_000) }).description!.length, 4_000);
});

Deno.test("parameters of path, query and headers come from the payload's schema", () => {
  const request = object({
    path_params: object({ id: { type: "string", format: "uuid" } }),
    query_params: object({ page: { pattern: "^[0-9]+$", description: "From 1" } }, ["page"]),
    query_params_all: object({ tag: { type: "array", items: { type: "string" } } }),
    headers: object({ "idempotency-key": { type: "string" }, authorization: true, "a b": true }),
  });

  const { parameters } = describe("GET /orders/:id", { request });

  assert.deepEqual(parameters, [
    { name: "id", in: "path", required: true, schema: { type: "string", format: "uuid" } },
    {
      name: "page",
      in: "query",
      required: true,
      description: "From 1",
      schema: { pattern: "^[0-9]+$", description: "From 1" },
    },
    {
      name: "tag",
      in: "query",
      schema: { type: "array", items: { type: "string" } },
      style: "form",
      explode: true,
    },
    { name: "idempotency-key", in: "header", schema: { type: "string" } },
  ]);
});

Deno.test("the body is a component, required where its schema says so, with its types", () => {
  const body = object({ sku: { type: "string" } });
  const request = object({ body }, ["body"]);

  const { requestBody, schemas } = describe("POST /orders", { request });

  const schema = { $ref: "#/components/schemas/orders_run_request_body" };
  assert.deepEqual(requestBody, { required: true, content: { "application/json": { schema } } });
  assert.deepEqual(schemas, { orders_run_request_body: body });
  assert.equal(describe("GET /orders", { request }).requestBody, undefined);
  assert.equal(describe("DELETE /orders").requestBody, undefined);
  const text = object({ body: { type: "string" } });
  assert.deepEqual(Object.keys(describe("POST /t", { request: text }).requestBody.content), [
    "text/plain",
  ]);
  const csv = object({ body: true, headers: object({ "Content-Type": { const: "text/csv" } }) });
  assert.deepEqual(describe("POST /t", { request: csv }).requestBody.content, {
    "text/csv": { schema: true },
  });
});

Deno.test("a result schema without members of a response is that of the body", () => {
  const list = { type: "array", items: { type: "string" } };

  const { responses, schemas } = describe("GET /", { response: list });

  const schema = { $ref: "#/components/schemas/orders_run_response" };
  assert.deepEqual(responses["200"]!.content, { "application/json": { schema } });
  assert.deepEqual(schemas, { orders_run_response: list });
  const text = describe("GET /", { response: { type: "string" } }).responses["200"]!;
  assert.deepEqual(text.content, { "text/plain": { schema: { type: "string" } } });
});

Deno.test("alternatives of a result are statuses, with headers and types of their own", () => {
  const response = {
    $defs: { gone: object({ status_code: { const: 410 }, body: { type: "null" } }) },
    oneOf: [
      object({
        status_code: { enum: [200, 201] },
        headers: object({ etag: { type: "string" }, "content-type": { const: "text/csv" } }),
        body: { type: "string" },
      }),
      { anyOf: [{ $ref: "#/$defs/gone" }, object({ status_code: { const: 204 } })] },
      object({ statusCode: { const: 500 }, body: object({ why: true }) }),
    ],
  };

  const { responses } = describe("GET /", { response });

  for (const status of ["200", "201"]) {
    assert.deepEqual(responses[status]!.content, { "text/csv": { schema: { type: "string" } } });
    assert.deepEqual(responses[status]!.headers, { etag: { schema: { type: "string" } } });
  }
  assert.equal(responses["410"]!.content, undefined);
  assert.equal(responses["204"]!.content, undefined);
  assert.deepEqual(responses["500"]!.content["application/json"]!.schema.anyOf, [
    { $ref: "#/components/schemas/orders_run_response_body" },
    { $ref: "#/components/schemas/Error" },
  ]);
});

Deno.test("statuses that no response may have are 200", () => {
  for (const status_code of [{ const: 99 }, { type: "integer" }, { enum: ["x", 700] }, true]) {
    const { responses } = describe("GET /", { response: object({ status_code, body: true }) });

    assert.deepEqual(responses["200"]!.content, { "application/json": { schema: true } });
  }
});

Deno.test("errors are those of the route: body, condition, tokens, rate limit", () => {
  const statuses = (line: string, config: JsonObject = {}, token = false): string => {
    return Object.keys(describe(line, {}, config, token).responses).join(" ");
  };

  assert.equal(statuses("GET /"), "200 400 403 429 500 503 504 default");
  assert.equal(statuses("POST /"), "200 400 403 413 415 429 500 503 504 default");
  assert.match(statuses("POST /", { raw_body: true }), / 413 429 /);
  assert.match(statuses("GET /", { condition_function_id: "c" }), / 422 /);
  assert.match(statuses("GET /", { auth_token: "abc" }), / 401 /);
  assert.match(statuses("GET /", {}, true), / 401 /);
  const rate_limit = { requests: 3, per_s: 60, key: "header:x-key" };
  const { responses } = describe("GET /", {}, { rate_limit });
  assert.equal(
    responses["429"]!.description,
    "More than 3 requests in 60 s for each value of the header x-key, or too many at once",
  );
  assert.ok(responses["429"]!.headers["Retry-After"]);
});

Deno.test("security says which tokens are sent where, and never what they are", () => {
  const secret = { auth_token: "s3cret" };

  assert.equal(describe("GET /").security, undefined);
  assert.deepEqual(describe("GET /", {}, secret).security, [{ routeToken: [] }]);
  assert.deepEqual(describe("GET /", {}, {}, true).security, [
    { listenerToken: [] },
    { listenerTokenInQuery: [] },
  ]);
  assert.deepEqual(describe("GET /", {}, secret, true).security, [
    { routeToken: [], listenerTokenInQuery: [] },
  ]);
  assert.ok(!JSON.stringify(describe("GET /", {}, secret, true)).includes("s3cret"));
});

Deno.test("names such as __proto__ are parameters and headers like others", () => {
  const named = JSON.parse('{"properties":{"__proto__":{"type":"string"}}}');
  const request = object({ query_params: named });
  const response = object({ headers: named, body: true });

  const { parameters, responses } = describe("GET /", { request, response });

  assert.equal(parameters[0]!.name, "__proto__");
  assert.deepEqual(Object.keys(responses["200"]!.headers), ["__proto__"]);
});

Deno.test("a schema of thousands of parameters gives two hundred", () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`p${i}`, true]));

  const { parameters } = describe("GET /", { request: object({ query_params: object(many) }) });

  assert.equal(parameters.length, 200);
});

Deno.test("a route that enqueues answers 202 with a receipt, not what its function returns", () => {
  const response = object({ status_code: { const: 201 }, body: object({ id: true }) });

  const { responses, schemas } = describe("POST /mails", { response }, { enqueue: "mail" });

  assert.deepEqual(Object.keys(responses).filter((status) => status.startsWith("2")), ["202"]);
  assert.match(responses["202"]!.description, /queue mail$/);
  const { required } = responses["202"]!.content["application/json"]!.schema;
  assert.deepEqual(required, ["messageReceiptId"]);
  assert.deepEqual(schemas, {});
  assert.ok("429" in responses && "500" in responses);
});
