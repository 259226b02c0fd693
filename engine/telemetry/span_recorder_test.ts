/**
 * Ids, sampling and details of spans.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  answer,
  call,
  handed,
  RECORD_ALL,
  type RecordedRouter,
  recordedRouter,
} from "../../tests/fakes/fake_router.ts";
import type { CallSpan, EndedSpan } from "../ports/telemetry.ts";
import {
  BuiltinSpans,
  matchesPattern,
  samplingRateOf,
  TRACE_DETAILS_PER_SECOND,
} from "./span_recorder.ts";
import { IdSource } from "./trace_ids.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";
const SAMPLED = `00-${TRACE}-${PARENT}-01`;
const UNSAMPLED = `00-${TRACE}-${PARENT}-00`;

/** A call from start to end; returns the trace that was sent along. */
function run({ caller, worker }: RecordedRouter, fields: Parameters<typeof call>[2] = {}): string {
  call(caller, "i", fields);
  const [{ invocation_id, traceparent = "" }] = handed(worker) as [ReturnType<typeof handed>[0]];
  answer(worker, invocation_id);
  caller.connection.take();
  return traceparent;
}

function ids({ trace_id, span_id, parent_span_id }: CallSpan): unknown[] {
  return [trace_id, span_id, parent_span_id];
}

/** Frames of the same call, on the fast path and on the slow one. */
const WAYS = { unparsed: "", parsed: " " } as const;

