import assert from "node:assert/strict";
import { Random } from "../../tests/fakes/random.ts";
import { CallIds, countAt, readResult, writeCall, writeParts, writeResult } from "./call_frames.ts";
import type { CallRequest } from "./options.ts";
import { attempt } from "./platform.ts";
import { decodeEngineMessage, decodeWorkerMessage, encodeMessage } from "./wire/codec.ts";
import type { InvocationResult, InvokeFunction, Json } from "./wire/protocol.ts";

const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const START = '{"type":"invocationresult","invocation_id":"1","function_id":"a::b"';
const ODD_TEXTS = ["", "a\nb", 'a"b\\', "ä€😀", "\ud800", "\u0000"];

/** Requests with random combinations of fields. */
function requests(): CallRequest<unknown>[] {
  const random = new Random(7);
  const maybe = <Value>(value: Value): Value | undefined => random.once(2) ? value : undefined;
  return Array.from({ length: 300 }, () => {
    const text = random.pick(ODD_TEXTS);
    const request = {
      function_id: `a::${text}`,
      namespace: maybe(`n${text}`),
      action: maybe({ type: "enqueue", queue: `q${text}` }),
      payload: maybe({ [text]: [text, null, 1.5, { deep: text }] }),
      metadata: maybe({ m: text }),
    };
    return request as CallRequest<unknown>;
  });
}

Deno.test("writeCall() equals encodeMessage() for random calls", () => {
  const random = new Random(8);
  for (const request of requests()) {
    const invocation_id = random.once(3) ? undefined : "0af7651916cd43dd";
    const timeout_ms = random.once(3) ? undefined : 5_000;
    const traceparent = random.once(3) ? undefined : random.pick(ODD_TEXTS);
    const baggage = random.once(3) ? undefined : random.pick(ODD_TEXTS);
    const details = { invocation_id, timeout_ms, traceparent, baggage };

    const text = writeCall(writeParts(request), details);

    const { payload, ...rest } = request;
    const message = { type: "invokefunction", ...rest, ...details, data: payload };
    assert.deepEqual(
      decodeWorkerMessage(text),
      decodeWorkerMessage(encodeMessage(message as InvokeFunction)),
    );
  }
});

Deno.test("writeCall() writes type and ids first, and the payload last", () => {
  const parts = writeParts({ function_id: "a::b", payload: { n: 1 }, metadata: 2 });

  const text = writeCall(parts, {
    invocation_id: "1",
    timeout_ms: 5,
    traceparent: TRACEPARENT,
    baggage: undefined,
  });

  assert.equal(
    text,
    '{"type":"invokefunction","invocation_id":"1","function_id":"a::b","timeout_ms":5,' +
      `"traceparent":"${TRACEPARENT}","metadata":2,"data":{"n":1}}`,
  );
});

Deno.test("writeParts() rejects values that JSON cannot represent and names the field", () => {
  const refused = (more: Partial<CallRequest<unknown>>) => () =>
    writeParts({ function_id: "a::b", ...more });

  assert.throws(refused({ payload: 1n }), { message: /^The payload for a::b cannot be/ });
  assert.throws(refused({ metadata: (() => 1) as unknown as Json }), {
    message: /^The metadata for a::b cannot be/,
  });
});

Deno.test("writeResult() equals encodeMessage() for odd texts", () => {
  for (const odd of ODD_TEXTS) {
    for (const trace of [{}, { traceparent: odd, baggage: odd }]) {
      for (const result of [undefined, null, { odd }]) {
        const ids = { invocation_id: odd, function_id: odd, ...trace };
        const more = result === undefined ? {} : { result };
        const expected = encodeMessage({ type: "invocationresult", ...ids, ...more });

        const json = result === undefined ? undefined : JSON.stringify(result);
        assert.equal(writeResult({ type: "invokefunction", ...ids }, json), expected);
      }
    }
  }
});

