/**
 * The payload of a handler, refused bodies, and the limits of running requests.
 *
 * @module
 */
import assert from "node:assert/strict";
import { UNLIMITED_MEMORY } from "../../engine/ports/memory.ts";
import { JsonText } from "../../sdk/typescript/json_text.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { failure, fakeHttp, json, servedRequest, settle } from "../../tests/fakes/fake_http.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { MEMORY_WAIT_MS } from "../kit/held_memory.ts";
import {
  CallSignal,
  cutTarget,
  endPayload,
  type PayloadParts,
  readQuery,
  RunningRequests,
  startPayload,
} from "./request.ts";

for (
  const [target, path, query] of [
    ["/a/b?c=1&d=/x", "/a/b", "c=1&d=/x"],
    ["/", "/", ""],
    ["/a?", "/a", ""],
    ["/a?b?c", "/a", "b?c"],
    ["/a/../b//c/%2e", "/a/../b//c/%2e", ""],
    ["/a#/b?c", "/a", ""],
    ["/a?b#c?d", "/a", "b"],
    ["", "", ""],
    ["#/a", "", ""],
  ] as const
) {
  Deno.test(`cutTarget() cuts ${target} without changing a character`, () => {
    assert.deepEqual(cutTarget(target), { path, query });
  });
}

Deno.test("readQuery() decodes, takes the last of equal keys, and survives broken escapes", () => {
  assert.deepEqual(readQuery("a=1&a=2&b=x+y%21&c&=d&e=%zz&__proto__=p").last, {
    a: "2",
    b: "x y!",
    c: "",
    "": "d",
    e: "%zz",
    ["__proto__"]: "p",
  });
  assert.deepEqual(readQuery("?a=1&a=2").last, { "?a": "1", a: "2" });
});

Deno.test("readQuery() has every value of every key if one repeats", () => {
  assert.equal(readQuery("a=1&b=2").all, undefined);
  assert.equal(readQuery("").all, undefined);
  const { all } = readQuery("a=1&b=2&a=3&__proto__=p");
  assert.deepEqual(all, { a: ["1", "3"], b: ["2"], ["__proto__"]: ["p"] });
});

/** Of a request to the route `GET /"a"/:id`. */
const PARTS: PayloadParts = {
  method: "HEAD",
  match: { route: { id: "r", method: "GET", path: '/"a"/:id', value: null }, params: { id: 'x"' } },
  query: "",
  headers: '{"host":"a"}',
  body: null,
  rawBody: undefined,
};
const PAYLOAD = {
  path: '/"a"/:id',
  method: "HEAD",
  path_params: { id: 'x"' },
  query_params: {},
  query_string: "",
  headers: { host: "a" },
  trigger: { type: "http", path: '/"a"/:id', method: "GET" },
  body: null,
};

for (
  const [name, parts, expected] of [
    ["nothing more", {}, {}],
    ["a query", { query: 'a="&b' }, { query_string: 'a="&b', query_params: { a: '"', b: "" } }],
    ["a repeated key", { query: "a=1&a=2" }, {
      query_string: "a=1&a=2",
      query_params: { a: "2" },
      query_params_all: { a: ["1", "2"] },
    }],
    ["a text as its body", { body: 'a"\n' }, { body: 'a"\n' }],
    ["a form as its body", { body: { a: ["b"] } }, { body: { a: ["b"] } }],
    ["JSON and its bytes", { body: new JsonText(" [1]\n"), rawBody: "IFsxXQo=" }, {
      body: [1],
      raw_body_base64: "IFsxXQo=",
    }],
  ] as [string, Partial<PayloadParts>, JsonObject][]
) {
  Deno.test(`the payload of a request with ${name} is JSON of all its members`, () => {
    const start = startPayload({ ...PARTS, ...parts });

    assert.deepEqual(JSON.parse(endPayload(start, undefined, "").text), {
      ...PAYLOAD,
      ...expected,
    });
    const context = { user: 1 };
    const more = ',"response":{"channel_id":"c"}';
    assert.deepEqual(JSON.parse(endPayload(start, context, more).text), {
      ...PAYLOAD,
      ...expected,
      context,
      response: { channel_id: "c" },
    });
  });
}

Deno.test("startPayload() changes no character of a JSON body", () => {
  const body = new JsonText('{"a": 12345678901234567890, "a": 1.00, "b": "\\u0041"}');

  assert.ok(startPayload({ ...PARTS, body }).endsWith(`,"body":${body.text}`));
});

Deno.test("endPayload() refuses a context that no payload can hold", () => {
  const context = JSON.parse(`{"a":${"[".repeat(127)}${"]".repeat(127)}}`);

  assert.throws(() => endPayload(startPayload(PARTS), context, ""), {
    code: "serialization_error",
  });
});

