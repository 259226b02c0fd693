/**
 * What a line does with frames that are broken, empty, binary, too many or too late.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type FakeRouter, fakeRouter, type FakeWorker } from "../../tests/fakes/fake_router.ts";
import { Random } from "../../tests/fakes/random.ts";
import { TELEMETRY_BYTES_PER_SECOND } from "./guards.ts";
import { MALFORMED_FRAMES_MAX, MALFORMED_WINDOW_MS } from "./session.ts";

const utf8 = new TextEncoder();

/** A worker that runs `f`, a caller that waits for it under `i1`, and the engine's id of the call. */
function calling(engine: FakeRouter): { worker: FakeWorker; caller: FakeWorker; id: string } {
  const worker = engine.open();
  worker.say({ type: "registerfunction", id: "f" });
  const caller = engine.open();
  caller.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", data: 1 });
  const [call] = worker.connection.take();
  assert.equal(call?.type, "invokefunction");
  return { worker, caller, id: call.invocation_id! };
}

/** The code and the id of each error a line was sent. */
function errors({ connection }: FakeWorker): string[] {
  return connection.take().map((message) => {
    if (message.type === "error") return message.error.code;
    assert.equal(message.type, "invocationresult");
    return `${message.error?.code} of ${message.invocation_id}`;
  });
}

Deno.test("a malformed call with an id ends with bad_message for that id", () => {
  const line = fakeRouter().open();

  line.say('{"type":"invokefunction","invocation_id":"i1","function_id":5}');

  assert.deepEqual(line.connection.take(), [{
    type: "invocationresult",
    invocation_id: "i1",
    function_id: "",
    error: {
      code: "bad_message",
      message: "invokefunction.function_id: expected a string, received 5",
    },
  }]);
});

Deno.test("a call that is cut short ends with bad_message if its id can be read", () => {
  const line = fakeRouter().open();

  line.say('{"type":"invokefunction","invocation_id":"i1","function_id":"f","data":{"a":');

  assert.deepEqual(errors(line), ["bad_message of i1"]);
});

for (
  const frame of ["hello", "[]", "{}", '{"type":"teleport"}', '{"type":"registerfunction"}', " "]
) {
  Deno.test(`${frame} is answered with an error frame`, () => {
    const line = fakeRouter().open();

    line.say(frame);

    assert.deepEqual(errors(line), ["bad_message"]);
  });
}

Deno.test("a message of an unknown type with an id ends with bad_message for that id", () => {
  const line = fakeRouter().open();

  line.say('{"type":"teleport","invocation_id":"i1"}');

  assert.deepEqual(errors(line), ["bad_message of i1"]);
});

Deno.test("a malformed message that names an open call does not end it", () => {
  const { caller, worker, id } = calling(fakeRouter());

  caller.say('{"type":"cancelinvocation","invocation_id":"i1","reason":5}');
  worker.say({ type: "invocationresult", invocation_id: id, function_id: "f", result: 1 });

  const [error, result] = caller.connection.take();
  assert.equal(error?.type, "error");
  assert.equal(result?.type === "invocationresult" && result.result, 1);
});

for (
  const [name, text] of [
    ["a result without a function", '{"type":"invocationresult","invocation_id":"ID","result":1}'],
    ["a result that is no JSON", '{"type":"invocationresult","invocation_id":"ID","result":{'],
    ["progress without data", '{"type":"invocationprogress","invocation_id":"ID"}'],
  ] as const
) {
  Deno.test(`${name} ends the call for its caller and is reported to the worker`, () => {
    const { caller, worker, id } = calling(fakeRouter());

    worker.say(text.replace("ID", id));

    assert.deepEqual(errors(worker), ["bad_message"]);
    assert.deepEqual(errors(caller), ["bad_message of i1"]);
  });
}

Deno.test("a malformed result from a worker that was not asked ends nothing", () => {
  const engine = fakeRouter();
  const { caller, id } = calling(engine);
  const liar = engine.open();

  liar.say(`{"type":"invocationresult","invocation_id":"${id}"}`);

  assert.deepEqual(errors(liar), ["bad_message"]);
  assert.deepEqual(errors(caller), []);
});

Deno.test("a bad namespace is INVALID_NAMESPACE, of the call or of the line", () => {
  const line = fakeRouter().open();

  line.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", namespace: "" });
  line.say({ type: "registerfunction", id: "f", namespace: 5 });

  assert.deepEqual(errors(line), ["INVALID_NAMESPACE of i1", "INVALID_NAMESPACE"]);
});

Deno.test("more malformed frames than the bound within its time close the line with 1008", () => {
  const engine = fakeRouter();
  const line = engine.open();
  line.say({ type: "registerfunction", id: "f" });
  const closings = [];
  for (let i = 0; i <= MALFORMED_FRAMES_MAX; i++) {
    line.say("hello");
    closings.push(line.connection.closing?.code);
  }

  assert.deepEqual(closings.slice(-2), [undefined, 1008]);
  assert.equal(engine.router.directory.function("default", "f"), undefined);
});

Deno.test("malformed frames that are far enough apart close nothing", () => {
  const engine = fakeRouter();
  const line = engine.open();
  for (let i = 0; i < 5 * MALFORMED_FRAMES_MAX; i++) {
    line.say("hello");
    engine.clock.tick(MALFORMED_WINDOW_MS / MALFORMED_FRAMES_MAX);
  }

  assert.equal(line.connection.closing, undefined);
});

Deno.test("a malformed reattach is ignored and not counted", () => {
  const line = fakeRouter().open();
  for (let i = 0; i < 2 * MALFORMED_FRAMES_MAX; i++) line.say({ type: "reattach" });

  assert.deepEqual(errors(line), []);
  assert.equal(line.connection.closing, undefined);
});

