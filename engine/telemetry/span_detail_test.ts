/**
 * Details and endpoints of spans, and their memory.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  copyText,
  SpanDetail,
  SpanEndpoint,
  textBytes,
  TRACE_BAGGAGE_CHARS_MAX,
  TRACE_ERROR_CHARS_MAX,
  TRACE_NAME_CHARS_MAX,
  TRACE_STACK_CHARS_MAX,
} from "./span_detail.ts";

/** Memory that a setter adds to a detail. */
function costOfSetting(set: (detail: SpanDetail) => void): number {
  const detail = new SpanDetail();
  const before = detail.bytes;
  set(detail);
  return detail.bytes - before;
}

const TEXT = "x".repeat(500);

for (
  const [name, set] of [
    ["a payload", (detail: SpanDetail) => detail.setRequest(TEXT)],
    ["a result", (detail: SpanDetail) => detail.setResponse(TEXT)],
    ["baggage", (detail: SpanDetail) => detail.setBaggage(TEXT)],
    ["a caller's id", (detail: SpanDetail) => detail.setCallerId(TEXT)],
    ["an error", (detail: SpanDetail) => detail.setError({ code: "c", message: TEXT }, null)],
  ] as const
) {
  Deno.test(`SpanDetail.bytes counts ${name}`, () => assert.ok(costOfSetting(set) >= 500));
}

Deno.test("SpanDetail.bytes counts candidates", () => {
  const candidate = { worker_id: "w", name: "w", in_flight: 0, passed_over: null };

  assert.ok(costOfSetting((detail) => detail.setCandidates([candidate, candidate])) >= 500);
});

Deno.test("SpanDetail truncates ids, codes and messages, and omits long baggage", () => {
  const long = "x".repeat(100_000);
  const detail = new SpanDetail();
  detail.setCallerId(long);
  detail.setError({ code: long, message: long }, "the caller left");
  detail.setBaggage("x".repeat(TRACE_BAGGAGE_CHARS_MAX + 1));

  assert.equal(detail.callerId?.length, TRACE_NAME_CHARS_MAX);
  assert.equal(detail.error_code?.length, TRACE_NAME_CHARS_MAX);
  assert.equal(detail.error_message?.length, TRACE_ERROR_CHARS_MAX);
  assert.equal(detail.ended_by, "the caller left");
  assert.equal(detail.baggage, null);
});

Deno.test("SpanDetail.setCallerId() keeps the first id, and counts it once", () => {
  const detail = new SpanDetail();
  detail.setCallerId("i1");
  const { bytes } = detail;
  detail.setCallerId("i1");

  assert.deepEqual([detail.callerId, detail.bytes], ["i1", bytes]);
});

Deno.test("SpanEndpoint.bytes grows with the length of its name", () => {
  const [long, short] = ["x".repeat(100), ""].map((name) => new SpanEndpoint("w", name).bytes);

  assert.ok(long! >= short! + 100);
});

Deno.test("copyText() returns an equal text, truncated with a mark if it is too long", () => {
  assert.equal(copyText("abc"), "abc");
  assert.equal(copyText("abc", 3), "abc");
  assert.equal(copyText("abcd", 3), "ab…");
  assert.equal(copyText(""), "");
});

Deno.test("textBytes() counts two bytes per character if any character needs them", () => {
  assert.ok(textBytes("a".repeat(1_000)) < 1_100);
  assert.ok(textBytes("a".repeat(999) + "€") >= 2_000);
});

Deno.test("copyText() does not keep the source of a slice in memory", () => {
  const before = Deno.memoryUsage().heapUsed;
  const all: string[] = [];
  for (let i = 0; i < 200; i++) {
    const frame = `${i}`.padStart(8, "0").repeat(128 * 1024);
    all.push(copyText(frame.slice(5, 2_005)), copyText(frame.slice(5, 50_000), 2_000));
  }
  const grown = Deno.memoryUsage().heapUsed - before;

  assert.equal(all.length, 400);
  assert.ok(grown < 150 * 1024 * 1024, `${grown} bytes more`); // The frames are 200 MiB.
});

Deno.test("a stack trace is kept and counted, of a long one both ends", () => {
  const detail = new SpanDetail();
  const before = detail.bytes;
  const error = { code: "c", message: "m" };

  detail.setError({ ...error, stacktrace: "at x" }, null);
  assert.equal(detail.stacktrace, "at x");

  detail.setError({ ...error, stacktrace: `first ${"x".repeat(50_000)} last` }, null);
  assert.ok(detail.stacktrace!.length <= TRACE_STACK_CHARS_MAX);
  assert.match(detail.stacktrace!, /^first x+\n…x+ last$/);
  assert.ok(detail.bytes > before + TRACE_STACK_CHARS_MAX);

  const other = new SpanDetail();
  other.setError(error, null);
  assert.equal(other.stacktrace, null);
});
