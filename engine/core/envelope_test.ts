/**
 * What is recognised without parsing, what is not, and what is cut out of a frame.
 *
 * @module
 */
import assert from "node:assert/strict";
import { decodeWorkerMessage } from "../../sdk/typescript/codec.ts";
import type { InvocationResult, InvokeFunction } from "../../sdk/typescript/protocol.ts";
import {
  CALL_HEAD,
  callTail,
  fieldText,
  readEnvelope,
  RESULT_HEAD,
  resultTail,
} from "./envelope.ts";

const CALL = `${CALL_HEAD}i1","function_id":"math::add"`;
const RESULT = `${RESULT_HEAD}i1","function_id":"math::add"`;

const KNOWN: readonly [name: string, frame: string][] = [
  ["a call", `${CALL},"data":{"a":1}}`],
  ["a call without a payload", `${CALL}}`],
  ["a call with a time-out", `${CALL},"timeout_ms":5000,"data":1}`],
  ["a call with a trace", `${CALL},"traceparent":"00-1","baggage":"a=b","data":[]}`],
  ["a call whose payload says action without quotes around", `${CALL},"data":"an action"}`],
  ["a call with odd spacing inside its payload", `${CALL},"data": { "a" :\n1 } }`],
  ["a result", `${RESULT},"result":{"c":5}}`],
  ["a result without a value", `${RESULT}}`],
  ["a result with a trace", `${RESULT},"traceparent":"00-1","result":1}`],
  ["a result that says action", `${RESULT},"result":{"action":1,"timeout_ms":2}}`],
];

for (const [name, frame] of KNOWN) {
  Deno.test(`readEnvelope() knows ${name}`, () => {
    const envelope = readEnvelope(frame);

    assert.equal(envelope && frame.slice(envelope.idStart, envelope.idEnd), "i1");
  });
}

const LEFT: readonly [name: string, frame: string][] = [
  ["another message", '{"type":"ping"}'],
  ["another order of keys", '{"invocation_id":"i1","type":"invokefunction","function_id":"a"}'],
  ["white space between keys", CALL.replace(",", ", ") + ',"data":1}'],
  ["a call without an id", '{"type":"invokefunction","function_id":"a","data":1}'],
  ["an empty id", `${CALL_HEAD}","function_id":"a","data":1}`],
  ["an id with an escape", `${CALL_HEAD}i\\u0031","function_id":"a","data":1}`],
  ["an id with a control character", `${CALL_HEAD}i\n1","function_id":"a","data":1}`],
  ["an id that is too long", `${CALL_HEAD}${"i".repeat(129)}","function_id":"a","data":1}`],
  ["a function with an escape", `${CALL_HEAD}i1","function_id":"a\\"b","data":1}`],
  ["a namespace before the payload", `${CALL},"namespace":"eu","data":1}`],
  ["metadata before the payload", `${CALL},"metadata":{},"data":1}`],
  ["an action behind the payload", `${CALL},"data":1,"action":{"type":"void"}}`],
  ["a namespace behind the payload", `${CALL},"data":1,"namespace":"eu"}`],
  ["a time-out behind the payload", `${CALL},"data":1,"timeout_ms":5}`],
  ["a second id behind the payload", `${CALL},"data":1,"invocation_id":"i2"}`],
  ["a second function behind the payload", `${CALL},"data":1,"function_id":"b"}`],
  ["a caller behind the payload", `${CALL},"data":1,"caller":"me"}`],
  ["a name in disguise behind the payload", `${CALL},"data":1,"\\u0061ction":{"type":"void"}}`],
  ["the word action in a payload", `${CALL},"data":{"action":"buy"}}`],
  ["a time-out of nothing", `${CALL},"timeout_ms":0,"data":1}`],
  ["a time-out with a leading zero", `${CALL},"timeout_ms":05,"data":1}`],
  ["a time-out that is no integer", `${CALL},"timeout_ms":5.5,"data":1}`],
  ["a time-out beyond a week", `${CALL},"timeout_ms":604800001,"data":1}`],
  ["a trace with an escape", `${CALL},"traceparent":"\\n","data":1}`],
  ["white space at the end", `${CALL},"data":1}\n`],
  ["a frame cut short", `${CALL},"data":{"a"`],
  ["a head alone", CALL_HEAD],
  ["a head and an id", `${CALL_HEAD}i1`],
  ["a null as result", `${RESULT},"result":null}`],
  ["a null as result behind a space", `${RESULT},"result": null}`],
  ["an error", `${RESULT},"error":{"code":"x","message":"y"}}`],
  ["an error behind a result", `${RESULT},"result":1,"error":{"code":"x","message":"y"}}`],
  ["a second id behind a result", `${RESULT},"result":1,"invocation_id":"i2"}`],
];

for (const [name, frame] of LEFT) {
  Deno.test(`readEnvelope() leaves ${name} to the codec`, () => {
    assert.equal(readEnvelope(frame), undefined);
  });
}

Deno.test("readEnvelope() reads the function and the time-out of a call", () => {
  const envelope = readEnvelope(`${CALL},"timeout_ms":5000,"data":1}`);

  assert.equal(envelope?.kind, "call");
  assert.equal(envelope.function_id, "math::add");
  assert.equal(envelope.timeout_ms, 5_000);
});

Deno.test("fieldText() cuts a value out as it was written", () => {
  const frame = ' { "a" : [ 1, {"b":"}\\"]"} ] , "data" : 12345678901234567890 ,"z":"\\\\" } ';

  assert.equal(fieldText(frame, "a"), '[ 1, {"b":"}\\"]"} ]');
  assert.equal(fieldText(frame, "data"), "12345678901234567890");
  assert.equal(fieldText(frame, "z"), '"\\\\"');
  assert.equal(fieldText(frame, "b"), undefined);
  assert.equal(fieldText("{}", "a"), undefined);
});

