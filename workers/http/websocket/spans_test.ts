import assert from "node:assert/strict";
import type { EndedSpan } from "../../../engine/ports/telemetry.ts";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { failure } from "../../../tests/fakes/fake_http.ts";
import { EventSpans } from "./spans.ts";

const SUBJECT = {
  event: "message",
  connection_id: "c1",
  path: "/chat/:room",
  function_id: "chat::message",
} as const;
const PARENT = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;

function setup(traceparent: string | null) {
  const clock = new FakeClock();
  const recorded: EndedSpan[] = [];
  const opened: [string | null, string][] = [];
  const spans = new EventSpans({
    open: (parent, name) => (opened.push([parent, name]), traceparent),
    record: (span) => void recorded.push(span),
  }, clock);
  return { clock, recorded, opened, spans };
}

Deno.test("An event is a span with the connection, whose call carries its trace", async () => {
  const own = `00-${"1".repeat(32)}-${"3".repeat(16)}-01`;
  const { spans, recorded, opened, clock } = setup(own);

  const result = await spans.run(SUBJECT, PARENT, (traceparent) => {
    clock.tick(5);
    return Promise.resolve(traceparent);
  });

  assert.equal(result, own);
  assert.deepEqual(opened, [[PARENT, "websocket /chat/:room message"]]);
  const [span] = recorded;
  assert.equal(span!.end_ms - span!.start_ms, 5);
  assert.deepEqual([span!.parent, span!.error, span!.service], [PARENT, null, "engine-http"]);
  assert.deepEqual(span!.attributes, {
    "engine.kind": "websocket",
    "websocket.event": "message",
    "websocket.connection_id": "c1",
    "http.route": "/chat/:room",
    "http.function_id": "chat::message",
  });
});

Deno.test("An event that fails is a span with the code, and its error goes on", async () => {
  const { spans, recorded } = setup(`00-${"1".repeat(32)}-${"3".repeat(16)}-01`);

  await assert.rejects(
    spans.run(SUBJECT, null, () => Promise.reject(failure("out_of_stock", "x"))),
    { code: "out_of_stock" },
  );
  await assert.rejects(spans.run(SUBJECT, null, () => Promise.reject(new Error("x"))));

  assert.deepEqual(recorded.map(({ error }) => error), ["out_of_stock", "invocation_error"]);
  assert.equal(recorded[0]!.attributes["engine.error_code"], "out_of_stock");
});

Deno.test("Nothing is recorded where tracing is off or the trace is not sampled", async () => {
  for (const traceparent of [null, PARENT, `00-${"1".repeat(32)}-${"3".repeat(16)}-00`]) {
    const { spans, recorded } = setup(traceparent);

    await spans.run(SUBJECT, PARENT, () => Promise.resolve());

    assert.deepEqual(recorded, []);
  }
});
