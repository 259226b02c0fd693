/**
 * Prefixes and remainders of forwarded calls and results.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { InvocationResult, InvokeFunction } from "../../../sdk/typescript/wire/protocol.ts";
import { bytesOf, textOf } from "./bytes.ts";
import { Envelope } from "./envelope.ts";
import {
  type CallRemainder,
  callRemainder,
  jsonText,
  Prefix,
  remainderOf,
  type ResultRemainder,
  resultRemainder,
  valueRemainder,
} from "./frame_parts.ts";
import { type ParsedFrame, parseFrame } from "./parsed_frame.ts";

function parsed(frame: string): ParsedFrame {
  const memory = bytesOf(frame);
  return parseFrame(memory, 0, memory.length) as ParsedFrame;
}

function remainderOfCall(frame: string): CallRemainder {
  const fields = parsed(frame);
  return callRemainder(fields.message as InvokeFunction, fields);
}

function remainderOfResult(frame: string): ResultRemainder {
  const fields = parsed(frame);
  return resultRemainder(fields.message as InvocationResult, fields);
}

function text({ memory, idEnd, end }: CallRemainder | ResultRemainder): string {
  return textOf(memory, idEnd, end);
}

/** The payload or the value, by its offsets. */
function valueOf({ memory, dataStart, end }: CallRemainder | ResultRemainder): string | undefined {
  return dataStart < 0 ? undefined : textOf(memory, dataStart, end - 1);
}

function envelopeOf(frame: string): Envelope {
  const memory = bytesOf(frame);
  const envelope = new Envelope();
  assert.ok(envelope.read(memory, 0, memory.length, false), frame);
  return envelope;
}

Deno.test("callRemainder() puts a call in canonical order and keeps its payload", () => {
  const remainder = remainderOfCall(
    '{"data": {"n":12345678901234567890} ,"timeout_ms":5,"type":"invokefunction",' +
      '"colour":"red","metadata":{"m": 1},"action":null,"namespace":"eu","baggage":"b",' +
      '"function_id":"f","invocation_id":"i"}',
  );

  assert.equal(
    text(remainder),
    '","function_id":"f","namespace":"eu","timeout_ms":5,"metadata":{"m": 1},"baggage":"b",' +
      '"data":{"n":12345678901234567890}}',
  );
});

Deno.test("callRemainder() omits the default namespace and absent fields", () => {
  const remainder = remainderOfCall(
    '{"type":"invokefunction","function_id":"f","namespace":"default"}',
  );

  assert.equal(text(remainder), '","function_id":"f"}');
  assert.equal(valueOf(remainder), undefined);
});

Deno.test("callRemainder() escapes text only where necessary", () => {
  const remainder = remainderOfCall(
    '{"type":"invokefunction","function_id":"gr\\u00f6\\u00dfe\\"\\/\\ud83d\\ude00","data":"\\u00f6"}',
  );

  assert.equal(text(remainder), '","function_id":"größe\\"/😀","data":"\\u00f6"}');
});

for (
  const fields of [
    ',"timeout_ms":5,"traceparent":"00-1","baggage":"a=1","data":[ 1]',
    ',"timeout_ms":5,"traceparent":"00-ü","baggage":"ä=東","data":"😀"',
    ',"traceparent":"00-1"',
    ',"baggage":"ä"',
    ',"baggage":"ä","data":{"é" :"é"}',
    ',"data":12345678901234567890',
    "",
  ]
) {
  Deno.test(`callRemainder() has the same offsets as an envelope: ${fields}`, () => {
    const frame = `{"type":"invokefunction","invocation_id":"ï","function_id":"grün"${fields}}`;
    const envelope = envelopeOf(frame);
    const remainder = remainderOfCall(frame);

    assert.equal(text(remainder), text(envelope));
    for (const place of ["traceStart", "traceEnd", "end"] as const) {
      assert.equal(remainder[place], envelope[place] - envelope.idEnd, place);
    }
    assert.equal(valueOf(remainder), valueOf(envelope));
    assert.equal(
      remainder.dataStart,
      envelope.dataStart < 0 ? -1 : envelope.dataStart - envelope.idEnd,
    );
  });
}

