/**
 * Which frames are read without parsing, and the fields that are read.
 *
 * @module
 */
import assert from "node:assert/strict";
import { bytesOf, textOf, viewOf } from "./bytes.ts";
import { Envelope } from "./envelope.ts";
import { CALL_PREFIX, callHashOf, RESULT_PREFIX } from "./frame_parts.ts";
import { membersOf, NEW_NAME_PARTS } from "./members.ts";

const CALL = `${CALL_PREFIX}i1","function_id":"math::add"`;
const RESULT = `${RESULT_PREFIX}i1","function_id":"math::add"`;

/** What is around a frame: nothing, or bytes that would continue it. */
const AROUND: readonly (readonly [before: string, behind: string])[] = [
  ["", ""],
  ['{"type":"x","action":1,"data":"', '"}'],
  [`${CALL},"data":1}`, `${RESULT},"error":1}`],
  ["\\u00\n\x00", '\\u00","action":{"type":"void"}}'],
  [`${CALL_PREFIX}`, '}","timeout_ms":5}'],
  ["ü😀", "😀\xff"],
];

/** Whether a frame contains no backslash. */
function isPlain(frame: string): boolean {
  return !frame.includes("\\");
}

/**
 * Reads a frame at any offset and with any prior knowledge, always with the same outcome;
 * `undefined` when it has to be parsed.
 */
function read(frame: string): Envelope | undefined {
  const verdicts = new Set<boolean>();
  const reader = new Envelope();
  let last: Envelope | undefined;
  for (const [before, behind] of AROUND) {
    const memory = bytesOf(before + frame + behind);
    const start = bytesOf(before).length;
    const end = start + bytesOf(frame).length;
    for (const plain of isPlain(frame) ? [false, true] : [false]) {
      const envelope = new Envelope();
      verdicts.add(envelope.read(memory, start, end, plain));
      // A reader that has read other frames before has the same outcome.
      verdicts.add(reader.read(memory, start, end, plain));
      if (last && verdicts.has(true)) assert.deepEqual(fieldsOf(envelope), fieldsOf(last), frame);
      last = envelope;
    }
  }
  assert.equal(verdicts.size, 1, `not always the same: ${frame}`);
  return verdicts.has(true) ? last : undefined;
}

/** All fields of an envelope, as text. */
function fieldsOf(envelope: Envelope): Record<string, unknown> {
  const { memory, kind, idStart, idEnd, functionStart, functionEnd, end, dataStart } = envelope;
  const { traceStart, traceEnd, timeout_ms } = envelope;
  const data = dataStart < 0 ? undefined : textOf(memory, dataStart, end - 1);
  const all = {
    kind,
    id: textOf(memory, idStart, idEnd),
    remainder: textOf(memory, idEnd, end),
    data,
  };
  if (kind === "result") return all;
  return {
    ...all,
    hash: envelope.hash,
    function_id: textOf(memory, functionStart, functionEnd),
    timeout_ms,
    trace: textOf(memory, traceStart, traceEnd),
  };
}

const KNOWN: readonly [name: string, frame: string][] = [
  ["a call", `${CALL},"data":{"a":1}}`],
  ["a call without a payload", `${CALL}}`],
  ["a call with a timeout", `${CALL},"timeout_ms":5000,"data":1}`],
  ["a call with the longest timeout", `${CALL},"timeout_ms":604800000,"data":1}`],
  ["a call with a timeout alone", `${CALL},"timeout_ms":1}`],
  ["a call with a trace", `${CALL},"traceparent":"00-1","baggage":"a=b","data":[]}`],
  ["a call with a baggage alone", `${CALL},"baggage":"a=b"}`],
  ["a call whose payload says action without quotes around", `${CALL},"data":"an action"}`],
  ["a call whose payload has an action", `${CALL},"data":{"action":"buy","type":["a",{}]}}`],
  ["a call with a long payload with escapes", `${CALL},"data":"${"\\\\u0061".repeat(2_000)}"}`],
  ["a call whose payload hides one", `${CALL},"data":{"\\u0061ction":"}","b":"\\"},{"}}`],
  ["a result whose value has a type and an error", `${RESULT},"result":{"type":1,"error":[]} }`],
  ["a call with odd spacing inside its payload", `${CALL},"data": { "a" :\n1 } }`],
  ["a call with harmless escapes in its payload", `${CALL},"data":"\\n\\\\\\"\\u1234"}`],
  ["a call with a payload beyond ASCII", `${CALL},"data":"größe 東京 😀"}`],
  ["a call with a long payload", `${CALL},"data":"${"x".repeat(100_000)}"}`],
  ["a call with the longest baggage", `${CALL},"baggage":"${"b".repeat(8_192)}","data":1}`],
  ["a result", `${RESULT},"result":{"c":5}}`],
  ["a result without a value", `${RESULT}}`],
  ["a result with a trace", `${RESULT},"traceparent":"00-1","result":1}`],
  ["a result that says action", `${RESULT},"result":{"action":1,"timeout_ms":2}}`],
  ["a result beyond ASCII", `${RESULT},"result":"größe"}`],
];

