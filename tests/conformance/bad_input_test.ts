/**
 * PROTOCOL 1.9 from the other end of the wire: invalid frames get an error reply and affect no one else.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { Random } from "../fakes/random.ts";
import { proveOnWire, type WireClient } from "../fakes/wire_engine.ts";

/** The next message is an `error` frame of code `bad_message`, in its exact shape. */
async function receivesError(client: WireClient, about: string): Promise<string> {
  const { type, error, ...rest } = await client.receive();
  assert.deepEqual([type, rest], ["error", {}], about);
  const { code, message, ...more } = error as JsonObject;
  assert.deepEqual([code, typeof message, more], ["bad_message", "string", {}], about);
  return message as string;
}

/** The next message is the failed result of a call. */
async function receivesFailure(
  client: WireClient,
  invocation_id: string,
  about: string,
): Promise<JsonObject> {
  const answer = await client.receive();
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

proveOnWire("invalid frames", {
  "a frame that is not a JSON object gets an error reply and has no effect": async ({ open }) => {
    const client = await open();
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
      await client.send(text);
      await receivesError(client, text);
    }
    await client.receivesNothing();
  },

  "a type that is unknown, missing, no text, or not for workers to send": async ({ open }) => {
    const client = await open();
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

    await client.send({});
    await receivesError(client, "nothing");
    for (const type of [...types, ...engines]) {
      await client.send({ type, id: "x", function_id: "x" });
      await receivesError(client, JSON.stringify(type));
    }
  },

  "each required field that is missing, null or of another type is named": async ({ open }) => {
    for (const [type, fields] of Object.entries(COMPLETE)) {
      const client = await open();
      for (const name of Object.keys(fields).filter((name) => name !== "data")) {
        for (const value of [undefined, null, 5, {}, ["x"], true]) {
          const broken = JSON.stringify({ type, ...fields, [name]: value });
          await client.send(broken);
          assert.ok((await receivesError(client, broken)).includes(`${type}.${name}`), broken);
        }
      }
    }
    const client = await open();
    await client.send({ type: "invocationprogress", invocation_id: "1" });
    assert.match(await receivesError(client, "no data"), /invocationprogress\.data/);
  },

  "optional fields are of their type or null": async ({ open }) => {
    const client = await open();
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
      await client.send(broken);
      if (type === "cancelinvocation") await client.receive();
      else assert.ok((await receivesError(client, broken)).includes(name), broken);
    }
    await client.receivesNothing();
  },

  "where an `invocation_id` can be read, the call it names has failed": async ({ open }) => {
    const client = await open();
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
      await client.send(text);
      await receivesFailure(client, "mine", text);
    }
    await client.receivesNothing();
  },

  "an invalid result ends the call, and worker and caller get the error": async ({ open }) => {
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

      await receivesError(worker, answer("x"));
      await receivesFailure(caller, "mine", answer("x"));
      await worker.answer(call, { result: "too late" });
      await worker.receivesNothing();
      await caller.receivesNothing();
    }
  },

  "an invalid result for another worker's call ends nothing": async ({ open }) => {
    const [caller, worker, other] = [await open(), await open(), await open()];
    await worker.offer("broken::g");
    await caller.send({ type: "invokefunction", invocation_id: "mine", function_id: "broken::g" });
    const call = await worker.receive();

    await other.send({ type: "invocationresult", invocation_id: call.invocation_id! });
    await receivesError(other, "no function_id");
    await other.send({ type: "invocationresult", invocation_id: "mine" });
    await receivesError(other, "no function_id");
    await worker.answer(call, { result: "fine" });

    assert.equal((await caller.receive()).result, "fine");
  },

  "the 101st within 10 s closes the connection with 1008, and only that one": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    await client.offer("many::f");

    for (let i = 0; i < 100; i++) {
      await client.send("broken");
      await receivesError(client, `${i}`);
    }
    await client.receivesNothing();
    await client.send("broken");

    assert.equal((await client.closeFrame()).code, 1008);
    assert.equal((await other.failure("many::f")).code, "function_not_found");
  },

  "a malformed `reattach` is not counted": async ({ open }) => {
    const client = await open();

    for (let i = 0; i < 150; i++) await client.send({ type: "reattach" });

    await client.receivesNothing();
  },

  "random text, and random changes of what is right, never stop the engine": async ({ open }) => {
    const random = new Random(7);
    const right = Object.entries(COMPLETE).map(([type, fields]) =>
      JSON.stringify({ type, ...fields })
    );

    for (let round = 0; round < 10; round++) {
      const client = await open();
      for (let i = 0; i < 90; i++) {
        const text = random.pick(right);
        const at = random.below(text.length);
        const some = String.fromCharCode(random.below(0xd7ff));
        await client.send(text.slice(0, at) + some + text.slice(at + random.below(3)));
      }
      await client.send({ type: "ping" });
      while ((await client.receive()).type !== "pong");
    }
    await (await open()).receivesNothing();
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
    await worker.receivesNothing();
  },
});

proveOnWire("floods of calls that fail", {
  "10,000 calls to an unknown function are all answered": async ({ open }) => {
    const client = await open();
    const type = "invokefunction";

    for (let i = 0; i < 10_000; i += 500) {
      for (let j = i; j < i + 500; j++) {
        await client.send({
          type,
          invocation_id: `${j}`,
          function_id: "missing::f",
          data: { j },
        });
      }
      for (let j = i; j < i + 500; j++) {
        const { invocation_id, error } = await client.receive() as
          & { error: JsonObject }
          & JsonObject;
        assert.deepEqual([invocation_id, error.code], [`${j}`, "function_not_found"]);
      }
    }

    await client.receivesNothing();
  },

  "10,000 void calls to an unknown function are not": async ({ open }) => {
    const client = await open();

    const void_ = {
      type: "invokefunction",
      function_id: "missing::f",
      action: { type: "void" },
    };
    for (let i = 0; i < 10_000; i++) await client.send(void_);

    await client.receivesNothing();
  },
});