for (const [way, space] of Object.entries(WAYS)) {
  const frame = (fields: string): string =>
    `${space}{"type":"invokefunction","invocation_id":"i","function_id":"f"${fields}}`;

  Deno.test(`a trace continues under a span of the engine, ${way}`, () => {
    const { caller, worker, take } = recordedRouter();
    caller.say(frame(`,"timeout_ms":5,"traceparent":"${SAMPLED}","baggage":"a=1","data":[1.50]`));
    const [sent] = worker.connection.takeTexts();
    const { invocation_id, traceparent } = JSON.parse(sent!);
    answer(worker, invocation_id);

    const [span] = take();
    assert.deepEqual(ids(span!), [TRACE, traceparent.split("-")[2], PARENT]);
    assert.equal(
      sent,
      `{"type":"invokefunction","invocation_id":"${invocation_id}","function_id":"f",` +
        `"timeout_ms":5,"traceparent":"00-${TRACE}-${
          span!.span_id
        }-01","baggage":"a=1","data":[1.50]}`,
    );
  });

  Deno.test(`a call without a trace starts one, ${way}`, () => {
    const { caller, worker, take } = recordedRouter();
    for (
      const fields of ["", ',"data":{"a": 1}', ',"traceparent":"nonsense"', ',"baggage":"b=2"']
    ) {
      caller.say(frame(fields));
      const [sent] = worker.connection.takeTexts();
      const { invocation_id, traceparent, baggage, data } = JSON.parse(sent!);
      answer(worker, invocation_id);

      const [span] = take();
      assert.equal(traceparent, `00-${span!.trace_id}-${span!.span_id}-01`, fields);
      assert.equal(span!.parent_span_id, null);
      assert.deepEqual([span!.baggage ?? undefined, data], [
        baggage,
        fields.includes("data") ? { a: 1 } : undefined,
      ]);
    }
  });

  Deno.test(`a trace that is not sampled stays so, under a span of the engine, ${way}`, () => {
    const { caller, worker, take, recorder } = recordedRouter();
    caller.say(frame(`,"traceparent":"${UNSAMPLED}","data":1`));
    const [{ traceparent, invocation_id }] = handed(worker) as [ReturnType<typeof handed>[0]];
    assert.match(traceparent!, new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
    assert.ok(!traceparent!.includes(PARENT));
    assert.deepEqual(recorder.find({}, 9).filter(({ function_id }) => function_id === "f"), []);
    answer(worker, invocation_id);

    assert.deepEqual(take(), []);
  });
}

Deno.test("ids are unique", () => {
  const engine = recordedRouter({ memory_bytes: 4 * 1024 * 1024 });
  for (let i = 0; i < 1_000; i++) run(engine);

  const spans = engine.take();
  assert.equal(new Set(spans.map(({ trace_id }) => trace_id)).size, 1_000);
  assert.equal(new Set(spans.map(({ span_id }) => span_id)).size, 1_000);
});

Deno.test("a new trace is sampled by the first matching rule, else by the ratio", () => {
  const rules = [{ operation: "f", rate: 1 }, { operation: "*", rate: 1 }];

  assert.match(run(recordedRouter({ ratio: 0 })), /-00$/);
  assert.match(run(recordedRouter({ ratio: 0, rules })), /-01$/);
  assert.match(run(recordedRouter({ ratio: 1, rules: [{ operation: "f*", rate: 0 }] })), /-00$/);
  assert.match(run(recordedRouter({ ratio: 0 }), { traceparent: SAMPLED }), /-01$/);
});

Deno.test("the sampling ratio is met", () => {
  const engine = recordedRouter({ ratio: 0.25 });
  for (let i = 0; i < 4_000; i++) run(engine);

  const part = engine.take().length / 4_000;
  assert.ok(part > 0.2 && part < 0.3, `${part}`);
});

Deno.test("settings apply from the next call on", () => {
  const engine = recordedRouter();
  call(engine.caller, "old");
  const [old] = handed(engine.worker);
  engine.recorder.configure({ ...RECORD_ALL, ratio: 0 });
  assert.match(run(engine), /-00$/);
  engine.recorder.configure({ ...RECORD_ALL, enabled: false });
  assert.equal(run(engine), "");
  assert.equal(run(engine, { traceparent: SAMPLED }), SAMPLED, "it goes on as it came");
  answer(engine.worker, old!.invocation_id);

  assert.deepEqual(engine.take().map(({ caller_invocation_id }) => caller_invocation_id), ["old"]);
  engine.recorder.configure(RECORD_ALL);
  assert.match(run(engine), /-01$/);
});

Deno.test("a change of settings keeps the recorded calls, and a smaller ring the newest of them", () => {
  const memory_bytes = 4 * 1024 * 1024;
  const engine = recordedRouter({ memory_bytes });
  for (let i = 0; i < 2_000; i++) run(engine);
  engine.recorder.configure({ ...RECORD_ALL, memory_bytes, payload_chars: 5 });
  assert.equal(engine.recorder.find({}, 9_999).length >= 2_000, true);
  const [newest] = engine.recorder.find({}, 1);

  engine.recorder.configure({ ...RECORD_ALL, memory_bytes: 64 * 1024 });
  const { spans, bytes } = engine.recorder.usage;
  assert.ok(spans < 1_000 && spans > 0, `${spans}`);
  assert.equal(bytes, 64 * 1024);
  assert.deepEqual(engine.recorder.find({}, 1), [newest]);
});

Deno.test("payloads and results are kept up to the limit, and counted beyond", () => {
  const engine = recordedRouter({ payload_chars: 10 });
  run(engine, { data: "12345678" });
  run(engine, { data: "123456789" });

  const [short, long] = engine.take();
  assert.deepEqual([short!.request, short!.request_chars], ['"12345678"', 10]);
  assert.deepEqual([long!.request, long!.request_chars], [null, 11]);
  assert.equal(long!.response, '"done"');
});

Deno.test("the limit of payloads is in characters, not bytes", () => {
  const engine = recordedRouter({ payload_chars: 10 });
  for (const data of ["x".repeat(8), "é".repeat(8), "東".repeat(8), "😀".repeat(4)]) {
    run(engine, { data });
    run(engine, { data: `${data}x` });

    const [short, long] = engine.take();
    assert.deepEqual([short!.request, short!.request_chars], [`"${data}"`, 10]);
    assert.equal(long!.request, null, data);
  }
});

Deno.test("no payload is kept with a limit of zero", () => {
  const engine = recordedRouter({ payload_chars: 0 });
  run(engine);

  const [{ request, response, request_chars, candidates }] = engine.take() as [CallSpan];
  assert.deepEqual([request, response, request_chars], [null, null, 1]);
  assert.equal(candidates?.length, 1);
});

Deno.test("a limited number of calls per second keeps payloads and candidates", () => {
  const engine = recordedRouter({ memory_bytes: 16 * 1024 * 1024 });
  engine.clock.tick(5_000);
  for (let i = 0; i < TRACE_DETAILS_PER_SECOND + 50; i++) run(engine);
  engine.clock.tick(1_000);
  run(engine);

  const spans = engine.take();
  const detailed = spans.map(({ request, candidates }) => request !== null && candidates !== null);
  assert.equal(detailed.lastIndexOf(true), spans.length - 1);
  assert.equal(detailed.filter(Boolean).length, TRACE_DETAILS_PER_SECOND + 1);
  assert.equal(spans.at(-2)!.request_chars, 1, "counted all the same");
});

Deno.test("errors are kept in a flood, too", () => {
  const engine = recordedRouter();
  for (let i = 0; i < TRACE_DETAILS_PER_SECOND + 50; i++) {
    call(engine.caller, `i${i}`, { function_id: "missing" });
  }

  const { error_code, request } = engine.take().at(-1)!;
  assert.deepEqual([error_code, request], ["function_not_found", null]);
});

Deno.test("details of running calls are limited, apart from those of the ring", () => {
  const engine = recordedRouter({ memory_bytes: 256 * 1024, payload_chars: 2_000 });
  const data = "x".repeat(1_500);
  for (let i = 0; i < 200; i++) call(engine.caller, `i${i}`, { data });

  const running = engine.recorder.find({ running: true }, 999);
  const copyText = running.filter(({ request }) => request !== null).length;
  assert.equal(running.length, 200);
  assert.ok(copyText > 5 && copyText * 1_500 <= 256 * 1024 / 8 + 2_000, `${copyText}`);
  for (const { invocation_id } of handed(engine.worker)) answer(engine.worker, invocation_id);
  call(engine.caller, "after", { data });
  assert.notEqual(engine.recorder.find({ running: true }, 1)[0]!.request, null);
});

Deno.test("a long call outlives a flood of short ones", () => {
  const engine = recordedRouter({ memory_bytes: 64 * 1024 });
  call(engine.caller, "long");
  const [long] = handed(engine.worker);
  for (let i = 0; i < 3_000; i++) run(engine);
  assert.equal(engine.recorder.find({ running: true }, 9)[0]?.caller_invocation_id, "long");
  answer(engine.worker, long!.invocation_id);

  const { spans, overwritten } = engine.recorder.usage;
  assert.equal(engine.recorder.find({ invocation_id: "long" }, 9).length, 1);
  assert.ok(overwritten > 0 && spans < 3_000);
});

Deno.test("long texts of errors, ids and names are truncated", () => {
  const engine = recordedRouter({ memory_bytes: 8 * 1024 * 1024 });
  const long = "x".repeat(100_000);
  call(engine.caller, long, { function_id: long, baggage: `a=${long}`, traceparent: long });
  call(engine.caller, "i");
  const error = { code: long, message: long };
  const [{ invocation_id }] = handed(engine.worker) as [ReturnType<typeof handed>[0]];
  engine.worker.say({ type: "invocationresult", invocation_id, function_id: "f", error });

  const spans = engine.take();
  assert.equal(spans.length, 2);
  assert.ok(JSON.stringify(spans).length < 12_000);
});

Deno.test("times follow changes of the wall clock", () => {
  let off = 0;
  const engine = recordedRouter();
  const wall = engine.clock.wall.bind(engine.clock);
  engine.clock.wall = () => wall() + off;
  off = 3_600_000;
  engine.clock.tick(1_001);
  run(engine);
  const [span] = engine.take();

  assert.equal(span!.start_ms, engine.clock.wall());
});

for (
  const [text, pattern, expected] of [
    ["orders::price", "orders::price", true],
    ["orders::price", "orders::*", true],
    ["orders::price", "*::price", true],
    ["orders::price", "*", true],
    ["orders::price", "o*s::*e", true],
    ["orders::price", "orders::pri", false],
    ["orders::price", "rders::price", false],
    ["orders::price", "orders::price*", true],
    ["orders::price", "", false],
    ["", "", true],
    ["", "*", true],
    ["a.c", "a?c", false],
    ["a(c", "a(c", true],
    ["ab", "*a", false],
  ] as const
) {
  Deno.test(`matchesPattern() is ${expected} for "${text}" and "${pattern}"`, () => {
    assert.equal(matchesPattern(text, pattern), expected);
  });
}

Deno.test("matchesPattern() is fast for malicious patterns", () => {
  const started = performance.now();

  assert.equal(matchesPattern("a".repeat(1_024), "*a".repeat(400) + "*b"), false);
  assert.ok(performance.now() - started < 30_000);
});

Deno.test("samplingRateOf() returns the rate of the first matching rule, else the ratio", () => {
  const rules = [{ operation: "a::*", rate: 0 }, { operation: "a::b", rate: 1 }];

  assert.equal(samplingRateOf("a::b", rules, 0.5), 0);
  assert.equal(samplingRateOf("c", rules, 0.5), 0.5);
});

function setup(isTracing = true, shouldSample = true) {
  const operations: string[] = [];
  const spans = new BuiltinSpans({
    ids: new IdSource((bytes) => void crypto.getRandomValues(bytes)),
    isTracing: () => isTracing,
    shouldSample: (operation) => {
      operations.push(operation);
      return shouldSample;
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

Deno.test("BuiltinSpans.open() starts a trace, sampled by its operation", () => {
  const { spans, operations } = setup();
  const first = spans.open(null, "GET /a");

  assert.match(first!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.match(setup(true, false).spans.open("nonsense", "GET /b")!, /-00$/);
  assert.deepEqual(operations, ["GET /a"]);
  assert.notEqual(spans.open(null, "GET /a"), first);
});

Deno.test("BuiltinSpans.open() continues a trace under a new span, and keeps its sampling decision", () => {
  const { spans, operations } = setup(true, false);

  for (const parent of [SAMPLED, UNSAMPLED]) {
    const opened = spans.open(parent, "GET /")!;
    assert.deepEqual(opened.split("-")[1], TRACE);
    assert.equal(opened.slice(-2), parent.slice(-2));
    assert.notEqual(opened, parent);
  }
  assert.deepEqual(operations, [], "no other decision is made");
});

Deno.test("BuiltinSpans.open() returns a valid parent when tracing is off", () => {
  const { spans } = setup(false);

  assert.equal(spans.open(SAMPLED, "GET /"), SAMPLED);
  assert.equal(spans.open("nonsense", "GET /"), null);
  assert.equal(spans.open(null, "GET /"), null);
});

Deno.test("BuiltinSpans.record() passes sampled spans to the listeners", () => {
  const { spans } = setup();
  const heard: string[] = [];
  const stop = spans.listen(({ traceparent }) => heard.push(traceparent));
  for (const traceparent of [SAMPLED, UNSAMPLED, "nonsense"]) {
    spans.record(ended(traceparent));
  }
  stop();
  spans.record(ended(SAMPLED));

  assert.deepEqual(heard, [SAMPLED]);
});
