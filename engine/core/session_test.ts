/**
 * Frames that are malformed, empty, binary, too many or too late.
 *
 * @module
 */
import assert from "node:assert/strict";
import { JSON_DEPTH_MAX } from "../../sdk/typescript/wire/json_depth.ts";
import {
  type FakeRouter,
  fakeRouter,
  type FakeWorker,
  handed,
} from "../../tests/fakes/fake_router.ts";
import { Random } from "../../tests/fakes/random.ts";
import { TELEMETRY_BYTES_PER_SECOND } from "./guards.ts";
import { MALFORMED_FRAMES_MAX, MALFORMED_WINDOW_MS } from "./session.ts";
import { JSON_PARTS_MAX } from "./wire/members.ts";
import { PARSED_BYTES_MAX } from "./wire/parsed_frame.ts";

const utf8 = new TextEncoder();

/**
 * A worker that executes `f`, a caller that waits for it under `i1`, and the engine's id of the
 * call.
 */
function calling(engine: FakeRouter): { worker: FakeWorker; caller: FakeWorker; id: string } {
  const worker = engine.open();
  worker.say({ type: "registerfunction", id: "f" });
  const caller = engine.open();
  caller.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", data: 1 });
  const [call] = worker.connection.take();
  assert.equal(call?.type, "invokefunction");
  return { worker, caller, id: call.invocation_id! };
}

/** The code and the id of each error that a connection was sent. */
function errors({ connection }: FakeWorker): string[] {
  return connection.take().map((message) => {
    if (message.type === "error") return message.error.code;
    assert.equal(message.type, "invocationresult");
    return `${message.error?.code} of ${message.invocation_id}`;
  });
}

Deno.test("a malformed call with an id ends with bad_message for that id", () => {
  const peer = fakeRouter().open();

  peer.say('{"type":"invokefunction","invocation_id":"i1","function_id":5}');

  assert.deepEqual(peer.connection.take(), [{
    type: "invocationresult",
    invocation_id: "i1",
    function_id: "",
    error: {
      code: "bad_message",
      message: "invokefunction.function_id: expected a string, received 5",
    },
  }]);
});

Deno.test("a truncated call ends with bad_message if its id can be read", () => {
  const peer = fakeRouter().open();

  peer.say('{"type":"invokefunction","invocation_id":"i1","function_id":"f","data":{"a":');

  assert.deepEqual(errors(peer), ["bad_message of i1"]);
});

for (
  const frame of ["hello", "[]", "{}", '{"type":"teleport"}', '{"type":"registerfunction"}', " "]
) {
  Deno.test(`${frame} is answered with an error frame`, () => {
    const peer = fakeRouter().open();

    peer.say(frame);

    assert.deepEqual(errors(peer), ["bad_message"]);
  });
}