Deno.test("an empty frame, telemetry, a label and a pong are passed over", () => {
  const line = fakeRouter().open();

  line.say("");
  for (const mark of ["OTLP", "MTRC", "LOGS"]) line.events.binary(utf8.encode(`${mark}\u0001`));
  line.events.binary(new Uint8Array());
  line.say({ type: "registerservice", id: "shop" });
  line.say({ type: "pong" });

  assert.deepEqual(line.connection.take(), []);
});

Deno.test("a ping is answered with a pong", () => {
  const line = fakeRouter().open();

  line.say({ type: "ping" });

  assert.deepEqual(line.connection.take(), [{ type: "pong" }]);
});

Deno.test("telemetry on a worker's line is handed on with who sent it", () => {
  const { open, openBuiltin, telemetry } = fakeRouter();
  const line = open();
  const own = openBuiltin("engine-state");
  line.events.binary(utf8.encode('OTLP{"a":1}'));
  own.events.binary(utf8.encode("LOGS"));
  line.cut();
  line.events.binary(utf8.encode("MTRC{}"));

  const said = telemetry.map(({ bytes, ...frame }) => [frame, new TextDecoder().decode(bytes)]);
  const from = { worker_id: line.worker_id, address: "127.0.0.1" };
  assert.deepEqual(said, [
    [{ kind: "OTLP", ...from }, '{"a":1}'],
    [{ kind: "LOGS", worker_id: own.worker_id, address: null }, ""],
  ]);
});

Deno.test("a line's telemetry beyond its share of a second is dropped, with one warning", () => {
  const { open, telemetry, events, clock } = fakeRouter();
  const [line, other] = [open(), open()];
  events.length = 0;
  const large = new Uint8Array(TELEMETRY_BYTES_PER_SECOND / 2);
  large.set(utf8.encode("LOGS"));
  for (let i = 0; i < 5; i++) line.events.binary(large);
  other.events.binary(large);
  assert.equal(telemetry.length, 3, "each line has a share of its own");
  clock.tick(1_000);
  for (let i = 0; i < 5; i++) line.events.binary(large);

  assert.equal(telemetry.length, 5);
  assert.deepEqual(events.map(({ type }) => type), ["warning"]);
});

Deno.test("frames may be bytes, and a binary frame may be a message", () => {
  const engine = fakeRouter();
  const worker = engine.open();
  worker.events.binary(utf8.encode('{"type":"registerfunction","id":"größe"}'));
  const caller = engine.open();

  const said = '{"type":"invokefunction","invocation_id":"i","function_id":"größe","data":"ż"}';
  const memory = utf8.encode(`"ü${said}"ü`);
  caller.events.textBytes(memory, 3, memory.length - 3, true);

  const [call] = worker.connection.take();
  assert.equal(call?.type === "invokefunction" && call.data, "ż");
});

Deno.test("binary rubbish is malformed", () => {
  const line = fakeRouter().open();

  line.events.binary(new Uint8Array([0xff, 0xfe, 0, 1, 2]));

  assert.deepEqual(errors(line), ["bad_message"]);
});

Deno.test("a late frame of a line that is over changes nothing", () => {
  const engine = fakeRouter();
  const line = engine.open();
  line.cut();

  line.say({ type: "registerfunction", id: "f" });
  line.say("hello");
  line.events.drained();
  line.cut();

  assert.deepEqual(engine.router.directory.functions().filter(({ builtin }) => !builtin), []);
  assert.equal(engine.events.filter(({ type }) => type === "worker_disconnected").length, 1);
});

Deno.test("a payload that is too deep for its check is the caller's error, and ends the call", () => {
  const engine = fakeRouter();
  const worker = engine.open();
  worker.say({ type: "registerfunction", id: "f", request_format: { type: "object" } });
  const caller = engine.open();
  worker.say({
    type: "registerfunction",
    id: "f",
    request_format: { type: "object", required: 5 },
  });

  caller.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", data: {} });

  assert.deepEqual(errors(caller), ["invocation_error of i1"]);
  assert.equal(engine.router.runningCalls, 0);
});

Deno.test("whatever bytes arrive, nothing throws and the engine goes on", () => {
  const engine = fakeRouter();
  const random = new Random(3);
  const pieces = ["{", "}", '"', "\\", ":", ",", "[", "]", "null", "1e9", "\n", "é", "\u2028"];
  const heads = ['{"type":"invokefunction","invocation_id":"', '{"type":"invocationresult",', ""];
  let line = engine.open();
  for (let i = 0; i < 5_000; i++) {
    if (line.connection.closing) line = engine.open();
    const bytes = Uint8Array.from({ length: random.below(40) }, () => random.below(256));
    const length = random.below(12);
    const text = Array.from({ length }, () => random.pick(pieces)).join("");

    line.events.binary(bytes);
    line.say(random.pick(heads) + text);
  }

  const { worker, caller, id } = calling(engine);
  worker.say({ type: "invocationresult", invocation_id: id, function_id: "f", result: 1 });
  assert.equal(caller.connection.take().length, 1);
});

Deno.test("a mistake of ours while a frame is passed on ends nobody's line", () => {
  const engine = fakeRouter();
  const { worker, caller } = calling(engine);
  const forward = worker.connection.forward.bind(worker.connection);
  worker.connection.forward = () => {
    throw new Error("broken assumption");
  };
  const call = '{"type":"invokefunction","invocation_id":"i2","function_id":"f","data":1}';

  caller.say(call);
  worker.connection.forward = forward;
  caller.say(call.replace("i2", "i3"));

  assert.equal(worker.connection.take().at(-1)?.type, "invokefunction");
  const warning = engine.events.find((event) => event.type === "warning");
  assert.match(warning?.detail ?? "", /broken assumption/);
});