Deno.test("readResult() parses results as the engine writes them", () => {
  const read = (rest: string) => readResult(START + rest, START.length);

  assert.deepEqual(read(',"result":{"n":[1]}}'), { value: { n: [1] } });
  assert.deepEqual(read(`,"traceparent":"${TRACEPARENT}","result":"x"}`), { value: "x" });
  assert.deepEqual(read(`,"traceparent":"${TRACEPARENT}"}`), { value: undefined });
  assert.deepEqual(read("}"), { value: undefined });
  assert.deepEqual(read(',"result":null}'), { value: undefined });
});

Deno.test("readResult() returns undefined for other frames", () => {
  const others = [
    "",
    " }",
    "} ",
    ',"result":}',
    ',"result":1',
    ',"result":1}}',
    ',"result": 1,"result":2}',
    ',"result":1,"error":{"code":"x","message":"y"}}',
    ',"error":{"code":"x","message":"y"}}',
    ',"baggage":"a=b","result":1}',
    ',"traceparent":"short","result":1}',
    `,"traceparent":"${TRACEPARENT}-more","result":1}`,
    `,"traceparent":"${TRACEPARENT.slice(0, -1)}\\"","result":1}`,
    ',"result":1,"function_id":"other"}',
  ];
  for (const rest of others) {
    assert.equal(readResult(START + rest, START.length), undefined, rest);
  }
});

Deno.test("readResult() equals the codec for frames with random changes", () => {
  const whole = `${START},"traceparent":"${TRACEPARENT}","result":{"a":[1,"}",null],"b":"\\"x"}}`;
  const junk = [
    "",
    " ",
    '"',
    "}",
    "{",
    ",",
    "\\",
    "null",
    '"result":1',
    ',"error":null',
    "\n",
    "0",
  ];
  let taken = 0;
  for (let seed = 0; seed < 20_000; seed++) {
    const random = new Random(seed);
    const at = START.length + random.below(whole.length - START.length + 1);
    const end = at + random.below(4) * random.below(30);
    const frame = whole.slice(0, at) + random.pick(junk) + whole.slice(end);

    const quick = readResult(frame, START.length);
    if (!quick) continue;
    taken++;
    const message = attempt(() => decodeEngineMessage(frame)) as InvocationResult | undefined;
    const { error, result }: { error?: unknown; result?: Json } = message ??
      { error: "unreadable" };
    assert.deepEqual([error, result], [undefined, quick.value], `seed ${seed}: ${frame}`);
  }
  assert.ok(taken > 100, `${taken} frames were read`);
});

const COUNTS = [1, 9, 10, 255, 256, 2 ** 31, 2 ** 32 + 7, 2 ** 48 - 1];

Deno.test("CallIds.text() has the form of a UUID, and count() reads it", () => {
  const ids = new CallIds();

  for (const count of COUNTS) {
    assert.match(ids.text(count), /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/);
    assert.equal(ids.count(ids.text(count)), count);
  }
});

Deno.test("the ids of two workers differ", () => {
  const [one, other] = [new CallIds(), new CallIds()];

  assert.notEqual(one.start, other.start);
  assert.equal(other.count(one.text(1)), undefined);
});

Deno.test("CallIds.count() returns undefined for ids of other lengths or with other digits", () => {
  const ids = new CallIds();
  const id = ids.text(26);

  for (const other of ["", id + "0", id.slice(0, -1), ids.start, `${id.slice(0, -1)}A`]) {
    assert.equal(ids.count(other), undefined, other);
  }
  for (const last of ["g", "/", ":", "`", " ", "-", "é", "\u0000"]) {
    assert.equal(ids.count(id.slice(0, -1) + last), undefined, last);
  }
});

Deno.test("countAt() returns undefined at the end of the text", () => {
  assert.equal(countAt("00000000000a", 0), 10);
  assert.equal(countAt("00000000000a", 1), undefined);
  assert.equal(countAt("", 0), undefined);
});
