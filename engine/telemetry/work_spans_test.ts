/**
 * Trace ids for work that is no call.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { EndedSpan } from "../ports/telemetry.ts";
import { IdSource } from "./id_source.ts";
import { WorkSpans } from "./work_spans.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SAMPLED = `00-${TRACE}-00f067aa0ba902b7-01`;
const UNSAMPLED = `00-${TRACE}-00f067aa0ba902b7-00`;

function setup(isTracing = true, isChosen = true) {
  const operations: string[] = [];
  const spans = new WorkSpans({
    ids: new IdSource((bytes) => void crypto.getRandomValues(bytes)),
    isTracing: () => isTracing,
    isChosen: (operation) => {
      operations.push(operation);
      return isChosen;
    },
  });
  return { spans, operations };
}

function ended(traceparent: string): EndedSpan {
  const name = "GET /";
  const times = { start_ms: 1, end_ms: 2 };
  return {
    traceparent,
    parent: null,
    name,
    service: "http",
    ...times,
    error: null,
    attributes: {},
  };
}

Deno.test("WorkSpans.open() begins a trace, as its operation is sampled", () => {
  const { spans, operations } = setup();
  const first = spans.open(null, "GET /a");

  assert.match(first!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.match(setup(true, false).spans.open("nonsense", "GET /b")!, /-00$/);
  assert.deepEqual(operations, ["GET /a"]);
  assert.notEqual(spans.open(null, "GET /a"), first);
});

Deno.test("WorkSpans.open() goes on with a trace under a span of its own, and keeps its decision", () => {
  const { spans, operations } = setup(true, false);

  for (const parent of [SAMPLED, UNSAMPLED]) {
    const opened = spans.open(parent, "GET /")!;
    assert.deepEqual(opened.split("-")[1], TRACE);
    assert.equal(opened.slice(-2), parent.slice(-2));
    assert.notEqual(opened, parent);
  }
  assert.deepEqual(operations, [], "nobody decides anew");
});

Deno.test("WorkSpans.open() hands on what came when nothing is traced, if it is one", () => {
  const { spans } = setup(false);

  assert.equal(spans.open(SAMPLED, "GET /"), SAMPLED);
  assert.equal(spans.open("nonsense", "GET /"), null);
  assert.equal(spans.open(null, "GET /"), null);
});

Deno.test("WorkSpans.record() tells of sampled spans only, until nobody listens", () => {
  const { spans } = setup();
  const heard: string[] = [];
  const stop = spans.listen(({ traceparent }) => heard.push(traceparent));
  for (const traceparent of [SAMPLED, UNSAMPLED, "nonsense"]) spans.record(ended(traceparent));
  stop();
  spans.record(ended(SAMPLED));

  assert.deepEqual(heard, [SAMPLED]);
});
