/**
 * A request is a span whose trace goes on with its calls and back to the client.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EndedSpan, TraceSettings } from "../../engine/ports/telemetry.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { type FakeFunction, fakeHttp } from "../../tests/fakes/fake_http.ts";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const PARENT = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const SETTINGS: TraceSettings = {
  enabled: true,
  ratio: 1,
  rules: [],
  memory_bytes: 1024 * 1024,
  payload_chars: 100,
};

/** A route `GET /orders/:id` in an engine that traces. */
function setup(run: FakeFunction, settings: Partial<TraceSettings> = {}, config: Json = {}) {
  const it = fakeHttp(config, { "orders::get": run });
  it.traces.configure({ ...SETTINGS, ...settings });
  const spans: EndedSpan[] = [];
  it.traces.spans.listen((span) => void spans.push(span));
  it.route("GET orders/:id", "orders::get");
  return { ...it, spans };
}

Deno.test("A request is a span named by its route, and its call and answer carry the trace", async () => {
  const it = setup(() => ({ body: "ok" }));

  const response = await it.fetch("GET /orders/7?a=1");

  const [span] = it.spans;
  assert.equal(span!.name, "GET /orders/:id");
  assert.equal(span!.service, "engine-http");
  assert.equal(span!.error, null);
  assert.equal(span!.parent, null);
  assert.equal(response.headers.get("traceparent"), span!.traceparent);
  assert.equal(it.calls[0]!.traceparent, span!.traceparent);
  assert.deepEqual(span!.attributes, {
    "engine.kind": "http",
    "http.request.method": "GET",
    "http.route": "orders/:id",
    "url.path": "/orders/7",
    "http.response.status_code": 200,
    "http.function_id": "orders::get",
  });
});

Deno.test("A client's trace goes on, and its baggage travels with the calls", async () => {
  const it = setup(() => ({}));

  await it.fetch("GET /orders/7", { headers: { traceparent: PARENT, baggage: "tenant=acme" } });

  const [call] = it.calls;
  assert.equal(call!.traceparent!.slice(3, 35), TRACE_ID);
  assert.notEqual(call!.traceparent, PARENT);
  assert.equal(call!.baggage, "tenant=acme");
  assert.equal(it.spans[0]!.parent, PARENT);
});

Deno.test("A failure names its code, and the log names the trace", async () => {
  const it = setup(() => {
    throw Object.assign(new Error("no"), { code: "broken" });
  });

  const response = await it.fetch("GET /orders/7");

  const [span] = it.spans;
  assert.equal(response.status, 500);
  assert.equal(span!.error, "HTTP 500");
  assert.equal(span!.attributes["engine.error_code"], "invocation_error");
  assert.equal(it.lines[0]!.fields.trace_id, span!.traceparent.slice(3, 35));
});

Deno.test("A request takes as long as its handler", async () => {
  const it = setup(() => {
    it.clock.tick(250);
    return {};
  });

  await it.fetch("GET /orders/7");

  const [{ start_ms, end_ms }] = it.spans as [EndedSpan];
  assert.equal(end_ms - start_ms, 250);
  assert.equal(end_ms, it.clock.wall());
});

Deno.test("An unsampled trace goes on and is not kept", async () => {
  const it = setup(() => ({}));

  await it.fetch("GET /orders/7", { headers: { traceparent: PARENT.replace(/01$/, "00") } });

  assert.deepEqual(it.spans, []);
  assert.match(it.calls[0]!.traceparent!, /-00$/);
});

Deno.test("Where nothing is traced there is no trace, but a client's own goes through", async () => {
  const it = setup(() => ({}), { enabled: false });

  const plain = await it.fetch("GET /orders/7");
  await it.fetch("GET /orders/7", { headers: { traceparent: PARENT } });

  assert.equal(plain.headers.get("traceparent"), null);
  assert.deepEqual(it.calls.map(({ traceparent }) => traceparent), [undefined, PARENT]);
  assert.deepEqual(it.spans, []);
});

for (const traceparent of ["", "nonsense", "00-0-0-01", PARENT.toUpperCase(), `${PARENT}-more`]) {
  Deno.test(`A traceparent ${JSON.stringify(traceparent)} begins a trace of its own`, async () => {
    const it = setup(() => ({}));

    await it.fetch("GET /orders/7", { headers: { traceparent } });

    assert.match(it.calls[0]!.traceparent!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.notEqual(it.calls[0]!.traceparent!.slice(3, 35), TRACE_ID);
  });
}

Deno.test("A traceparent longer than any that will be is no parent, and a later version's is", async () => {
  const it = setup(() => ({}));
  const later = PARENT.replace(/^00/, "01") + "-more";

  await it.fetch("GET /orders/7", { headers: { traceparent: later } });
  await it.fetch("GET /orders/7", { headers: { traceparent: `${later}${"x".repeat(300)}` } });

  assert.deepEqual(it.spans.map(({ parent }) => parent), [later, null]);
  const traces = it.spans.map(({ traceparent }) => traceparent.slice(3, 35));
  assert.equal(traces[0], TRACE_ID);
  assert.notEqual(traces[1], TRACE_ID);
});

Deno.test("A kept span says its parts as often as it is asked", async () => {
  const it = setup(() => {
    throw Object.assign(new Error("no"), { code: "broken" });
  });

  await it.fetch("GET /orders/a-path-that-is-long?and=a-query");

  const [span] = it.spans;
  assert.equal(span!.attributes["url.path"], "/orders/a-path-that-is-long");
  assert.deepEqual(span!.attributes, span!.attributes);
  assert.equal(span!.error, "HTTP 500");
});

Deno.test("Baggage that is longer than W3C asks for is left behind", async () => {
  const it = setup(() => ({}));

  await it.fetch("GET /orders/7", { headers: { baggage: `a=${"x".repeat(9_000)}` } });

  assert.equal(it.calls[0]!.baggage, undefined);
});

Deno.test("A handler's own traceparent is the one that goes out", async () => {
  const it = setup(() => ({ headers: { traceparent: PARENT }, body: 1 }));

  const response = await it.fetch("GET /orders/7");

  assert.equal(response.headers.get("traceparent"), PARENT);
});

Deno.test("The trace of an answer makes it no different for other origins", async () => {
  const it = setup(() => ({ body: "ok" }));

  const plain = await it.fetch("GET /orders/7");
  const page = await it.fetch("GET /orders/7", { headers: { origin: "https://a.example" } });

  const names = (response: Response) => [...response.headers.keys()];
  assert.deepEqual(names(plain), ["content-type", "traceparent"]);
  assert.deepEqual(names(page), ["content-type", "traceparent", "vary"]);
  assert.equal(await plain.text(), '"ok"');
});

Deno.test("A path without a route is no span", async () => {
  const it = setup(() => ({}));

  const response = await it.fetch("GET /nothing");

  assert.equal(response.status, 404);
  assert.equal(response.headers.get("traceparent"), null);
  assert.deepEqual(it.spans, []);
});

for (const fails of [false, true]) {
  const which = fails ? "fails" : "succeeds";
  Deno.test(`The size of the attributes of a request that ${which} is known without them`, async () => {
    const it = setup(() => {
      if (fails) throw Object.assign(new Error("no"), { code: "broken" });
      return {};
    });

    await it.fetch("GET /orders/7");

    const { attributes, attributeCount, attributeChars } = it.spans[0]!;
    const chars = Object.entries(attributes).map(([name, value]) =>
      name.length + (typeof value === "string" ? value.length : 8)
    );
    assert.equal(attributeCount, chars.length);
    assert.equal(attributeChars, chars.reduce((sum, each) => sum + each));
  });
}
