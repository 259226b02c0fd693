/**
 * PROTOCOL 1.9 from the other end of the wire: what does not fit is answered, and hurts nobody.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { Random } from "../fakes/random.ts";
import { proveOnWire, type WireClient } from "../fakes/wire_engine.ts";

/** The next message is an `error` frame of code `bad_message`, in its exact shape. */
async function hearsError(line: WireClient, about: string): Promise<string> {
  const { type, error, ...rest } = await line.receive();
  assert.deepEqual([type, rest], ["error", {}], about);
  const { code, message, ...more } = error as JsonObject;
  assert.deepEqual([code, typeof message, more], ["bad_message", "string", {}], about);
  return message as string;
}

/** The next message is the failed result of a call. */
async function hearsFailure(
  line: WireClient,
  invocation_id: string,
  about: string,
): Promise<JsonObject> {
  const answer = await line.receive();
  assert.deepEqual([answer.type, answer.invocation_id], ["invocationresult", invocation_id], about);
  assert.ok(!("result" in answer));
  const error = answer.error as JsonObject;
  assert.deepEqual([error.code, typeof error.message], ["bad_message", "string"], about);
  return error;
}

/** Fields that are needed, by type, in a message that is complete. */
const COMPLETE: Record<string, JsonObject> = {
  registerfunction: { id: "f" },
  unregisterfunction: { id: "f" },
  registertriggertype: { id: "t", description: "d" },
  unregistertriggertype: { id: "t" },
  registertrigger: { id: "i", trigger_type: "t", function_id: "f" },
  triggerregistrationresult: { id: "i", trigger_type: "t", function_id: "f" },
  unregistertrigger: { id: "i" },
  invokefunction: { function_id: "f" },
  invocationresult: { invocation_id: "1", function_id: "f" },
  invocationprogress: { invocation_id: "1", data: 1 },
  cancelinvocation: { invocation_id: "1" },
};