for (const [name, frame] of KNOWN) {
  Deno.test(`Envelope.read() reads ${name}`, () => {
    const envelope = read(frame);

    assert.equal(envelope && fieldsOf(envelope).id, "i1");
    assert.equal(envelope && `i1${fieldsOf(envelope).remainder}`, frame.slice(frame.indexOf("i1")));
  });
}

const LEFT: readonly [name: string, frame: string][] = [
  ["another message", '{"type":"ping"}'],
  ["nothing", ""],
  ["a brace", "}"],
  ["another order of keys", '{"invocation_id":"i1","type":"invokefunction","function_id":"a"}'],
  ["white space between keys", CALL.replace(",", ", ") + ',"data":1}'],
  ["white space before it", ` ${CALL},"data":1}`],
  ["an escape in a key", CALL.replace("function_id", "f\\u0075nction_id") + ',"data":1}'],
  ["a message of a type that starts alike", CALL.replace("invokefunction", "invokefunctions")],
  ["a call without an id", '{"type":"invokefunction","function_id":"a","data":1}'],
  ["an empty id", `${CALL_PREFIX}","function_id":"a","data":1}`],
  ["an empty function", `${CALL_PREFIX}i1","function_id":"","data":1}`],
  ["an id with an escape", `${CALL_PREFIX}i\\u0031","function_id":"a","data":1}`],
  ["an id with a control character", `${CALL_PREFIX}i\n1","function_id":"a","data":1}`],
  ["an id that is too long", `${CALL_PREFIX}${"i".repeat(129)}","function_id":"a","data":1}`],
  ["an id of too many bytes", `${CALL_PREFIX}${"é".repeat(65)}","function_id":"a","data":1}`],
  ["a function with an escape", `${CALL_PREFIX}i1","function_id":"a\\"b","data":1}`],
  ["a function that is too long", `${CALL_PREFIX}i1","function_id":"${"f".repeat(129)}","data":1}`],
  ["a namespace before the payload", `${CALL},"namespace":"eu","data":1}`],
  ["metadata before the payload", `${CALL},"metadata":{},"data":1}`],
  ["an action behind the payload", `${CALL},"data":1,"action":{"type":"void"}}`],
  ["a namespace behind the payload", `${CALL},"data":1,"namespace":"eu"}`],
  ["a timeout behind the payload", `${CALL},"data":1,"timeout_ms":5}`],
  ["a second id behind the payload", `${CALL},"data":1,"invocation_id":"i2"}`],
  ["a second function behind the payload", `${CALL},"data":1,"function_id":"b"}`],
  ["a caller behind the payload", `${CALL},"data":1,"caller":"me"}`],
  ["a trace behind the payload", `${CALL},"data":1,"traceparent":"00-1"}`],
  ["a baggage behind the payload", `${CALL},"data":1,"baggage":"a=b"}`],
  [
    "a name in disguise behind a long payload with escapes",
    `${CALL},"data":"${"\\n\\\\".repeat(2_000)}","\\u0061ction":1}`,
  ],
  ["a name in disguise behind the payload", `${CALL},"data":1,"\\u0061ction":{"type":"void"}}`],
  ["a second type behind the payload", `${CALL},"data":1,"type":"workerregistered"}`],
  [
    "a type in disguise behind a payload that has one",
    `${CALL},"data":{"type":1},"t\\u0079pe":"a"}`,
  ],
  ["a second type behind a payload of text", `${CALL},"data":"}","type":"registrationrejected"}`],
  ["a second type behind a result", `${RESULT},"result":[{}],"type":"workerregistered"}`],
  ["it behind a long payload", `${CALL},"data":"${"x".repeat(9_999)}","action":{"type":"void"}}`],
  ["a timeout of zero", `${CALL},"timeout_ms":0,"data":1}`],
  ["a timeout without digits", `${CALL},"timeout_ms":,"data":1}`],
  ["a timeout with a leading zero", `${CALL},"timeout_ms":05,"data":1}`],
  ["a negative timeout", `${CALL},"timeout_ms":-5,"data":1}`],
  ["a timeout that is no integer", `${CALL},"timeout_ms":5.5,"data":1}`],
  ["a timeout with an exponent", `${CALL},"timeout_ms":5e3,"data":1}`],
  ["a timeout as text", `${CALL},"timeout_ms":"5","data":1}`],
  ["a timeout beyond a week", `${CALL},"timeout_ms":604800001,"data":1}`],
  ["an endless timeout", `${CALL},"timeout_ms":${"9".repeat(400)},"data":1}`],
  ["a trace with an escape", `${CALL},"traceparent":"\\n","data":1}`],
  ["an empty trace", `${CALL},"traceparent":"","data":1}`],
  ["a trace that is no text", `${CALL},"traceparent":null,"data":1}`],
  ["a trace that is too long", `${CALL},"traceparent":"${"t".repeat(129)}","data":1}`],
  ["a baggage that is too long", `${CALL},"baggage":"${"b".repeat(8_193)}","data":1}`],
  ["a baggage with an escape", `${CALL},"baggage":"a=\\"","data":1}`],
  ["a baggage before the trace", `${CALL},"baggage":"b","traceparent":"00-1","data":1}`],
  ["white space at the end", `${CALL},"data":1}\n`],
  ["a frame cut short", `${CALL},"data":{"a"`],
  ["a prefix alone", CALL_PREFIX],
  ["a prefix and an id", `${CALL_PREFIX}i1`],
  ["a result where a payload belongs", `${CALL},"result":1}`],
  ["a payload where a result belongs", `${RESULT},"data":1}`],
  ["a null as result", `${RESULT},"result":null}`],
  ["a null as result behind a space", `${RESULT},"result": null}`],
  ["a result with a timeout", `${RESULT},"timeout_ms":5,"result":1}`],
  ["an error", `${RESULT},"error":{"code":"x","message":"y"}}`],
  ["an error behind a result", `${RESULT},"result":1,"error":{"code":"x","message":"y"}}`],
  ["an error in disguise", `${RESULT},"result":1,"\\u0065rror":{"code":"x","message":"y"}}`],
  ["a second id behind a result", `${RESULT},"result":1,"invocation_id":"i2"}`],
];

