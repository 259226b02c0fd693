/**
 * PROTOCOL 9, propagation: what becomes of `traceparent` and `baggage` on an engine that traces.
 *
 * @module
 */
import assert from "node:assert/strict";
import { proveOnWire } from "../fakes/wire_engine.ts";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = `00-${TRACE_ID}-00f067aa0ba902b7-01`;
const SHAPE = /^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/;
/** A text that a parser in between would change. */
const ODD = '{"big":9007199254740993, "e" : 1.50e+3,"n":null}';

/** The parts of a traceparent. */
function partsOf(traceparent: unknown): { trace: string; span: string; flags: string } {
  assert.match(String(traceparent), SHAPE);
  const [, trace, span, flags] = String(traceparent).split("-");
  return { trace: trace!, span: span!, flags: flags! };
}

proveOnWire("trace context", {
  "a callee gets the caller's trace with the engine's span as parent": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("trace::f");

    const start = `{"type":"invokefunction","invocation_id":"mine","function_id":"trace::f"`;
    await caller.send(`${start},"traceparent":"${PARENT}","baggage":"a=1","data":${ODD}}`);

    const { text, message } = await worker.receiveRaw();
    const { trace, span, flags } = partsOf(message.traceparent);
    assert.deepEqual([trace, flags], [TRACE_ID, "01"]);
    assert.notEqual(span, "00f067aa0ba902b7");
    assert.ok(
      text.endsWith(`"traceparent":"${message.traceparent}","baggage":"a=1","data":${ODD}}`),
    );
  },

  "a call that comes without a trace begins one, in canonical order": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("trace::g");
    const frames = [
      `{"type":"invokefunction","invocation_id":"a","function_id":"trace::g","timeout_ms":9000,"data":${ODD}}`,
      `{"data":${ODD},"timeout_ms":9000, "type":"invokefunction","function_id":"trace::g","invocation_id":"b"}`,
    ];

    const traces = [];
    for (const frame of frames) {
      await caller.send(frame);
      const { text, message } = await worker.receiveRaw();
      const { trace } = partsOf(message.traceparent);
      assert.match(
        text,
        /^\{"type":"invokefunction","invocation_id":"[^"]+","function_id":"trace::g",/,
      );
      assert.ok(text.endsWith(`,"traceparent":"${message.traceparent}","data":${ODD}}`), text);
      assert.deepEqual(
        Object.keys(message),
        ["type", "invocation_id", "function_id", "timeout_ms", "traceparent", "data"],
      );
      traces.push(trace);
    }
    assert.notEqual(traces[0], traces[1]);
  },

  "a trace that says it is not recorded stays so": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("trace::h");

    const traceparent = `00-${TRACE_ID}-00f067aa0ba902b7-00`;
    await caller.send({
      type: "invokefunction",
      invocation_id: "mine",
      function_id: "trace::h",
      traceparent,
    });

    const { trace, flags } = partsOf((await worker.receive()).traceparent);
    assert.deepEqual([trace, flags], [TRACE_ID, "00"]);
  },

  "an invalid traceparent counts as none": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("trace::i");
    const nonsense = [
      "",
      "nonsense",
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
      `00-${TRACE_ID}-${"0".repeat(16)}-01`,
      `00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`,
      `ff-${TRACE_ID}-00f067aa0ba902b7-01`,
    ];

    for (const traceparent of nonsense) {
      await caller.send({
        type: "invokefunction",
        invocation_id: crypto.randomUUID(),
        function_id: "trace::i",
        traceparent,
      });
      const { trace } = partsOf((await worker.receive()).traceparent);
      assert.notEqual(trace, TRACE_ID, traceparent);
    }
  },

  "a result brings back the trace that the callee echoes": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("trace::j");

    await caller.send({
      type: "invokefunction",
      invocation_id: "mine",
      function_id: "trace::j",
      traceparent: PARENT,
    });
    const { traceparent, invocation_id, function_id } = await worker.receive();
    const type = "invocationresult";
    await worker.send({
      type,
      invocation_id: invocation_id!,
      function_id: function_id!,
      traceparent: traceparent!,
      result: 1,
    });

    const answer = await caller.receive();
    assert.deepEqual([answer.invocation_id, answer.traceparent], ["mine", traceparent]);
  },
});