Deno.test("fieldText() takes the last of a name, however it is written, as JSON.parse does", () => {
  const frame = '{"data":1,"d\\u0061ta":{"x":2},"other":3}';

  assert.equal(fieldText(frame, "data"), '{"x":2}');
  assert.deepEqual(JSON.parse(frame).data, { x: 2 });
});

Deno.test("callTail() puts a call in canonical order and keeps its payload", () => {
  const frame = '{"data": {"n":12345678901234567890} ,"timeout_ms":5,"type":"invokefunction",' +
    '"colour":"red","metadata":{"m": 1},"action":null,"namespace":"eu","baggage":"b","function_id":"f","invocation_id":"i"}';

  const { text: tail } = callTail(decodeWorkerMessage(frame) as InvokeFunction, frame);

  assert.equal(
    tail,
    '","function_id":"f","namespace":"eu","timeout_ms":5,"metadata":{"m": 1},"baggage":"b",' +
      '"data":{"n":12345678901234567890}}',
  );
});

Deno.test("callTail() leaves out the default namespace and what is absent", () => {
  const frame = '{"type":"invokefunction","function_id":"f","namespace":"default"}';

  const { text: tail } = callTail(decodeWorkerMessage(frame) as InvokeFunction, frame);

  assert.equal(tail, '","function_id":"f"}');
});

const RESULTS: readonly [name: string, fields: string, tail: string][] = [
  ["a value with its bytes", '"result": 1.50', ',"result":1.50'],
  ["no null", '"result":null', ""],
  [
    "an error as it was",
    '"error":{"code":"c","message":"m","x": 1}',
    ',"error":{"code":"c","message":"m","x": 1}',
  ],
  [
    "an error with nulls as it was",
    '"error":{"code":"c","message":"m","details":null}',
    ',"error":{"code":"c","message":"m","details":null}',
  ],
  ["a bare string as an object", '"error":"boom"', ',"error":{"code":"UNKNOWN","message":"boom"}'],
  ["a number as an object", '"error":5', ',"error":{"code":"UNKNOWN","message":"5"}'],
  [
    "no details that are no object",
    '"error":{"code":"c","message":"m","details":7}',
    ',"error":{"code":"c","message":"m"}',
  ],
  [
    "the error alone",
    '"result":1,"error":{"code":"c","message":"m"}',
    ',"error":{"code":"c","message":"m"}',
  ],
];

for (const [name, fields, tail] of RESULTS) {
  Deno.test(`resultTail() passes on ${name}`, () => {
    const frame = `{"type":"invocationresult","invocation_id":"i","function_id":"f",${fields}}`;

    const result = decodeWorkerMessage(frame) as InvocationResult;

    assert.equal(resultTail(result, frame).text, `","function_id":"f"${tail}}`);
  });
}

Deno.test("readEnvelope() says where a call's trace and payload stand", () => {
  const trace = ',"traceparent":"00-1"';
  for (
    const [fields, traced, payload] of [
      [`,"timeout_ms":5${trace},"baggage":"a=1","data":[1]`, trace, "[1]"],
      [`${trace}`, trace, undefined],
      [',"baggage":"a=1","data":1', "", "1"],
      [',"data":{}', "", "{}"],
      ["", "", undefined],
    ] as const
  ) {
    const text = `{"type":"invokefunction","invocation_id":"i","function_id":"f"${fields}}`;
    const found = readEnvelope(text);
    assert.ok(found?.kind === "call");
    const { traceStart, traceEnd, dataStart } = found;

    assert.equal(text.slice(traceStart, traceEnd), traced, fields);
    const before = text.slice(0, traceStart);
    assert.match(before, /"function_id":"f"(,"timeout_ms":5)?$/);
    assert.equal(dataStart < 0 ? undefined : text.slice(dataStart, -1), payload, fields);
  }
});

Deno.test("callTail() says where things stand in it, as an envelope does", () => {
  const fields = ',"timeout_ms":5,"traceparent":"00-1","baggage":"a=1","data":[ 1]';
  const frame = `{"type":"invokefunction","invocation_id":"i","function_id":"f"${fields}}`;
  const envelope = readEnvelope(frame);
  assert.ok(envelope?.kind === "call");
  const tail = callTail(decodeWorkerMessage(frame) as InvokeFunction, frame);

  assert.equal(tail.text, frame.slice(envelope.idEnd));
  for (const place of ["traceStart", "traceEnd", "dataStart"] as const) {
    assert.equal(tail[place], envelope[place] - envelope.idEnd, place);
  }
});

Deno.test("results say where their value stands, on both ways", () => {
  const head = '{"type":"invocationresult","invocation_id":"i","function_id":"f"';
  for (
    const [fields, value] of [
      [',"traceparent":"t","baggage":"b","result":{"a": 1}', '{"a": 1}'],
      [',"traceparent":"t"', undefined],
      [',"result":1', "1"],
      ["", undefined],
    ] as const
  ) {
    const frame = `${head}${fields}}`;
    const envelope = readEnvelope(frame);
    assert.ok(envelope?.kind === "result");
    const tail = resultTail(decodeWorkerMessage(frame) as InvocationResult, frame);
    for (const { text, resultStart } of [envelope, tail]) {
      assert.equal(resultStart < 0 ? undefined : text.slice(resultStart, -1), value, fields);
    }
  }
});
