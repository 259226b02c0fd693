import assert from "node:assert/strict";
import { FakeDial } from "../../tests/fakes/fake_dial.ts";
import { registerWorker } from "./register_worker.ts";
import type { EngineError } from "./wire/errors.ts";
import type { Json } from "./wire/protocol.ts";

function setup() {
  const fake = new FakeDial();
  const errors: EngineError[] = [];
  const worker = registerWorker("ws://127.0.0.1:1", {
    dial: fake.dial,
    onError: (error) => errors.push(error),
  });
  fake.transport.open("w-1").take();
  return { errors, transport: fake.transport, worker };
}

function codeOf(message: Record<string, Json> | undefined): Json | undefined {
  return (message?.error as Record<string, Json> | undefined)?.code;
}

Deno.test("a call whose payload is not JSON fails with bad_message", async () => {
  const { errors, transport, worker } = setup();

  transport.deliverText(
    '{"type":"invokefunction","invocation_id":"7","function_id":"a::b","data":{oops}}',
  );

  const [answer, ...rest] = transport.messages;
  assert.deepEqual([answer!.type, answer!.invocation_id, answer!.function_id], [
    "invocationresult",
    "7",
    "a::b",
  ]);
  assert.equal(codeOf(answer), "bad_message");
  assert.deepEqual(rest, []);
  assert.match(errors[0]!.message, /^A frame of the engine cannot be read: /);
  await worker.shutdown();
});

const BRACKETS = 20 * 1024 * 1024;

for (const [name, json] of [["unfinished", "["], ["deep", '{"a":']] as const) {
  Deno.test(`20 MiB of ${name} JSON fail one call with bad_message, before they are parsed`, async () => {
    const { errors, transport, worker } = setup();
    worker.registerFunction("a::b", () => "fine");
    const bomb = json.repeat(BRACKETS / json.length);
    const ids = '"invocation_id":"7","function_id":"a::b"';
    const call = worker.trigger({ function_id: "c::d" });
    const id = transport.messages.at(-1)!.invocation_id;
    transport.take();

    transport.deliverText(`{"type":"invokefunction",${ids},"data":${bomb}`);
    transport.deliverText(`{"data":${bomb}`);
    transport.deliverText(
      `{"type":"invocationresult","invocation_id":"${id}","function_id":"c::d","result":${bomb}`,
    );
    transport.deliverText(`{"type":"invokefunction",${ids}}`);

    await assert.rejects(call, { code: "bad_message" });
    const [failed, next] = transport.messages;
    assert.equal(codeOf(failed), "bad_message");
    assert.equal(next!.result, "fine");
    assert.equal(errors.length, 3);
    await worker.shutdown();
  });
}

Deno.test("a call with an invalid field fails with bad_message, in any key order", async () => {
  const { transport, worker } = setup();

  transport.deliverText(
    '{"timeout_ms":-1,"function_id":"a::b","invocation_id":"8","type":"invokefunction"}',
  );

  assert.equal(transport.messages[0]!.invocation_id, "8");
  assert.equal(codeOf(transport.messages[0]), "bad_message");
  await worker.shutdown();
});

Deno.test("an invalid result fails its call", async () => {
  const { transport, worker } = setup();
  const call = worker.trigger({ function_id: "a::b" });
  const id = transport.take()[0]!.invocation_id;

  transport.deliverText(
    `{"type":"invocationresult","invocation_id":"${id}","function_id":"a::b","result":}`,
  );

  await assert.rejects(call, { name: "InvocationError", code: "bad_message" });
  assert.deepEqual(transport.messages, []);
  await worker.shutdown();
});

const harmless = {
  "text that is not JSON": "hello",
  "half a message": '{"type":"invokefun',
  "a list": "[1,2]",
  "null": "null",
  "a number": "5",
  "no type": "{}",
  "a type that is no text": '{"type":5}',
  "an unknown type": '{"type":"somethingnew","id":"1"}',
  "a message of workers": '{"type":"registerfunction","id":"a::b"}',
  "a call without a function": '{"type":"invokefunction"}',
  "a call with an id that is no text": '{"type":"invokefunction","invocation_id":5}',
  "a trigger without an id": '{"type":"registertrigger","trigger_type":"x","function_id":"y"}',
};
for (const [name, text] of Object.entries(harmless)) {
  Deno.test(`${name} is reported, gets no response, and keeps the connection`, async () => {
    const { errors, transport, worker } = setup();

    transport.deliverText(text);

    assert.deepEqual(errors.map(({ code }) => code), ["bad_message"]);
    assert.deepEqual(transport.messages, []);
    assert.equal(worker.connectionState, "connected");
    await worker.shutdown();
  });
}