Deno.test("A client that goes away cancels the call of its handler", async () => {
  let signal: CallRequest<Json>["signal"];
  const { route, fetch, clock, running } = fakeHttp({}, {
    f: (request) =>
      new Promise((_, reject) => {
        signal = request.signal;
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });
  await settle();
  clock.tick(100);

  client.abort();
  const response = await answered;

  assert.equal(signal!.aborted, true);
  assert.equal(response.status, 499);
  assert.equal(running.size, 0);
});

Deno.test("a body that never ends is answered at the timeout", async () => {
  const { route, fetch, clock } = fakeHttp({ timeout_ms: 1_000 }, { f: () => ({}) });
  route("POST /f", "f");
  const body = new ReadableStream<Uint8Array>({});
  const answered = fetch("POST /f", { body });

  clock.tick(1_100);

  assert.equal((await answered).status, 504);
});

Deno.test("Ten requests over the limit are answered with 429, and room comes back", async () => {
  const open: (() => void)[] = [];
  const { route, fetch, running } = fakeHttp({ concurrency_max: 5 }, {
    f: () => new Promise((resolve) => open.push(() => resolve({}))),
  });
  route("GET /f", "f");

  const answers = Array.from({ length: 15 }, () => fetch("GET /f"));
  const refused = await Promise.all(answers.slice(5));

  assert.equal(running.size, 5);
  for (const response of refused) {
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("retry-after"), "1");
    assert.equal((await response.json()).error.code, "overloaded");
  }
  open.forEach((finish) => finish());
  for (const response of await Promise.all(answers.slice(0, 5))) assert.equal(response.status, 200);
  const later = fetch("GET /f");
  await settle();
  open[5]!();
  assert.equal((await later).status, 200);
});

Deno.test("A client that had left before the request was read cancels the call as well", async () => {
  const { route, fetch, clock } = fakeHttp({}, {
    f: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
  });
  route("GET /f", "f");
  const client = new AbortController();
  const answered = fetch("GET /f", { signal: client.signal });

  client.abort();
  clock.tick(100);

  assert.equal((await answered).status, 499);
});

Deno.test("A request is not touched by the end of the one before", async () => {
  const { route, fetch, clock } = fakeHttp({}, {
    stuck: ({ signal }) =>
      new Promise((_, reject) => {
        signal!.addEventListener("abort", () => reject(failure("cancelled", "gone")));
      }),
    f: ({ signal }) => ({ body: signal!.aborted }),
  });
  route("GET /stuck", "stuck");
  route("GET /f", "f");
  const client = new AbortController();
  const left = fetch("GET /stuck", { signal: client.signal });
  await settle();
  clock.tick(100);
  client.abort();
  await left;

  for (let i = 0; i < 3; i++) assert.equal(await (await fetch("GET /f")).json(), false);
});

Deno.test("RunningRequests.remove() removes that request only, and only once", () => {
  const requests = new RunningRequests({
    clock: new FakeClock(),
    timeoutMs: 1_000,
    max: 10,
    memory: UNLIMITED_MEMORY,
  });
  const [a, b, c] = ["a", "b", "c"].map((path) =>
    requests.add(servedRequest(new Request(`http://127.0.0.1/${path}`)))!
  );

  for (const running of [a!, a!, b!]) requests.remove(running);
  const size = requests.size;
  requests.stop();

  assert.equal(size, 1);
  assert.deepEqual([a!.stopReason, b!.stopReason, c!.stopReason], [
    undefined,
    undefined,
    "stopped",
  ]);
});

Deno.test("CallSignal calls every listener once, in order, but those that were taken off", () => {
  const signal = new CallSignal();
  const heard: string[] = [];
  const [a, b, c] = ["a", "b", "c"].map((name) => () => {
    heard.push(`${name} ${signal.aborted} ${signal.reason}`);
    signal.removeEventListener("abort", c!);
  });
  for (const each of [a!, b!, c!]) signal.addEventListener("abort", each);
  signal.removeEventListener("abort", b!);
  signal.removeEventListener("abort", b!);

  signal.abort("gone");
  signal.abort("again");
  signal.addEventListener("abort", a!);

  assert.deepEqual(heard, ["a true gone", "c true gone"]);
  assert.equal(signal.reason, "gone");
});

Deno.test("CallSignal cancels a call of the SDK, and its handler hears why", async () => {
  await using local = new LocalEngine();
  const callee = await local.connect("callee");
  const caller = await local.connect("caller");
  let reason: unknown;
  callee.registerFunction("f", (_payload, _metadata, { signal }) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(reason = signal.reason));
    }));
  await local.settle();
  const signal = new CallSignal();
  const called = caller.trigger({ function_id: "f", signal });
  const ended = assert.rejects(called, { code: "cancelled" });
  await local.settle();

  signal.abort(new Error("client gone"));
  await ended;
  await local.settle();

  assert.match(String(reason), /client gone/);
});