for (const [name, frame] of LEFT) {
  Deno.test(`Envelope.read() leaves ${name} to the codec`, () => {
    assert.equal(read(frame), undefined);
  });
}

Deno.test("Envelope.read() reads the function and the timeout of a call", () => {
  const envelope = read(`${CALL},"timeout_ms":5000,"data":1}`);

  assert.ok(envelope);
  const { kind, function_id, timeout_ms } = fieldsOf(envelope);
  assert.deepEqual([kind, function_id, timeout_ms], ["call", "math::add", 5_000]);
});

Deno.test("Envelope.read() finds the offsets of a call's trace and payload", () => {
  const trace = ',"traceparent":"00-1"';
  for (
    const [fields, traced, payload] of [
      [`,"timeout_ms":5${trace},"baggage":"a=1","data":[1]`, trace, "[1]"],
      [`${trace}`, trace, undefined],
      [',"baggage":"ä=1","data":1', "", "1"],
      [',"data":{}', "", "{}"],
      ["", "", undefined],
    ] as const
  ) {
    const text = `{"type":"invokefunction","invocation_id":"i","function_id":"f"${fields}}`;
    const found = read(text);
    assert.ok(found?.kind === "call");
    const { memory, idEnd, traceStart } = found;
    const { data, trace } = fieldsOf(found);

    assert.equal(trace, traced, fields);
    const before = textOf(memory, idEnd, traceStart);
    assert.match(before, /"function_id":"f"(,"timeout_ms":5)?$/);
    assert.equal(data, payload, fields);
  }
});

Deno.test("Envelope.read() accepts ids of 1 to 128 bytes, with any characters", () => {
  for (const character of ["i", "é", "東", "😀"]) {
    const { length } = bytesOf(character);
    for (let count = 1; count * length <= 132; count++) {
      const id = character.repeat(count);
      const isShort = count * length <= 128;
      for (
        const [of, ids] of [
          ["id", `${CALL_PREFIX}${id}","function_id":"f"`],
          ["function", `${CALL_PREFIX}i","function_id":"${id}"`],
          ["result", `${RESULT_PREFIX}${id}","function_id":"f"`],
        ] as const
      ) {
        const rest = of === "result" ? ',"result":1}' : ',"data":1}';
        const found = read(ids + rest);
        assert.equal(found !== undefined, isShort, `${of} of ${count} ${character}`);
        if (!found) continue;
        assert.equal(of === "function" ? fieldsOf(found).function_id : fieldsOf(found).id, id);
        if (of === "id") {
          assert.equal(found.hash, callHashOf(viewOf(bytesOf(id)), 0, bytesOf(id).length));
        }
      }
    }
  }
});

