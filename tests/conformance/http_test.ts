/**
 * PROTOCOL 6 from both ends: a client that sends HTTP requests, a worker that receives calls.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { OP } from "../fakes/raw_ws_client.ts";
import { proveOnWire, type Wire, type WireClient } from "../fakes/wire_engine.ts";

/** What a client got. */
interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function ask({ httpUrl }: Wire, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(httpUrl + path, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function triggerOf(id: string, config: JsonObject, function_id = id): JsonObject {
  return { type: "registertrigger", id, trigger_type: "http", function_id, config };
}

/** A worker with routes; each function has the name of its trigger. */
async function serve(wire: Wire, routes: Record<string, JsonObject>): Promise<WireClient> {
  const worker = await wire.open();
  await worker.offer(...Object.keys(routes));
  for (const [id, config] of Object.entries(routes)) await worker.send(triggerOf(id, config));
  await worker.receivesNothing();
  return worker;
}

/** Sends a request, and answers the call it becomes. */
async function exchange(
  wire: Wire,
  worker: WireClient,
  path: string,
  outcome: JsonObject,
  init?: RequestInit,
): Promise<{ answer: Answer; call: JsonObject }> {
  const asked = ask(wire, path, init);
  const call = await worker.run(outcome);
  return { answer: await asked, call };
}

function post(body: BodyInit, type = "application/json"): RequestInit {
  return { method: "POST", body, headers: { "content-type": type } };
}

proveOnWire("what the handler of a route receives", {
  "the request, with the path as it was registered, and 30 s or less": async (wire) => {
    const worker = await serve(wire, {
      "got::post": { api_path: "/got/:id", http_method: "post" },
    });

    const init = {
      ...post('{"qty":3}'),
      headers: { "Content-Type": "application/json", "X-A": "b" },
    };
    const { call } = await exchange(
      wire,
      worker,
      "/got/4%202?dry=0&x=%C3%BC&dry=1",
      { result: {} },
      init,
    );

    const { headers, request_body: _, response: __, ...rest } = call.data as Record<
      string,
      JsonObject
    >;
    assert.deepEqual(rest, {
      path: "/got/:id",
      method: "POST",
      path_params: { id: "4 2" },
      query_params: { dry: "1", x: "ü" },
      query_params_all: { dry: ["0", "1"], x: ["ü"] },
      query_string: "dry=0&x=%C3%BC&dry=1",
      body: { qty: 3 },
      trigger: { type: "http", path: "/got/:id", method: "POST" },
    });
    assert.equal(headers!["content-type"], "application/json");
    assert.equal(headers!["x-a"], "b");
    assert.equal(headers!.host, new URL(wire.httpUrl).host);
    assert.ok(call.timeout_ms as number >= 1 && call.timeout_ms as number <= 3_000);
  },

  "`metadata` of the trigger, and its namespace": async (wire) => {
    const worker = await wire.open();
    await worker.offer({ id: "got::meta", namespace: "shop" });
    const trigger = triggerOf("got::meta", { api_path: "got-meta" });
    await worker.send({ ...trigger, namespace: "shop", metadata: { m: [1] } });
    await worker.receivesNothing();

    const { call, answer } = await exchange(wire, worker, "/got-meta", { result: {} });

    assert.deepEqual([call.metadata, call.namespace, answer.status], [{ m: [1] }, "shop", 200]);
  },

  "a body by its content type": async (wire) => {
    const route = { api_path: "/got-body", http_method: "POST" };
    const worker = await serve(wire, { "got::body": route });
    const bodyOf = async (init: RequestInit) => {
      const { call } = await exchange(wire, worker, "/got-body", { result: {} }, init);
      return (call.data as JsonObject).body;
    };

    assert.deepEqual(await bodyOf(post("[1]", "application/json; charset=utf-8")), [1]);
    assert.equal(await bodyOf(post('"x"')), "x");
    assert.equal(await bodyOf(post("")), null);
    assert.equal(await bodyOf({ method: "POST" }), null);
    assert.deepEqual(await bodyOf(post("[1]", "application/problem+json")), [1]);
    assert.equal(await bodyOf(post('{"a":1}', "text/plain")), '{"a":1}');
    assert.equal(await bodyOf(post("<a/>", "application/xml")), "<a/>");
    const form = "application/x-www-form-urlencoded";
    assert.deepEqual(await bodyOf(post("a=1&b=2&a=3", form)), { a: ["1", "3"], b: "2" });
    const parts = new FormData();
    parts.append("a", "x");
    parts.append("f", new File(["hi"], "dir/../f.txt", { type: "text/plain" }));
    assert.deepEqual(await bodyOf({ method: "POST", body: parts }), {
      a: "x",
      f: { filename: "f.txt", content_type: "text/plain", data_base64: "aGk=" },
    });
  },

  "with `raw_body` the bytes as well, of any type": async (wire) => {
    const route = { api_path: "/got-raw", http_method: "POST", raw_body: true };
    const worker = await serve(wire, { "got::raw": route });
    const partsOf = async (init: RequestInit) => {
      const { call } = await exchange(wire, worker, "/got-raw", { result: {} }, init);
      const { body, raw_body_base64 } = call.data as JsonObject;
      return [body, raw_body_base64];
    };

    assert.deepEqual(await partsOf(post('{ "a":1 }')), [{ a: 1 }, btoa('{ "a":1 }')]);
    assert.deepEqual(await partsOf(post("\xff\0", "image/png")), [null, "w78A"]);
  },

  "content of another type is null, and a channel with the bytes": async (wire) => {
    const route = { "got::none": { api_path: "/got-none", http_method: "POST" } };
    const worker = await serve(wire, route);

    const asked = ask(wire, "/got-none", post("\x01\x02", "image/png"));
    const call = await worker.receive();
    const { body, request_body } = call.data as JsonObject;
    const { channel_id, access_key, direction } = request_body as JsonObject;
    const path = `/ws/channels/${channel_id}?key=${access_key}&dir=${direction}`;
    const reader = await wire.ask({ path });

    assert.equal(body, null);
    assert.deepEqual((await reader.next())?.payload, Uint8Array.of(1, 2));
    assert.equal((await reader.nextClose())?.code, 1000);
    await worker.answer(call, { result: {} });
    assert.equal((await asked).status, 200);
    const broken = post("--x--", "multipart/form-data; boundary=y");
    assert.equal((await ask(wire, "/got-none", broken)).status, 400);
  },

  "a handler writes the response on a channel, after a result without a value": async (wire) => {
    const worker = await serve(wire, { "got::stream": { api_path: "/got-stream" } });

    const asked = fetch(`${wire.httpUrl}/got-stream`);
    const call = await worker.run({});
    const { channel_id, access_key, direction } = (call.data as JsonObject).response as JsonObject;
    const path = `/ws/channels/${channel_id}?key=${access_key}&dir=${direction}`;
    const writer = await wire.ask({ path });
    await writer.text('{"type":"set_status","status_code":201}');
    await writer.text('{"type":"set_headers","headers":{"content-type":"text/plain"}}');
    await writer.frame(OP.binary, new TextEncoder().encode("streamed"));
    await writer.close(1000, "stream_complete");

    const response = await asked;
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("content-type"), "text/plain");
    assert.equal(await response.text(), "streamed");
  },

  "parts of the path, decoded after they were split": async (wire) => {
    const worker = await serve(wire, {
      "way::all": { api_path: "/way/*" },
      "way::one": { api_path: "/way/:a/:b" },
      "way::two": { api_path: "/way/x/:b" },
      "way::end": { api_path: "/way/x/y" },
      "way::slash": { api_path: "/way/x/y/" },
    });
    const seen = [];

    for (const path of ["/x/y", "/x/y/", "/x/z", "/a%2Fb/%zz", "/a/b/c%20d/e"]) {
      const { call } = await exchange(wire, worker, `/way${path}`, { result: {} });
      seen.push([call.function_id, (call.data as JsonObject).path_params]);
    }

    assert.deepEqual(seen, [
      ["way::end", {}],
      ["way::slash", {}],
      ["way::two", { b: "z" }],
      ["way::one", { a: "a/b", b: "%zz" }],
      ["way::all", { "*": "a/b/c d/e" }],
    ]);
  },

  "HEAD on a GET route is served by it, without the body": async (wire) => {
    const worker = await serve(wire, { "got::head": { api_path: "/got-head" } });
    const result = { headers: { "content-type": "text/plain", "x-a": "b" }, body: "hello" };

    const { answer } = await exchange(wire, worker, "/got-head", { result }, { method: "HEAD" });

    assert.deepEqual([answer.status, answer.text, answer.headers.get("x-a")], [200, "", "b"]);
  },
});

proveOnWire("routes", {
  "no route is 404, another method 405 with `Allow` and nothing else": async (wire) => {
    await serve(wire, {
      "r::a": { api_path: "/r/a" },
      "r::b": { api_path: "/r/a", http_method: "PUT" },
    });

    const none = await ask(wire, "/r/none");
    const method = await ask(wire, "/r/a", { method: "DELETE" });

    assert.equal(none.status, 404);
    assert.deepEqual(JSON.parse(none.text), { error: { code: "NOT_FOUND", message: "Not Found" } });
    assert.deepEqual([method.status, method.text], [405, ""]);
    const allowed = method.headers.get("allow")!.split(", ").sort();
    assert.ok(allowed.includes("GET") && allowed.includes("PUT") && !allowed.includes("DELETE"));
  },

  "the same method and path replaces, and falls back when the new one ends": async (wire) => {
    const old = await serve(wire, { "same::old": { api_path: "/same" } });
    const young = await serve(wire, { "same::new": { api_path: "same" } });

    const { call: first } = await exchange(wire, young, "/same", { result: {} });
    await young.send({ type: "unregistertrigger", id: "same::new" });
    await young.receivesNothing();
    const { call: second } = await exchange(wire, old, "/same", { result: {} });

    assert.deepEqual([first.function_id, second.function_id], ["same::new", "same::old"]);
    assert.equal((second.data as JsonObject).path, "/same");
  },

  "one shape with other names is refused, and the first keeps serving": async (wire) => {
    const first = await serve(wire, { "shape::id": { api_path: "/shape/:id" } });
    const second = await wire.open();

    await second.send(triggerOf("shape::name", { api_path: "/shape/:name" }));

    const { error, ...result } = await second.receive() as { error: JsonObject } & JsonObject;
    assert.deepEqual(result, {
      type: "triggerregistrationresult",
      id: "shape::name",
      trigger_type: "http",
      function_id: "shape::name",
    });
    assert.equal(error.code, "trigger_registration_failed");
    assert.match(error.message as string, /conflicts with already-registered route/);
    const { answer } = await exchange(wire, first, "/shape/1", { result: {} });
    assert.equal(answer.status, 200);
  },

  "equal routes of two replicas survive the one that registered last": async (wire) => {
    const config = { api_path: "/replica" };
    const first = await serve(wire, { "replica::f": config });
    const last = await wire.open();
    await last.offer("replica::f");
    await last.send(triggerOf("another id", config, "replica::f"));
    await last.receivesNothing();

    await last[Symbol.asyncDispose]();

    const { answer } = await exchange(wire, first, "/replica", { result: {} });
    assert.equal(answer.status, 200);
  },

  "an invalid config is reported to its originator": async ({ open }) => {
    const client = await open();
    const wrong = [{}, { api_path: 5 }, { api_path: "/a/*/b" }, {
      api_path: "/a",
      http_method: "BREW",
    }];

    for (const config of wrong) {
      await client.send(triggerOf("wrong::f", config));
      const { type, error } = await client.receive() as { error: JsonObject } & JsonObject;
      assert.equal(type, "triggerregistrationresult");
      assert.equal(error.code, "trigger_registration_failed", JSON.stringify(config));
    }
  },

  "any OPTIONS is 200 with a CORS answer for allowed origins": async (wire) => {
    const askAs = (origin: string) => {
      const headers = { origin, "access-control-request-method": "PUT" };
      return ask(wire, "/anywhere", { method: "OPTIONS", headers });
    };

    const own = await askAs("http://localhost:8080");
    const other = await askAs("https://a.example");

    assert.deepEqual([own.status, other.status], [200, 200]);
    assert.equal(own.headers.get("access-control-allow-origin"), "http://localhost:8080");
    assert.match(own.headers.get("access-control-allow-methods") ?? "", /PUT/);
    assert.equal(other.headers.get("access-control-allow-origin"), null);
  },
});

proveOnWire("responses made from what a handler returned", {
  "status, headers and body": async (wire) => {
    const worker = await serve(wire, { "made::f": { api_path: "/made" } });
    const html = { "content-type": "text/html" };
    const json = "application/json";
    const cases: [Json, number, string | null, string][] = [
      [{}, 200, json, "{}"],
      [5, 200, json, "5"],
      ["text", 200, "text/plain; charset=utf-8", "text"],
      [[1], 200, json, "[1]"],
      [{ hello: 1 }, 200, json, '{"hello":1}'],
      [{ body_base64: "aGk=" }, 200, "application/octet-stream", "hi"],
      [{ headers: html, body_base64: "aGk=" }, 200, "text/html", "hi"],
      [{ status_code: 201, body: { a: null } }, 201, json, '{"a":null}'],
      [{ statusCode: 202, body: "quoted" }, 202, json, '"quoted"'],
      [{ status_code: 9999, body: null }, 200, json, "null"],
      [{ headers: html, body: "<b>" }, 200, "text/html", "<b>"],
      [{ headers: html, body: null }, 200, "text/html", ""],
      [{ headers: html, body: [1] }, 200, "text/html", "[1]"],
      [{ headers: ["Content-Type: text/css", "bad"], body: "x" }, 200, "text/css", "x"],
      [{ headers: { "Content-Type": json }, body: { n: 1 } }, 200, json, '{"n":1}'],
      [{ headers: { "x y": "1", "x-n": 5 }, body: 0 }, 200, json, "0"],
    ];

    for (const [result, status, type, text] of cases) {
      const { answer } = await exchange(wire, worker, "/made", { result });
      const seen = [answer.status, answer.headers.get("content-type"), answer.text];
      assert.deepEqual(seen, [status, type, text], JSON.stringify(result));
    }
  },

  "each value of a header that is an array": async (wire) => {
    const worker = await serve(wire, { "cookies::f": { api_path: "/cookies" } });
    const headers = { "set-cookie": ["a=1", "b=2"] };

    const { answer } = await exchange(wire, worker, "/cookies", { result: { headers } });

    assert.deepEqual(answer.headers.getSetCookie(), ["a=1", "b=2"]);
  },

  "a handler that returns nothing is awaited until the timeout": async (wire) => {
    const worker = await serve(wire, { "nothing::f": { api_path: "/nothing" } });

    const { answer } = await exchange(wire, worker, "/nothing", { result: null });

    assert.deepEqual([answer.status, answer.text], [504, ""]);
  },
});
