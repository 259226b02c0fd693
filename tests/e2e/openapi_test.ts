/**
 * The OpenAPI document of a running engine: a validator reads it, and a client that is generated
 * from it calls the routes.
 *
 * @module
 */
import assert from "node:assert/strict";
import { validate } from "@readme/openapi-parser";
import openapiTypescript, { astToString } from "openapi-typescript";
import type { Json, JsonObject } from "../../mod.ts";
import { EngineProcess } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

const HTTP = `  - name: engine-http
    config: { port: 0, openapi: true }
`;
const CONFIG = new URL("../../deno.json", import.meta.url).pathname;

const object = (properties: JsonObject, required: string[] = []): JsonObject => {
  return { type: "object", properties, required };
};

/** Functions with schemas of all kinds, and their routes. */
const FUNCTIONS: Readonly<Record<string, { request?: Json; response?: Json; route: JsonObject }>> =
  {
    "orders::add": {
      request: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        $defs: {
          line: object({ sku: { type: "string" }, parts: { items: { $ref: "#/$defs/line" } } }, [
            "sku",
          ]),
        },
        ...object({
          path_params: object({ id: { type: "string" } }),
          query_params: object({ dry: { enum: ["0", "1"] } }),
          body: object({ lines: { type: "array", items: { $ref: "#/$defs/line" } } }, ["lines"]),
        }, ["body"]),
      },
      response: {
        oneOf: [
          object({
            status_code: { const: 201 },
            body: object({ id: { type: "string" }, count: { type: "integer" } }, ["id", "count"]),
          }),
          object({ status_code: { const: 409 }, body: object({ why: { type: "string" } }) }),
        ],
      },
      route: { api_path: "/orders/:id/lines", http_method: "POST", auth_token: "s3cret" },
    },
    "orders::tree": {
      response: { $ref: "#/$defs/n", $defs: { n: { items: { $ref: "#/$defs/n" } } } },
      route: { api_path: "/tree" },
    },
    "orders::odd": {
      request: { properties: { body: true, headers: { $ref: "https://x.example/none" } } },
      response: { type: "no such type", properties: 3, $ref: "#/nowhere" },
      route: { api_path: "/odd/{x}/*", http_method: "PUT", rate_limit: { requests: 9, per_s: 9 } },
    },
    "orders::plain": { route: { api_path: "/plain" } },
    "orders::named": { route: { api_path: "/orders/:order/lines" } },
  };

/** A client as a user writes it; the generated types are beside it. */
const CLIENT = `
import createClient from "openapi-fetch";
import type { paths } from "./routes.ts";

const client = createClient<paths>({ baseUrl: Deno.args[0]! });
const params = { path: { id: "7" }, query: { dry: "1" as const } };
const headers = { authorization: "Bearer s3cret" };
const body = { lines: [{ sku: "a", parts: [{ sku: "b" }] }] };
const { data, response } = await client.POST("/orders/{id}/lines", { params, headers, body });
const id: string | undefined = data?.id;
const { error } = await client.POST("/orders/{id}/lines", { params, body });
const message = error && "error" in error ? error.error.code : "none";
// @ts-expect-error: a line has a text as sku.
void (() => client.POST("/orders/{id}/lines", { params, body: { lines: [{ sku: 1 }] } }));
// @ts-expect-error: there is no such route.
void (() => client.GET("/missing", {}));
console.log(JSON.stringify({ id, count: data?.count, status: response.status, message }));
`;

Deno.test("the document of a running engine is valid, and a generated client calls its routes", async (t) => {
  await using engine = await EngineProcess.start(HTTP);
  await using worker = engine.connect("shop");
  for (const [function_id, { request, response, route }] of Object.entries(FUNCTIONS)) {
    const formats = { request_format: request, response_format: response };
    worker.registerFunction(function_id, addLines, JSON.parse(JSON.stringify(formats)));
    worker.registerTrigger({ type: "http", function_id, config: route });
  }
  const file = `${engine.directory}/openapi.json`;
  const out = ["openapi", "--out", file];
  let printed = await engine.command(...out);
  await until(async () => {
    printed = await engine.command(...out);
    return printed.stderr.includes("Wrote 5 routes");
  }, () => printed.stderr);
  const document = JSON.parse(await Deno.readTextFile(file));
  const url = document.servers[0].url as string;

  await t.step("a validator accepts it, and it has no secrets", async () => {
    const result = await validate(structuredClone(document));

    assert.ok(result.valid, JSON.stringify(result));
    assert.deepEqual(Object.keys(document.paths), [
      "/odd/%7Bx%7D/{rest}",
      "/orders/{id}/lines",
      "/plain",
      "/tree",
    ]);
    assert.ok(!JSON.stringify(document).includes("s3cret"));
  });
  await t.step("/openapi.json is the same but for the address", async () => {
    const served = await (await fetch(`${url}/openapi.json`)).json();

    const { servers: _, ...rest } = document;
    assert.deepEqual(served, rest);
  });
  await t.step("a generated client is checked by its types, and calls a route", async () => {
    const folder = engine.directory;
    await Deno.writeTextFile(`${folder}/routes.ts`, astToString(await openapiTypescript(document)));
    await Deno.writeTextFile(`${folder}/client.ts`, CLIENT);
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--check", "-q", "--config", CONFIG, `${folder}/client.ts`, url],
      stdin: "null",
    }).output();

    assert.equal(code, 0, new TextDecoder().decode(stderr));
    assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), {
      id: "7",
      count: 1,
      status: 201,
      message: "unauthorized",
    });
  });
  await t.step("without engine-http the command says what adds it", async () => {
    await engine.command("worker", "remove", "engine-http");

    const { code, stderr, stdout } = await engine.command("openapi");

    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /engine-http does not run.*engine worker add engine-http/);
  });
});

function addLines({ path_params, body }: JsonObject): Json {
  const { lines = [] } = (body ?? {}) as { lines?: Json[] };
  const { id = "" } = path_params as { id?: string };
  return { status_code: 201, body: { id, count: lines.length } };
}