const RESULTS: readonly [name: string, fields: string, remainder: string][] = [
  ["a value with its bytes", '"result": 1.50', ',"result":1.50'],
  ["a value beyond ASCII", '"result": "é\\u00e9"', ',"result":"é\\u00e9"'],
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

for (const [name, fields, remainder] of RESULTS) {
  Deno.test(`resultRemainder() keeps ${name}`, () => {
    const frame = `{"type":"invocationresult","invocation_id":"i","function_id":"f",${fields}}`;

    assert.equal(text(remainderOfResult(frame)), `","function_id":"f"${remainder}}`);
  });
}

Deno.test("results have the offset of their value, on both paths", () => {
  const prefix = '{"type":"invocationresult","invocation_id":"ï","function_id":"grün"';
  for (
    const [fields, value] of [
      [',"traceparent":"t","baggage":"b","result":{"a": 1}', '{"a": 1}'],
      [',"traceparent":"ü","result":"東"', '"東"'],
      [',"traceparent":"t"', undefined],
      [',"result":1', "1"],
      ["", undefined],
    ] as const
  ) {
    const frame = `${prefix}${fields}}`;
    const envelope = envelopeOf(frame);
    const remainder = remainderOfResult(frame);

    assert.equal(text(remainder), text(envelope));
    for (const one of [envelope, remainder]) assert.equal(valueOf(one), value, fields);
  }
});

Deno.test("an error is not a value, even beside a value", () => {
  const prefix = '{"type":"invocationresult","invocation_id":"i","function_id":"f"';

  assert.equal(valueOf(remainderOfResult(`${prefix},"result":1,"error":"x"}`)), undefined);
  assert.equal(valueOf(remainderOfResult(`${prefix},"result":null}`)), undefined);
});

Deno.test("valueRemainder() is the remainder of a result of the engine", () => {
  const remainder = valueRemainder('a"ß', { wie: "größe", n: [1] });

  assert.equal(text(remainder), '","function_id":"a\\"ß","result":{"wie":"größe","n":[1]}}');
  assert.equal(valueOf(remainder), '{"wie":"größe","n":[1]}');
});

Deno.test("remainderOf() counts bytes, not characters", () => {
  const remainder = remainderOf('","function_id":"ß","result":', '"😀"');

  assert.equal(text(remainder), '","function_id":"ß","result":"😀"}');
  assert.equal(valueOf(remainder), '"😀"');
  assert.equal(remainder.end, bytesOf(text(remainder)).length);
  assert.equal(valueOf(remainderOf('","function_id":"ß"}')), undefined);
});

Deno.test("jsonText() is JSON text without quotes", () => {
  assert.equal(jsonText('a"b\\\n\u0001'), 'a\\"b\\\\\\n\\u0001');
  assert.equal(jsonText("größe/😀\u2028"), "größe/😀\u2028");
  assert.equal(jsonText("\ud83d"), "\\ud83d");
});

function add(prefix: Prefix, added: string): void {
  const memory = bytesOf(`(${added})`);
  prefix.add(memory, 1, memory.length - 1);
  memory.fill(0);
}

function prefixText({ memory, length }: Prefix): string {
  return textOf(memory, 0, length);
}

Deno.test("a Prefix starts with the common text, then has what was added, in order", () => {
  const prefix = new Prefix('{"type":"');
  assert.equal(prefixText(prefix), '{"type":"');
  prefix.restart();
  add(prefix, "größe");
  add(prefix, "");
  add(prefix, '","😀');

  assert.equal(prefixText(prefix), '{"type":"größe","😀');
});

Deno.test("Prefix.restart() removes what was added and keeps the common text", () => {
  const prefix = new Prefix("common ");
  for (const added of ["a long one that was there before", "short", ""]) {
    prefix.restart();
    add(prefix, added);

    assert.equal(prefixText(prefix), `common ${added}`);
  }
});

Deno.test("a Prefix grows and keeps its content", () => {
  const prefix = new Prefix("common ");
  let expected = "common ";
  prefix.restart();
  for (const bytes of [1, 500, 512, 513, 5_000, 200_000]) {
    const part = String.fromCharCode(0x61 + bytes % 26).repeat(bytes);
    add(prefix, part);
    expected += part;

    assert.equal(prefixText(prefix), expected);
  }
});

Deno.test("a Prefix releases a very large buffer", () => {
  const prefix = new Prefix("common ");
  add(prefix, "x".repeat(1_000_000));
  assert.ok(prefix.memory.length > 1_000_000);
  prefix.restart();
  assert.ok(prefix.memory.length <= 64 * 1024, `${prefix.memory.length}`);
  add(prefix, "next");

  assert.equal(prefixText(prefix), "common next");
});

Deno.test("a Prefix reuses its buffer unless it is very large", () => {
  const prefix = new Prefix("common ");
  add(prefix, "x".repeat(10_000));
  const { memory } = prefix;
  prefix.restart();
  add(prefix, "y".repeat(10_000));

  assert.equal(prefix.memory, memory);
});

Deno.test("the common text may be longer than a typical prefix", () => {
  const prefix = new Prefix("c".repeat(3_000));
  prefix.restart();
  add(prefix, "!");

  assert.equal(prefixText(prefix), `${"c".repeat(3_000)}!`);
});
