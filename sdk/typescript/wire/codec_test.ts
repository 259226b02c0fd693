/**
 * What the vectors do not cover: texts of errors, the order of keys, values that are not JSON.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Random } from "../../../tests/fakes/random.ts";
import {
  decodeEngineMessage,
  decodeWorkerMessage,
  encodeMessage,
  parseMessage,
  readWorkerMessage,
} from "./codec.ts";
import type { Json, WorkerMessage } from "./protocol.ts";

const REFUSALS: readonly [frame: string, message: string][] = [
  ["[]", "message: expected an object, received an array"],
  ["{}", "type: expected a string, received nothing"],
  ['{"type":"teleport"}', 'type: expected a known type of message, received "teleport"'],
  [
    '{"type":"invokefunction","function_id":5}',
    "invokefunction.function_id: expected a string, received 5",
  ],
  [
    '{"type":"invokefunction","function_id":null}',
    "invokefunction.function_id: expected a string, received null",
  ],
  [
    '{"type":"invokefunction","function_id":"a","timeout_ms":-1}',
    "invokefunction.timeout_ms: expected an integer from 1 to 604800000, received -1",
  ],
  [
    '{"type":"invokefunction","function_id":"a","action":{"type":"enqueue"}}',
    "invokefunction.action.queue: expected a string, received nothing",
  ],
  [
    '{"type":"invokefunction","function_id":"a","action":{"type":"x"}}',
    'invokefunction.action.type: expected "void" or "enqueue", received "x"',
  ],
  [
    '{"type":"registerfunction","id":"a","namespace":""}',
    'registerfunction.namespace: expected a string that is not empty, received ""',
  ],
  [
    '{"type":"registerfunction","id":"a","invocation":[1]}',
    "registerfunction.invocation: expected an object, received an array",
  ],
  [
    '{"type":"invocationprogress","invocation_id":"a"}',
    "invocationprogress.data: expected any JSON, received nothing",
  ],
];

for (const [frame, message] of REFUSALS) {
  Deno.test(`decodeWorkerMessage() rejects ${frame} and names the field`, () => {
    assert.throws(() => decodeWorkerMessage(frame), { message });
  });
}

Deno.test("decodeWorkerMessage() reports an id that is too long without its text", () => {
  const frame = JSON.stringify({ type: "registerfunction", id: "x".repeat(1_025) });

  assert.throws(() => decodeWorkerMessage(frame), {
    code: "bad_message",
    message: "registerfunction.id: expected at most 1024 characters, received 1025",
  });
});

Deno.test("decodeWorkerMessage() cuts long values in messages", () => {
  const frame = JSON.stringify({ type: "z".repeat(10_000) });

  assert.throws(() => decodeWorkerMessage(frame), (error: Error) => error.message.length < 200);
});

Deno.test("decodeWorkerMessage() reads no field from the prototype of objects", () => {
  const frame = '{"type":"registerfunction","__proto__":{"id":"forged"}}';

  assert.throws(() => decodeWorkerMessage(frame), { code: "bad_message" });
});

Deno.test("encodeMessage() writes type and ids first and the payload last", () => {
  const message: WorkerMessage = {
    data: { a: 1 },
    baggage: "b",
    timeout_ms: 5,
    function_id: "math::add",
    invocation_id: "i",
    type: "invokefunction",
  };

  assert.equal(
    encodeMessage(message),
    '{"type":"invokefunction","invocation_id":"i","function_id":"math::add","timeout_ms":5,' +
      '"baggage":"b","data":{"a":1}}',
  );
});

Deno.test("encodeMessage() omits undefined fields and keeps nested nulls", () => {
  const message = {
    type: "invocationresult",
    invocation_id: "i",
    function_id: "f",
    error: undefined,
    result: { a: null },
  } as unknown as WorkerMessage;

  assert.equal(
    encodeMessage(message),
    '{"type":"invocationresult","invocation_id":"i","function_id":"f","result":{"a":null}}',
  );
});

Deno.test("encodeMessage() rejects values that JSON cannot represent", () => {
  const round: { self?: unknown } = {};
  round.self = round;

  for (const data of [round, 10n]) {
    const message: WorkerMessage = {
      type: "invokefunction",
      function_id: "f",
      data: data as unknown as Json,
    };
    assert.throws(() => encodeMessage(message), { code: "serialization_error" });
  }
});

Deno.test("parseMessage() followed by readWorkerMessage() equals decodeWorkerMessage()", () => {
  const frame = '{"type":"cancelinvocation","invocation_id":"i","reason":null}';

  assert.deepEqual(readWorkerMessage(parseMessage(frame)), decodeWorkerMessage(frame));
});

Deno.test("decodeEngineMessage() normalises a plain string in error", () => {
  const frame = '{"type":"error","error":"boom"}';

  const expected = { type: "error", error: { code: "UNKNOWN", message: "boom" } };
  assert.deepEqual(decodeEngineMessage(frame), expected);
});

Deno.test("a message that is used as it was parsed equals one that is copied field by field", () => {
  const required: Record<string, readonly string[]> = {
    invokefunction: ["invocation_id", "function_id"],
    invocationresult: ["invocation_id", "function_id"],
    registerfunction: ["id"],
    registertrigger: ["id", "trigger_type", "function_id"],
  };
  const texts = ["traceparent", "baggage", "caller", "description"];
  texts.push(...Object.values(required).flat());
  const fitting: Record<string, Json[]> = {
    ...Object.fromEntries(texts.map((name) => [name, ["", "x", "a::b"]])),
    namespace: ["n"],
    trigger_namespace: ["n"],
    invocation: [{ url: "u" }],
    action: [{ type: "void", more: 1 }],
    timeout_ms: [1, 604_800_000],
    error: ["bare", { code: "c", message: "m" }],
    ...Object.fromEntries(
      ["metadata", "data", "result", "config"].map((name) => [name, [0, {}, "x"]]),
    ),
    ["__proto__"]: [{}],
  };
  const others: Json[] = [null, 0, -1, 1.5, 604_800_001, "y".repeat(2_000), [], {}, false];
  let kept = 0;
  for (let seed = 0; seed < 5_000; seed++) {
    const random = new Random(seed);
    const type = random.pick(Object.keys(required));
    const first = required[type]!;
    const fields = [...first, ...Object.keys(fitting)]
      .filter((_, at) => at < first.length ? !random.once(20) : random.once(4)).map((name) => {
        const value = random.pick(random.once(9) ? others : fitting[name]!);
        return `"${name}":${JSON.stringify(value)}`;
      });
    const plain = `{"type":"${type}",${fields.join()}}`.replace(",}", "}");
    // An unknown field causes a copy.
    const outcome = outcomeOf(plain.replace("{", '{"odd":1,'));

    assert.deepEqual(outcomeOf(plain), outcome, `seed ${seed}: ${plain}`);
    if (typeof outcome !== "string") kept++;
  }
  assert.ok(kept > 500, `${kept} messages could be read`);
});

function outcomeOf(frame: string): unknown {
  try {
    return decodeWorkerMessage(frame);
  } catch (error) {
    return String(error);
  }
}