/** A body that arrives when the test says so. */
function slowBody() {
  let stream: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (own) => void (stream = own) });
  return {
    init: { ...json(""), body },
    send: (text: string) => stream.enqueue(new TextEncoder().encode(text)),
    end: () => stream.close(),
  };
}

Deno.test("a request whose body still arrives takes no place of the running ones", async () => {
  const { route, fetch, running } = fakeHttp({ concurrency_max: 1 }, { f: () => ({}) });
  route("POST /f", "f");
  const slow = [slowBody(), slowBody(), slowBody()];
  const answers = slow.map(({ init }) => fetch("POST /f", init));
  await settle();
  assert.deepEqual([running.size, running.running], [3, 0]);

  assert.equal((await fetch("POST /f", json("{}"))).status, 200);
  for (const [i, each] of slow.entries()) {
    each.send("{}");
    each.end();
    assert.equal((await answers[i]!).status, 200);
  }
  assert.deepEqual([running.size, running.running], [0, 0]);
});

Deno.test("a body that is there when all places are taken is answered with 429", async () => {
  const finish = Promise.withResolvers<Json>();
  const { route, fetch, memory } = fakeHttp({ concurrency_max: 1 }, { f: () => finish.promise });
  route("POST /f", "f");
  const slow = slowBody();
  const late = fetch("POST /f", slow.init);
  await settle();
  const running = fetch("POST /f", json("{}"));
  await settle();

  slow.send(JSON.stringify("x".repeat(100_000)));
  slow.end();

  assert.equal((await late).status, 429);
  assert.equal(memory.usedBytes, 0);
  finish.resolve({});
  assert.equal((await running).status, 200);
});

Deno.test("one client runs seven eighths of the requests at most", () => {
  const requests = new RunningRequests({
    clock: new FakeClock(),
    timeoutMs: 1_000,
    max: 16,
    memory: UNLIMITED_MEMORY,
  });
  const [one, other] = [1, 2].map((n) => ({ name: `${n}`, sockets: 1, running: 0 }));
  const add = (client: typeof one) =>
    requests.add({ ...servedRequest(new Request("http://a/")), client: client! });

  const own = Array.from({ length: 20 }, () => add(one)).filter((each) => each);
  const others = Array.from({ length: 20 }, () => add(other)).filter((each) => each);

  assert.deepEqual([own.length, others.length], [14, 2]);
  for (const running of [...own, ...others]) requests.remove(running!);
  assert.deepEqual([one!.running, other!.running, requests.running], [0, 0, 0]);
  requests.stop();
});

Deno.test("a body that does not fit into memory waits for a while, then is answered with 429", async () => {
  const finish = Promise.withResolvers<Json>();
  const { route, fetch, memory, clock } = fakeHttp({ body_bytes_max: 64_000_000 }, {
    f: () => finish.promise,
  });
  route("POST /f", "f");
  const left = memory.limitBytes - 1_000_000;
  memory.take("buffers", left);

  const response = fetch("POST /f", json(JSON.stringify("x".repeat(2_000_000))));
  await settle();
  clock.tick(MEMORY_WAIT_MS);

  assert.equal((await response).status, 429);
  assert.equal((await response).headers.get("retry-after"), "1");
  assert.match(await (await response).text(), /no room for the request body/);
  memory.release("buffers", left);
  assert.equal(memory.usedBytes, 0);
  finish.resolve({});
});

Deno.test("the memory of a body is returned when its request ends, however it ends", async () => {
  const { route, fetch, memory } = fakeHttp({}, {
    f: () => ({ body: memory.used("bodies") }),
    g: () => {
      throw failure("boom", "no");
    },
  });
  route("POST /f", "f");
  route("POST /g", "g");
  const body = JSON.stringify("x".repeat(1_000_000));

  const used = await (await fetch("POST /f", json(body))).json();
  await fetch("POST /g", json(body));
  await fetch("POST /f", json(body.slice(1)));

  assert.ok(used >= 2_000_000, `${used}`);
  assert.equal(memory.usedBytes, 0);
});

Deno.test("more query parameters than a request may have are answered with 400", async () => {
  const { route, fetch, calls } = fakeHttp({}, { f: () => ({}) });
  route("GET /f", "f");

  const most = await fetch(`GET /f?${Array(1_000).fill("a").join("&")}`);
  const more = await fetch(`GET /f?${Array(1_001).fill("a").join("&")}`);

  assert.deepEqual([most.status, more.status], [200, 400]);
  assert.match(await more.text(), /may have at most 1000 query parameters/);
  assert.equal(calls.length, 1);
});
