/**
 * The tails of calls and results that had to be parsed, and what stands where in them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { decodeWorkerMessage } from "../../../sdk/typescript/wire/codec.ts";
import type { InvocationResult, InvokeFunction } from "../../../sdk/typescript/wire/protocol.ts";
import { bytesOf, textOf } from "./bytes.ts";
import { Envelope } from "./envelope.ts";
import {
  type CallTail,
  callTail,
  Head,
  jsonText,
  type ResultTail,
  resultTail,
  tailOf,
  valueTail,
} from "./frame_parts.ts";

function tailOfCall(frame: string): CallTail {
  return callTail(decodeWorkerMessage(frame) as InvokeFunction, frame);
}

function tailOfResult(frame: string): ResultTail {
  return resultTail(decodeWorkerMessage(frame) as InvocationResult, frame);
}

function text({ memory, idEnd, end }: CallTail | ResultTail): string {
  return textOf(memory, idEnd, end);
}

/** The payload or the value, by where it is said to stand. */
function valueOf({ memory, dataStart, end }: CallTail | ResultTail): string | undefined {
  return dataStart < 0 ? undefined : textOf(memory, dataStart, end - 1);
}

function envelopeOf(frame: string): Envelope {
  const memory = bytesOf(frame);
  const envelope = new Envelope();
  assert.ok(envelope.read(memory, 0, memory.length, false), frame);
  return envelope;
}

Deno.test("callTail() puts a call in canonical order and keeps its payload", () => {
  const tail = tailOfCall(
    '{"data": {"n":12345678901234567890} ,"timeout_ms":5,"type":"invokefunction",' +
      '"colour":"red","metadata":{"m": 1},"action":null,"namespace":"eu","baggage":"b",' +
      '"function_id":"f","invocation_id":"i"}',
  );

  assert.equal(
    text(tail),
    '","function_id":"f","namespace":"eu","timeout_ms":5,"metadata":{"m": 1},"baggage":"b",' +
      '"data":{"n":12345678901234567890}}',
  );
});

Deno.test("callTail() leaves out the default namespace and what is absent", () => {
  const tail = tailOfCall('{"type":"invokefunction","function_id":"f","namespace":"default"}');

  assert.equal(text(tail), '","function_id":"f"}');
  assert.equal(valueOf(tail), undefined);
});