Deno.test("Envelope.read() rejects a truncated frame, wherever it is cut", () => {
  const fields = ',"timeout_ms":50,"traceparent":"00-ü","baggage":"ä=1"';
  for (
    const frame of [
      `${CALL}${fields},"data":{"a":"é"}}`,
      `${CALL},"data":1}`,
      `${CALL}}`,
      `${RESULT},"traceparent":"t","baggage":"b","result":[{"a":1}]}`,
      `${RESULT}}`,
    ]
  ) {
    const memory = bytesOf(frame);
    for (let end = 0; end <= memory.length; end++) {
      // The cut bytes are still behind the end; if a brace ends the rest, it may be a frame again.
      const cut = textOf(memory, 0, end);
      const isWhole = end === memory.length;
      const isRead = new Envelope().read(memory, 0, end, true);
      if (!cut.endsWith("}")) assert.equal(isRead, false, cut);
      else if (isWhole) assert.equal(isRead, true);
      // Payloads are not checked: their receiver finds unbalanced braces.
      else assert.match(cut, /"(data|result)":/, cut);
    }
    for (let start = 1; start < memory.length; start++) {
      assert.equal(new Envelope().read(memory, start, memory.length, true), false);
    }
  }
});

Deno.test("Envelope.read() rejects a frame with any changed byte before the payload", () => {
  for (const frame of [`${CALL},"traceparent":"0","data":1}`, `${RESULT},"result":1}`]) {
    const memory = bytesOf(frame);
    const inside = /"(i1|math::add|0)"/g;
    const free = new Set<number>();
    for (const found of frame.matchAll(inside)) {
      for (let i = 1; i < found[0].length - 1; i++) free.add(found.index + i);
    }
    const payload = frame.length - 2;
    for (let at = 0; at < memory.length; at++) {
      if (free.has(at) || at === payload) continue;
      for (const other of [0x20, 0x5c, 0x78, 0x2c]) {
        const changed = memory.slice();
        if (changed[at] === other) continue;
        changed[at] = other;
        assert.equal(new Envelope().read(changed, 0, changed.length, false), false, `${at}`);
      }
    }
    assert.ok(free.size > 0);
  }
});

Deno.test("the fields of an envelope are replaced by the next frame", () => {
  const envelope = new Envelope();
  const frames = [
    `${CALL},"timeout_ms":5,"traceparent":"00-1","baggage":"b","data":{"long":"payload"}}`,
    `${CALL}}`,
    `${RESULT},"result":1}`,
    `${RESULT}}`,
    `${CALL},"data":1}`,
  ];
  for (const first of frames) {
    for (const second of frames) {
      for (const frame of [first, second]) {
        const memory = bytesOf(frame);
        assert.ok(envelope.read(memory, 0, memory.length, true));
        const fresh = new Envelope();
        fresh.read(memory, 0, memory.length, true);
        assert.deepEqual(fieldsOf(envelope), fieldsOf(fresh));
      }
    }
  }
});

/** Reads a frame with its outline. */
function readLarge(frame: string): Envelope | undefined {
  const memory = bytesOf(`12345${frame}6`);
  const [start, end] = [5, memory.length - 1];
  const envelope = new Envelope();
  const outline = { members: membersOf(memory, start, end) };
  return envelope.read(memory, start, end, isPlain(frame), outline) ? envelope : undefined;
}

Deno.test("a frame with an outline is read as one without, and its payload is known", () => {
  for (
    const frame of [
      `${CALL},"data":{"action":[1]}}`,
      `${CALL},"timeout_ms":5,"data": [[ ]] }`,
      `${CALL}}`,
      `${RESULT},"result":"\\u0061ction"}`,
      `${RESULT}}`,
    ]
  ) {
    const [small, large] = [read(frame)!, readLarge(frame)!];

    assert.deepEqual(fieldsOf(large), fieldsOf(small), frame);
    assert.equal(large.payload === undefined, large.dataStart < 0);
    assert.equal(small.payload, undefined);
  }
  const { payload } = readLarge(`${CALL},"data":[{"a":[]}]}`)!;
  assert.deepEqual([payload!.depth, payload!.parts], [3, 3 + NEW_NAME_PARTS]);
});

Deno.test("a frame is parsed whose outline has anything behind the payload, or no object", () => {
  for (
    const frame of [
      `${CALL},"data":1,"action":{"type":"void"}}`,
      `${CALL},"data":1,"other":2}`,
      `${CALL},"data":1,"data":2}`,
      `${CALL},"data":]}`,
      `${CALL},"data":1}}`,
      `${RESULT},"result":1,"error":{}}`,
      `${RESULT},"result":null}`,
    ]
  ) {
    assert.equal(readLarge(frame), undefined, frame);
  }
});

Deno.test("an envelope forgets the outline of the frame before", () => {
  const memory = bytesOf(`${CALL},"data":[1]}`);
  const envelope = new Envelope();
  assert.ok(
    envelope.read(memory, 0, memory.length, true, { members: membersOf(memory, 0, memory.length) }),
  );
  assert.ok(envelope.payload);

  assert.ok(envelope.read(memory, 0, memory.length, true));
  assert.equal(envelope.payload, undefined);
});