Deno.test("a message of an unknown type with an id ends with bad_message for that id", () => {
  const peer = fakeRouter().open();

  peer.say('{"type":"teleport","invocation_id":"i1"}');

  assert.deepEqual(errors(peer), ["bad_message of i1"]);
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
  Deno.test(`${name} ends the call for its caller and is reported to the callee`, () => {
    const { caller, worker, id } = calling(fakeRouter());

    worker.say(text.replace("ID", id));

    assert.deepEqual(errors(worker), ["bad_message"]);
    assert.deepEqual(errors(caller), ["bad_message of i1"]);
  });
}

const DEEP = "[".repeat(JSON_DEPTH_MAX + 1) + "]".repeat(JSON_DEPTH_MAX + 1);

Deno.test("a frame that is nested too deeply is malformed, and nothing else is affected", () => {
  const { caller, worker, id } = calling(fakeRouter());

  caller.say(` {"type":"invokefunction","invocation_id":"deep","function_id":"f","data":${DEEP}}`);
  caller.say(`{"type":"registerfunction","id":"g","metadata":${DEEP}}`);
  worker.say({ type: "invocationresult", invocation_id: id, function_id: "f", result: 1 });

  const end = "undefined of i1"; // Without an error.
  assert.deepEqual(errors(caller), ["bad_message of deep", "bad_message", end]);
  assert.deepEqual(errors(worker), []);
});

Deno.test("a payload that is only forwarded may be nested more deeply", () => {
  const { caller, worker } = calling(fakeRouter());
  const frame = `{"type":"invokefunction","invocation_id":"i2","function_id":"f","data":${DEEP}}`;

  caller.say(frame);

  const [text] = worker.connection.takeTexts();
  assert.ok(text?.endsWith(`"data":${DEEP}}`));
});

for (const [order, space] of [["canonical", ""], ["another", " "]]) {
  Deno.test(`a deep payload for a built-in function is invalid, in ${order} order`, () => {
    const engine = fakeRouter();
    const builtin = engine.openBuiltin("engine-state");
    builtin.say({ type: "registerfunction", id: "state::set" });
    const caller = engine.open();
    const call = `{"type":"invokefunction","invocation_id":"i1","function_id":"state::set"`;

    caller.say(`${space}${call},"data":{"value":${DEEP}}}`);

    assert.deepEqual(errors(caller), ["invalid_payload of i1"]);
    assert.deepEqual(builtin.connection.take(), []);
  });

  Deno.test(`a deep result for a built-in caller fails that call, in ${order} order`, () => {
    const engine = fakeRouter();
    const worker = engine.open();
    worker.say({ type: "registerfunction", id: "f" });
    const builtin = engine.openBuiltin("engine-http");
    builtin.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", data: 1 });
    const [call] = handed(worker);

    const of = `"invocation_id":"${call!.invocation_id}","function_id":"f"`;
    worker.say(`${space}{"type":"invocationresult",${of},"result":${DEEP}}`);

    assert.deepEqual(errors(builtin), ["bad_message of i1"]);
    assert.equal(engine.router.runningCalls, 0);
  });
}

Deno.test("a large frame in any order is forwarded without its payload being parsed", () => {
  const { caller, worker, id } = calling(fakeRouter());
  // Not JSON: only its receiver would notice.
  const payload = `["${"x".repeat(PARSED_BYTES_MAX)}", nothing ]`;

  caller.say(`{"function_id":"f","data":${payload} ,"invocation_id":"i2","type":"invokefunction"}`);
  const [call] = worker.connection.takeTexts();
  assert.ok(call?.endsWith(`,"function_id":"f","data":${payload}}`));
  worker.say(
    `{"result": ${payload},"invocation_id":"${id}","function_id":"f",` +
      `"type":"invocationresult"}`,
  );
  const [result] = caller.connection.takeTexts();

  assert.ok(result?.endsWith(`,"function_id":"f","result":${payload}}`));
});

Deno.test("a payload with too many parts is invalid where it would have to be parsed", () => {
  const engine = fakeRouter();
  const worker = engine.open();
  worker.say({ type: "registerfunction", id: "f", request_format: { type: "object" } });
  const builtin = engine.openBuiltin("engine-state");
  builtin.say({ type: "registerfunction", id: "state::set" });
  const caller = engine.open();
  const payload = `[${"[],".repeat(JSON_PARTS_MAX)}1]`;

  for (const id of ["f", "state::set"]) {
    const of = `"invocation_id":"${id}","function_id":"${id}"`;
    caller.say(`{"type":"invokefunction",${of},"data":${payload}}`);
  }

  assert.deepEqual(errors(caller), ["invalid_payload of f", "invalid_payload of state::set"]);
  assert.deepEqual([worker, builtin].flatMap(({ connection }) => connection.take()), []);
});

Deno.test("a message other than a call or result is refused above its bound, unparsed", () => {
  const engine = fakeRouter();
  const worker = engine.open();
  const long = "x".repeat(PARSED_BYTES_MAX);

  for (let i = 0; i <= MALFORMED_FRAMES_MAX; i++) {
    worker.say(`{"type":"registerfunction","id":"a::b","description":"${long}"}`);
  }

  const [first] = worker.connection.take();
  assert.equal(worker.connection.closing, undefined);
  assert.deepEqual(first, {
    type: "error",
    error: {
      code: "bad_message",
      message: `registerfunction of a::b: the message has ${PARSED_BYTES_MAX + 56} bytes, at ` +
        `most ${PARSED_BYTES_MAX} are accepted; shorten its description, schemas, metadata or config`,
      details: { bytes: PARSED_BYTES_MAX + 56, limit_bytes: PARSED_BYTES_MAX },
    },
  });
});

Deno.test("a malformed result from another worker than the callee ends nothing", () => {
  const engine = fakeRouter();
  const { caller, id } = calling(engine);
  const liar = engine.open();

  liar.say(`{"type":"invocationresult","invocation_id":"${id}"}`);

  assert.deepEqual(errors(liar), ["bad_message"]);
  assert.deepEqual(errors(caller), []);
});

Deno.test("a bad namespace is INVALID_NAMESPACE, for the call or the connection", () => {
  const peer = fakeRouter().open();

  peer.say({ type: "invokefunction", invocation_id: "i1", function_id: "f", namespace: "" });
  peer.say({ type: "registerfunction", id: "f", namespace: 5 });

  assert.deepEqual(errors(peer), ["INVALID_NAMESPACE of i1", "INVALID_NAMESPACE"]);
});

Deno.test("too many malformed frames within the window close the connection with 1008", () => {
  const engine = fakeRouter();
  const peer = engine.open();
  peer.say({ type: "registerfunction", id: "f" });
  const closings = [];
  for (let i = 0; i <= MALFORMED_FRAMES_MAX; i++) {
    peer.say("hello");
    closings.push(peer.connection.closing?.code);
  }

  assert.deepEqual(closings.slice(-2), [undefined, 1008]);
  assert.equal(engine.router.directory.function("default", "f"), undefined);
});

Deno.test("malformed frames over a longer time close nothing", () => {
  const engine = fakeRouter();
  const peer = engine.open();
  for (let i = 0; i < 5 * MALFORMED_FRAMES_MAX; i++) {
    peer.say("hello");
    engine.clock.tick(MALFORMED_WINDOW_MS / MALFORMED_FRAMES_MAX);
  }

  assert.equal(peer.connection.closing, undefined);
});

Deno.test("a malformed reattach is ignored and not counted", () => {
  const peer = fakeRouter().open();
  for (let i = 0; i < 2 * MALFORMED_FRAMES_MAX; i++) peer.say({ type: "reattach" });

  assert.deepEqual(errors(peer), []);
  assert.equal(peer.connection.closing, undefined);
});

Deno.test("an empty frame, telemetry, a label and a pong are ignored", () => {
  const peer = fakeRouter().open();

  peer.say("");
  for (const mark of ["OTLP", "MTRC", "LOGS"]) peer.events.binary(utf8.encode(`${mark}\u0001`));
  peer.events.binary(new Uint8Array());
  peer.say({ type: "registerservice", id: "shop" });
  peer.say({ type: "pong" });

  assert.deepEqual(peer.connection.take(), []);
});

Deno.test("a ping is answered with a pong", () => {
  const peer = fakeRouter().open();

  peer.say({ type: "ping" });

  assert.deepEqual(peer.connection.take(), [{ type: "pong" }]);
});

Deno.test("telemetry on a worker's connection is passed on with its sender", () => {
  const { open, openBuiltin, telemetry } = fakeRouter();
  const peer = open();
  const own = openBuiltin("engine-state");
  peer.events.binary(utf8.encode('OTLP{"a":1}'));
  own.events.binary(utf8.encode("LOGS"));
  peer.cut();
  peer.events.binary(utf8.encode("MTRC{}"));

  const said = telemetry.map(({ bytes, ...frame }) => [frame, new TextDecoder().decode(bytes)]);
  const from = { worker_id: peer.worker_id, address: "127.0.0.1" };
  assert.deepEqual(said, [
    [{ kind: "OTLP", ...from }, '{"a":1}'],
    [{ kind: "LOGS", worker_id: own.worker_id, address: null }, ""],
  ]);
});

Deno.test("telemetry of a connection beyond its budget is dropped, with one warning", () => {
  const { open, telemetry, events, clock } = fakeRouter();
  const [peer, other] = [open(), open()];
  events.length = 0;
  const large = new Uint8Array(TELEMETRY_BYTES_PER_SECOND / 2);
  large.set(utf8.encode("LOGS"));
  for (let i = 0; i < 5; i++) peer.events.binary(large);
  other.events.binary(large);
  assert.equal(telemetry.length, 3, "each connection has its own budget");
  clock.tick(1_000);
  for (let i = 0; i < 5; i++) peer.events.binary(large);

  assert.equal(telemetry.length, 5);
  assert.deepEqual(events.map(({ type }) => type), ["warning"]);
});

Deno.test("a frame may come as bytes, and a binary frame may be a message", () => {
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

Deno.test("a binary frame that is not JSON is malformed", () => {
  const peer = fakeRouter().open();

  peer.events.binary(new Uint8Array([0xff, 0xfe, 0, 1, 2]));

  assert.deepEqual(errors(peer), ["bad_message"]);
});

Deno.test("a late frame of a closed connection changes nothing", () => {
  const engine = fakeRouter();
  const peer = engine.open();
  peer.cut();

  peer.say({ type: "registerfunction", id: "f" });
  peer.say("hello");
  peer.events.drained();
  peer.cut();

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

Deno.test("no input throws, and the engine goes on", () => {
  const engine = fakeRouter();
  const random = new Random(3);
  const pieces = ["{", "}", '"', "\\", ":", ",", "[", "]", "null", "1e9", "\n", "é", "\u2028"];
  const heads = ['{"type":"invokefunction","invocation_id":"', '{"type":"invocationresult",', ""];
  let peer = engine.open();
  for (let i = 0; i < 5_000; i++) {
    if (peer.connection.closing) peer = engine.open();
    const bytes = Uint8Array.from({ length: random.below(40) }, () => random.below(256));
    const length = random.below(12);
    const text = Array.from({ length }, () => random.pick(pieces)).join("");

    peer.events.binary(bytes);
    peer.say(random.pick(heads) + text);
  }

  const { worker, caller, id } = calling(engine);
  worker.say({ type: "invocationresult", invocation_id: id, function_id: "f", result: 1 });
  assert.equal(caller.connection.take().length, 1);
});

Deno.test("an internal error while a frame is forwarded closes no connection", () => {
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
