import assert from "node:assert/strict";
import { RouteTable } from "../../../../http/routes.ts";
import { buildRequest, draftOfCall, type RequestDraft, routeOf } from "./http_request.ts";

const route = (api_path: string, http_method = "GET") => routeOf({ api_path, http_method })!;

function draft(more: Partial<RequestDraft> = {}): RequestDraft {
  return { method: "GET", params: {}, query: [], headers: [], body: "", ...more };
}

Deno.test("routeOf() reads the config as the engine does", () => {
  assert.deepEqual(routeOf({ api_path: "a/:id/*", http_method: " post " }), {
    method: "POST",
    path: "/a/:id/*",
    params: ["id", "*"],
  });
  assert.equal(routeOf({ api_path: "/a" })!.method, "GET");
  for (const config of [null, 7, "x", [], {}, { api_path: 1 }]) {
    assert.equal(routeOf(config), undefined);
  }
});

Deno.test("buildRequest() encodes parameters so that the engine's route table decodes them", () => {
  const texts = ["7", "a b", "a/b", "ü?&#=+%", "%2F", "50%", "😀", ":id", "*", "a:b@c,d"];

  for (const text of texts) {
    const table = new RouteTable<string>();
    table.add({ id: "1", method: "GET", path: "/o/:id/x", value: "found" } as never);

    const { path, problems } = buildRequest(route("/o/:id/x"), draft({ params: { id: text } }));

    assert.deepEqual(problems, {});
    assert.deepEqual(table.find("GET", path)?.params, { id: text }, path);
  }
});

Deno.test("buildRequest() allows several segments, or none, for the remainder", () => {
  const path = (rest: string) =>
    buildRequest(route("/files/*"), draft({ params: { "*": rest } })).path;

  assert.equal(path("a b/c?.txt"), "/files/a%20b/c%3F.txt");
  assert.equal(path(""), "/files/");
});

Deno.test("buildRequest() refuses empty parameters, `.` and `..`", () => {
  const problems = (id: string) =>
    buildRequest(route("/o/:id"), draft({ params: { id } })).problems;

  assert.deepEqual(problems(""), { "params.id": "is required" });
  assert.deepEqual(problems(".."), { "params.id": "would be taken for a step in the path" });
  assert.deepEqual(buildRequest(route("/:constructor"), draft()).problems, {
    "params.constructor": "is required",
  });
});

Deno.test("buildRequest() encodes literal segments that are encoded or not", () => {
  for (const written of ["/a%20b", "/50%", "/ü", "/a:b"]) {
    const table = new RouteTable<string>();
    table.add({ id: "1", method: "GET", path: written, value: "found" } as never);

    assert.ok(table.find("GET", buildRequest(route(written), draft()).path), written);
  }
});

Deno.test("buildRequest() encodes the query, and leaves out pairs without a name", () => {
  const query = [{ name: "q", value: "a&b=c" }, { name: "", value: "x" }, { name: "q", value: "" }];

  assert.equal(buildRequest(route("/a"), draft({ query })).path, "/a?q=a%26b%3Dc&q=");
});

Deno.test("buildRequest() sets the content type of JSON, unless a header does", () => {
  const post = (body: string, headers: RequestDraft["headers"] = []) =>
    buildRequest(route("/a", "POST"), draft({ method: "POST", body, headers }));

  assert.deepEqual(post('{"a":1}').headers, [["content-type", "application/json"]]);
  const typed = post("a,b", [{ name: "Content-Type", value: " text/csv " }]);
  assert.deepEqual(typed.headers, [["content-type", "text/csv"]]);
  assert.deepEqual(typed.problems, {});
  assert.equal(typed.body, "a,b");
});

Deno.test("buildRequest() reports invalid JSON bodies", () => {
  const problem = (method: string, body: string) =>
    buildRequest(route("/a", method), draft({ method, body })).problems["body"];

  assert.match(problem("POST", "{a:1}")!, /^is not JSON/);
  assert.equal(problem("GET", "{}"), "cannot be sent with GET");
  assert.equal(problem("POST", ""), undefined);
});

Deno.test("buildRequest() reports invalid headers by index", () => {
  const headers = [
    { name: "x-ok", value: "1" },
    { name: "", value: "" },
    { name: "x y", value: "1" },
    { name: "Host", value: "evil" },
    { name: "x-line", value: "a\r\nb: c" },
    { name: "x-wide", value: "😀" },
  ];

  const built = buildRequest(route("/a"), draft({ headers }));

  assert.deepEqual(built.headers, [["x-ok", "1"]]);
  assert.deepEqual(built.problems, {
    "headers.2": "is not the name of a header",
    "headers.3": "is set by itself",
    "headers.4": "has characters that a header cannot hold",
    "headers.5": "has characters that a header cannot hold",
  });
});

Deno.test("draftOfCall() takes a payload of an HTTP handler apart", () => {
  const payload = {
    path_params: { id: 7, "*": "a/b" },
    query_params: { dry: "1", deep: { not: "plain" } },
    headers: { "x-a": "b" },
    body: { n: 1 },
  };

  assert.deepEqual(draftOfCall(route("/o/:id/*", "PUT"), payload), {
    method: "PUT",
    params: { id: "7", "*": "a/b" },
    query: [{ name: "dry", value: "1" }],
    headers: [{ name: "x-a", value: "b" }],
    body: '{"n":1}',
  });
});

Deno.test("draftOfCall() uses any other payload as the body, and names as parameters", () => {
  const sent = draftOfCall(route("/o/:id", "POST"), { n: 1 });

  assert.deepEqual([sent.body, sent.params], ['{"n":1}', { id: "ID" }]);
  assert.equal(draftOfCall(route("/o", "GET"), { n: 1 }).body, "");
  assert.equal(draftOfCall(route("/o", "POST"), undefined).body, "");
});
