import assert from "node:assert/strict";
import type { FunctionView } from "../../../engine/ports/directory.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { parseTriggerConfig } from "../config.ts";
import type { Target } from "../handler.ts";
import type { Route } from "../routes.ts";
import { PATHS_CHARS_MAX, PIECE_CHARS, ROUTES_MAX, SCHEMAS_CHARS_MAX } from "./document.ts";
import { writeDocument } from "./document.ts";

/** A function that the directory knows. */
function view(function_id: string, more: Partial<FunctionView> = {}): FunctionView {
  return {
    function_id,
    namespace: "default",
    worker_id: "w",
    worker_name: "shop",
    internal: false,
    builtin: false,
    worker_ids: ["w"],
    ...more,
  };
}

function route(line: string, function_id = "f", more: Partial<Target> = {}): Route<Target> {
  const [method, path] = line.split(" ") as [string, string];
  const config = parseTriggerConfig({ api_path: path, http_method: method });
  const value = { function_id, namespace: undefined, metadata: undefined, config, ...more };
  return { id: line, method, path, value: value as unknown as Target };
}

/** Writes a document at once; `steps` says in how many steps. */
function write(routes: Iterable<Route<Target>>, views: readonly FunctionView[] = []) {
  const known = new Map(views.map((each) => [`${each.namespace} ${each.function_id}`, each]));
  const viewOf = (namespace: string, id: string) => known.get(`${namespace} ${id}`);
  const writing = writeDocument({ routes, viewOf, hasToken: false });
  let steps = 0;
  for (;; steps++) {
    const step = writing.next();
    if (!step.done) continue;
    const text = step.value.pieces.join("");
    return { ...step.value, text, steps, document: JSON.parse(text) };
  }
}

Deno.test("several methods of a path are one path, and equal routes give equal text", () => {
  const routes = [route("POST /b"), route("GET /b"), route("GET /a/:id"), route("PUT a/:id")];

  const { document, text, routes: count } = write(routes);

  assert.equal(count, 4);
  assert.deepEqual(
    Object.entries(document.paths as object).map(([path, item]) => [path, ...Object.keys(item)]),
    [["/a/{id}", "get", "put"], ["/b", "get", "post"]],
  );
  assert.equal(write(routes.toReversed()).text, text);
  assert.notEqual(write(routes.slice(1)).document.info.version, document.info.version);
});

Deno.test("methods that name the parameters of a path otherwise share its template", () => {
  const properties = { path_params: { properties: { name: { type: "string", maxLength: 9 } } } };
  const views = [view("g", { request_schema: { properties } })];

  const { document } = write([route("GET /u/:id"), route("PUT /u/:name", "g")], views);

  assert.deepEqual(Object.keys(document.paths), ["/u/{id}"]);
  assert.deepEqual(document.paths["/u/{id}"].put.parameters, [
    { name: "id", in: "path", required: true, schema: { type: "string", maxLength: 9 } },
  ]);
});

Deno.test("a rest of a path that OpenAPI cannot tell from a parameter is named as omitted", () => {
  const { document, routes } = write([route("GET /f/*"), route("GET /f/:id"), route("PUT /f/*")]);

  assert.deepEqual(Object.keys(document.paths["/f/{id}"]), ["get", "put"]);
  assert.equal(routes, 2);
  assert.deepEqual(document["x-omitted-routes"], { count: 1, routes: ["GET /f/*"] });
});

Deno.test("internal functions, internal triggers and the engine's functions do not appear", () => {
  const routes = [
    route("GET /engine", "engine::workers::list"),
    route("GET /secret", "secret"),
    route("GET /hidden", "f", { metadata: { internal: true } }),
    route("GET /elsewhere", "secret", { namespace: "other" }),
  ];
  const views = [view("secret", { internal: true })];

  assert.deepEqual(Object.keys(write(routes, views).document.paths), ["/elsewhere"]);
});

Deno.test("routes of one function share its components; namespaces keep them apart", () => {
  const response_schema: Json = { type: "array", items: { type: "string" } };
  const views = [view("f", { response_schema }), view("f", { namespace: "n", response_schema })];

  const routes = [route("GET /a"), route("GET /b"), route("GET /c", "f", { namespace: "n" })];
  const { document } = write(routes, views);

  assert.deepEqual(Object.keys(document.components.schemas), [
    "Error",
    "f_response",
    "n_f_response",
  ]);
});

Deno.test("large schemas are left out when the document is full, and every route stays", () => {
  const big = { properties: { text: { const: "x".repeat(60_000) } } };
  const ids = Array.from({ length: 400 }, (_, i) => `f${i}`);
  const views = ids.map((id) => view(id, { request_schema: { properties: { body: big } } }));

  const { document, text, pieces } = write(ids.map((id) => route(`POST /${id}`, id)), views);

  assert.equal(Object.keys(document.paths).length, 400);
  assert.ok(text.length < SCHEMAS_CHARS_MAX + 1_000_000, `${text.length} characters`);
  assert.ok(document.components.schemas.schema_left_out);
  for (const piece of pieces) assert.ok(piece.length < 2 * PIECE_CHARS);
});

Deno.test("an operation that is too long is described without its function's schemas", () => {
  const names = Array.from({ length: 90 }, (_, i) => `${i}${"n".repeat(1_000)}`);
  const properties = Object.fromEntries(names.map((name) => [name, {}]));
  const request_schema = { properties: { query_params: { properties } } };

  const { document } = write([route("GET /a")], [view("f", { request_schema })]);

  assert.equal(document.paths["/a"].get.parameters, undefined);
  assert.equal(document.paths["/a"].get.tags[0], "shop");
});

Deno.test("ten thousand routes are written in small steps, and more than fit are counted", () => {
  const count = ROUTES_MAX + 5;
  const all = Array.from({ length: count }, (_, i) => route(`POST /group${i % 50}/item${i}/:id`));

  const { document, steps, text, routes } = write(all);

  const omitted = document["x-omitted-routes"].count;
  assert.equal(routes + omitted, count);
  assert.ok(omitted >= 5);
  assert.ok(routes > 10_000, `${routes} routes`);
  assert.ok(text.length < PATHS_CHARS_MAX + 100_000);
  assert.ok(steps >= routes, `${steps} steps`);
});