Deno.test("callTail() writes what was escaped without need as it is, and needs as they are", () => {
  const tail = tailOfCall(
    '{"type":"invokefunction","function_id":"gr\\u00f6\\u00dfe\\"\\/\\ud83d\\ude00","data":"\\u00f6"}',
  );

  assert.equal(text(tail), '","function_id":"größe\\"/😀","data":"\\u00f6"}');
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
  Deno.test(`callTail() says where things stand as an envelope does: ${fields}`, () => {
    const frame = `{"type":"invokefunction","invocation_id":"ï","function_id":"grün"${fields}}`;
    const envelope = envelopeOf(frame);
    const tail = tailOfCall(frame);

    assert.equal(text(tail), text(envelope));
    for (const place of ["traceStart", "traceEnd", "end"] as const) {
      assert.equal(tail[place], envelope[place] - envelope.idEnd, place);
    }
    assert.equal(valueOf(tail), valueOf(envelope));
    assert.equal(
      tail.dataStart,
      envelope.dataStart < 0 ? -1 : envelope.dataStart - envelope.idEnd,
    );
  });
}

const RESULTS: readonly [name: string, fields: string, tail: string][] = [
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

for (const [name, fields, tail] of RESULTS) {
  Deno.test(`resultTail() passes on ${name}`, () => {
    const frame = `{"type":"invocationresult","invocation_id":"i","function_id":"f",${fields}}`;

    assert.equal(text(tailOfResult(frame)), `","function_id":"f"${tail}}`);
  });
}

Deno.test("results say where their value stands, on both ways", () => {
  const head = '{"type":"invocationresult","invocation_id":"ï","function_id":"grün"';
  for (
    const [fields, value] of [
      [',"traceparent":"t","baggage":"b","result":{"a": 1}', '{"a": 1}'],
      [',"traceparent":"ü","result":"東"', '"東"'],
      [',"traceparent":"t"', undefined],
      [',"result":1', "1"],
      ["", undefined],
    ] as const
  ) {
    const frame = `${head}${fields}}`;
    const envelope = envelopeOf(frame);
    const tail = tailOfResult(frame);

    assert.equal(text(tail), text(envelope));
    for (const one of [envelope, tail]) assert.equal(valueOf(one), value, fields);
  }
});

Deno.test("an error is no value, also where a value stands beside it", () => {
  const head = '{"type":"invocationresult","invocation_id":"i","function_id":"f"';

  assert.equal(valueOf(tailOfResult(`${head},"result":1,"error":"x"}`)), undefined);
  assert.equal(valueOf(tailOfResult(`${head},"result":null}`)), undefined);
});

Deno.test("valueTail() is the tail of a result of the engine's own", () => {
  const tail = valueTail('a"ß', { wie: "größe", n: [1] });

  assert.equal(text(tail), '","function_id":"a\\"ß","result":{"wie":"größe","n":[1]}}');
  assert.equal(valueOf(tail), '{"wie":"größe","n":[1]}');
});

Deno.test("tailOf() counts bytes, not characters", () => {
  const tail = tailOf('","function_id":"ß","result":', '"😀"');

  assert.equal(text(tail), '","function_id":"ß","result":"😀"}');
  assert.equal(valueOf(tail), '"😀"');
  assert.equal(tail.end, bytesOf(text(tail)).length);
  assert.equal(valueOf(tailOf('","function_id":"ß"}')), undefined);
});

Deno.test("jsonText() is what stands between the quotes", () => {
  assert.equal(jsonText('a"b\\\n\u0001'), 'a\\"b\\\\\\n\\u0001');
  assert.equal(jsonText("größe/😀\u2028"), "größe/😀\u2028");
  assert.equal(jsonText("\ud83d"), "\\ud83d");
});

function add(head: Head, textOfHead: string): void {
  const memory = bytesOf(`(${textOfHead})`);
  head.add(memory, 1, memory.length - 1);
  memory.fill(0);
}

function textOfHead({ memory, length }: Head): string {
  return textOf(memory, 0, length);
}

Deno.test("a head begins with what all have in common, then with what was added, in order", () => {
  const head = new Head('{"type":"');
  assert.equal(textOfHead(head), '{"type":"');
  head.restart();
  add(head, "größe");
  add(head, "");
  add(head, '","😀');

  assert.equal(textOfHead(head), '{"type":"größe","😀');
});

Deno.test("Head.restart() forgets what was added and keeps what is common", () => {
  const head = new Head("common ");
  for (const added of ["a long one that was there before", "short", ""]) {
    head.restart();
    add(head, added);

    assert.equal(textOfHead(head), `common ${added}`);
  }
});

Deno.test("a head grows with what is added, and keeps what it has", () => {
  const head = new Head("common ");
  let expected = "common ";
  head.restart();
  for (const bytes of [1, 500, 512, 513, 5_000, 200_000]) {
    const part = String.fromCharCode(0x61 + bytes % 26).repeat(bytes);
    add(head, part);
    expected += part;

    assert.equal(textOfHead(head), expected);
  }
});

Deno.test("a head does not keep the memory of a huge one for the next", () => {
  const head = new Head("common ");
  add(head, "x".repeat(1_000_000));
  assert.ok(head.memory.length > 1_000_000);
  head.restart();
  assert.ok(head.memory.length <= 64 * 1024, `${head.memory.length}`);
  add(head, "next");

  assert.equal(textOfHead(head), "common next");
});

Deno.test("a head uses its memory again as long as it is not huge", () => {
  const head = new Head("common ");
  add(head, "x".repeat(10_000));
  const { memory } = head;
  head.restart();
  add(head, "y".repeat(10_000));

  assert.equal(head.memory, memory);
});

Deno.test("what is common may be longer than the usual head", () => {
  const head = new Head("c".repeat(3_000));
  head.restart();
  add(head, "!");

  assert.equal(textOfHead(head), `${"c".repeat(3_000)}!`);
});