proveOnWire("frames that do not fit", {
  "what is not JSON, or no object, is told and nothing else happens": async ({ open }) => {
    const line = await open();
    const texts = [
      "{",
      "nonsense",
      "[]",
      "5",
      '"text"',
      "null",
      "{}{}",
      '{"type":"ping"',
      "\u0000",
      " ",
    ];

    for (const text of texts) {
      await line.send(text);
      await hearsError(line, text);
    }
    await line.hearsNothing();
  },

  "a type that is unknown, missing, no text, or not for workers to send": async ({ open }) => {
    const line = await open();
    const types = [
      "nonsense",
      "INVOKEFUNCTION",
      "invoke_function",
      "",
      5,
      null,
      ["ping"],
      "__proto__",
    ];
    const engines = [
      "workerregistered",
      "registrationrejected",
      "error",
      "constructor",
      "toString",
    ];

    await line.send({});
    await hearsError(line, "nothing");
    for (const type of [...types, ...engines]) {
      await line.send({ type, id: "x", function_id: "x" });
      await hearsError(line, JSON.stringify(type));
    }
  },

  "each required field that is missing, null or of another type is named": async ({ open }) => {
    for (const [type, fields] of Object.entries(COMPLETE)) {
      const line = await open();
      for (const name of Object.keys(fields).filter((name) => name !== "data")) {
        for (const value of [undefined, null, 5, {}, ["x"], true]) {
          const broken = JSON.stringify({ type, ...fields, [name]: value });
          await line.send(broken);
          assert.ok((await hearsError(line, broken)).includes(`${type}.${name}`), broken);
        }
      }
    }
    const line = await open();
    await line.send({ type: "invocationprogress", invocation_id: "1" });
    assert.match(await hearsError(line, "no data"), /invocationprogress\.data/);
  },

  "optional fields are of their type or null": async ({ open }) => {
    const line = await open();
    const wrong: [string, string, Json][] = [
      ["invokefunction", "action", "void"],
      ["invokefunction", "action", { type: "later" }],
      ["invokefunction", "action", { type: "enqueue" }],
      ["invokefunction", "traceparent", 5],
      ["invokefunction", "baggage", {}],
      ...[0, -1, 1.5, "100", 1e300, true].map((value): [string, string, Json] => {
        return ["invokefunction", "timeout_ms", value];
      }),
      ["invokefunction", "invocation_id", 5],
      ["registerfunction", "description", 5],
      ["registerfunction", "invocation", "url"],
      ["cancelinvocation", "reason", 5],
    ];

    for (const [type, name, value] of wrong) {
      const broken = JSON.stringify({ type, ...COMPLETE[type], [name]: value });
      await line.send(broken);
      if (type === "cancelinvocation") await line.receive();
      else assert.ok((await hearsError(line, broken)).includes(name), broken);
    }
    await line.hearsNothing();
  },

  "where an `invocation_id` can be read, the call it names has failed": async ({ open }) => {
    const line = await open();
    const head = '{"type":"invokefunction","invocation_id":"mine"';
    const texts = [
      `${head}}`,
      `${head},"function_id":5}`,
      `${head},"function_id":"f","timeout_ms":0}`,
      `${head},"function_id":"f","timeout_ms":01}`,
      `${head},"function_id":"f","action":"void"}`,
      '{"type":"nonsense","invocation_id":"mine"}',
      '{"function_id":"f","data":{},"invocation_id":"mine"}',
      `${head},"function_id":"f","data":{"cut`,
      `${head},"function_id":"f","data":tru}`,
    ];

    for (const text of texts) {
      await line.send(text);
      await hearsFailure(line, "mine", text);
    }
    await line.hearsNothing();
  },

  "the broken answer of a worker ends the call, and both are told": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("broken::f");
    const answers = [
      (id: string) => `{"type":"invocationresult","invocation_id":"${id}","result":1}`,
      (id: string) => `{"type":"invocationresult","invocation_id":"${id}","function_id":7}`,
      (id: string) =>
        `{"type":"invocationresult","invocation_id":"${id}","function_id":"f","result":[1`,
      (id: string) => `{"type":"invocationprogress","invocation_id":"${id}"}`,
    ];

    for (const answer of answers) {
      await caller.send({
        type: "invokefunction",
        invocation_id: "mine",
        function_id: "broken::f",
      });
      const call = await worker.receive();
      await worker.send(answer(call.invocation_id as string));

      await hearsError(worker, answer("x"));
      await hearsFailure(caller, "mine", answer("x"));
      await worker.answer(call, { result: "too late" });
      await worker.hearsNothing();
      await caller.hearsNothing();
    }
  },

  "a broken answer to the call of another ends nothing": async ({ open }) => {
    const [caller, worker, other] = [await open(), await open(), await open()];
    await worker.offer("broken::g");
    await caller.send({ type: "invokefunction", invocation_id: "mine", function_id: "broken::g" });
    const call = await worker.receive();

    await other.send({ type: "invocationresult", invocation_id: call.invocation_id! });
    await hearsError(other, "no function_id");
    await other.send({ type: "invocationresult", invocation_id: "mine" });
    await hearsError(other, "no function_id");
    await worker.answer(call, { result: "fine" });

    assert.equal((await caller.receive()).result, "fine");
  },

  "the 101st within 10 s ends the line with 1008, and only that line": async ({ open }) => {
    const [line, other] = [await open(), await open()];
    await line.offer("many::f");

    for (let i = 0; i < 100; i++) {
      await line.send("broken");
      await hearsError(line, `${i}`);
    }
    await line.hearsNothing();
    await line.send("broken");

    assert.equal((await line.goodbye()).code, 1008);
    assert.equal((await other.failure("many::f")).code, "function_not_found");
  },

  "a malformed `reattach` is not counted": async ({ open }) => {
    const line = await open();

    for (let i = 0; i < 150; i++) await line.send({ type: "reattach" });

    await line.hearsNothing();
  },

  "random text, and random changes of what is right, never stop the engine": async ({ open }) => {
    const random = new Random(7);
    const right = Object.entries(COMPLETE).map(([type, fields]) =>
      JSON.stringify({ type, ...fields })
    );

    for (let round = 0; round < 10; round++) {
      const line = await open();
      for (let i = 0; i < 90; i++) {
        const text = random.pick(right);
        const at = random.below(text.length);
        const some = String.fromCharCode(random.below(0xd7ff));
        await line.send(text.slice(0, at) + some + text.slice(at + random.below(3)));
      }
      await line.send({ type: "ping" });
      while ((await line.receive()).type !== "pong");
    }
    await (await open()).hearsNothing();
  },

  "a payload nested 100,000 deep passes through, or is refused in words": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("deep::f");
    const data = "[".repeat(100_000) + "]".repeat(100_000);
    const orders = [
      `{"type":"invokefunction","invocation_id":"1","function_id":"deep::f","data":${data}}`,
      `{"data":${data},"function_id":"deep::f","invocation_id":"1","type":"invokefunction"}`,
    ];

    for (const order of orders) {
      await caller.send(order, { type: "ping" });
      const next = await caller.receive();
      if (next.type !== "pong") {
        assert.ok(next.error);
        assert.deepEqual(await caller.receive(), { type: "pong" });
        continue;
      }
      const { text, message } = await worker.receiveRaw();
      assert.ok(text.includes(data));
      await worker.answer(message, { result: 1 });
      assert.equal((await caller.receive()).result, 1);
    }
    await worker.hearsNothing();
  },
});

proveOnWire("heaps of what cannot be done", {
  "10,000 calls to an unknown function are all answered": async ({ open }) => {
    const line = await open();
    const type = "invokefunction";

    for (let i = 0; i < 10_000; i += 500) {
      for (let j = i; j < i + 500; j++) {
        await line.send({ type, invocation_id: `${j}`, function_id: "nobody::there", data: { j } });
      }
      for (let j = i; j < i + 500; j++) {
        const { invocation_id, error } = await line.receive() as { error: JsonObject } & JsonObject;
        assert.deepEqual([invocation_id, error.code], [`${j}`, "function_not_found"]);
      }
    }

    await line.hearsNothing();
  },

  "10,000 void calls to an unknown function are not": async ({ open }) => {
    const line = await open();

    const void_ = {
      type: "invokefunction",
      function_id: "nobody::there",
      action: { type: "void" },
    };
    for (let i = 0; i < 10_000; i++) await line.send(void_);

    await line.hearsNothing();
  },
});
