/**
 * PROTOCOL 2.1, 2.3, 2.13, 3.5, 3.8 and 3.9 from the other end of the wire: functions come and go,
 * have replicas, namespaces and a shape.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { until } from "../fakes/until.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

interface FunctionList {
  readonly functions: readonly JsonObject[];
}

const PRICE = {
  type: "object",
  properties: { sku: { type: "string" } },
  required: ["sku"],
};

proveOnWire("functions", {
  "registering is not answered, and doing it again overwrites": async ({ open }) => {
    const client = await open();
    await client.offer({ id: "twice::f", description: "old" }, {
      id: "twice::f",
      description: "new",
    });

    const { functions } = await client.value<FunctionList>("engine::functions::list", {
      prefix: "twice::",
    });

    assert.deepEqual(functions.map(({ description }) => description), ["new"]);
  },

  "unregistering ends it, for its owner only, and is not answered": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    await client.offer("ends::f");

    await other.send({ type: "unregisterfunction", id: "ends::f" });
    await other.send({ type: "unregisterfunction", id: "ends::unknown" });
    await other.receivesNothing();
    await other.send({ type: "invokefunction", invocation_id: "1", function_id: "ends::f" });
    await client.run({ result: "still there" });
    assert.equal((await other.receive()).result, "still there");
    await client.send({ type: "unregisterfunction", id: "ends::f" });
    await client.receivesNothing();

    assert.equal((await other.failure("ends::f")).code, "function_not_found");
  },

  "calls that run while a function is unregistered still end well": async ({ open }) => {
    const [caller, client] = [await open(), await open()];
    await client.offer("ends::g");
    await caller.send({ type: "invokefunction", invocation_id: "1", function_id: "ends::g" });
    const call = await client.receive();

    await client.send({ type: "unregisterfunction", id: "ends::g" });
    await client.answer(call, { result: 1 });

    assert.equal((await caller.receive()).result, 1);
  },

  "ids of the engine are rejected, and nothing else of the worker": async ({ open }) => {
    const client = await open();

    await client.send(
      { type: "registerfunction", id: "engine::functions::list" },
      { type: "registerfunction", id: "engine::mine", namespace: "shop" },
      { type: "registerfunction", id: "engines::mine" },
    );

    for (
      const [function_id, namespace] of [["engine::functions::list", "default"], [
        "engine::mine",
        "shop",
      ]]
    ) {
      const { message, ...rejected } = await client.receive();
      assert.equal(typeof message, "string");
      assert.deepEqual(rejected, {
        type: "registrationrejected",
        code: "FUNCTION_NAMESPACE_CONFLICT",
        namespace,
        function_id,
        owner_worker_id: "engine",
      });
    }
    await client.receivesNothing();
    await client.send({ type: "invokefunction", invocation_id: "1", function_id: "engines::mine" });
    assert.equal((await client.run()).function_id, "engines::mine");
    await client.receive();
  },

  "a built-in function cannot be replaced, and the attempt gets no reply": async ({ open }) => {
    const client = await open();

    await client.offer("state::get");
    const missing = await client.call("state::get", { scope: "taken", key: "over" });

    assert.ok(!("result" in missing) && !("error" in missing));
    await client.send({ type: "unregisterfunction", id: "state::get" });
    assert.ok(!("error" in await client.call("state::get", { scope: "taken", key: "over" })));
  },
});

proveOnWire("replicas", {
  "calls go to the least busy worker, equals take turns": async ({ open }) => {
    const [caller, a, b] = [await open(), await open(), await open()];
    await a.offer("two::f");
    await b.offer("two::f");
    const call = (n: number) => {
      return caller.send({
        type: "invokefunction",
        invocation_id: `${n}`,
        function_id: "two::f",
        data: n,
      });
    };

    for (let n = 0; n < 4; n++) await call(n);
    await caller.receivesNothing();
    const calls = [await a.receive(), await a.receive(), await b.receive(), await b.receive()];
    assert.deepEqual(calls.map(({ data }) => data as number).sort(), [0, 1, 2, 3]);
    for (const each of calls.slice(0, 2)) await a.answer(each);
    await a.receivesNothing();
    for (let n = 4; n < 6; n++) await call(n);

    assert.deepEqual([(await a.receive()).data, (await a.receive()).data], [4, 5]);
    await b.receivesNothing();
  },

  "a replica that leaves removes only itself, the last one the function": async ({ open }) => {
    const [caller, a, b] = [await open(), await open(), await open()];
    await a.offer("leave::f");
    await b.offer("leave::f");

    await a.send({ type: "unregisterfunction", id: "leave::f" });
    await a.receivesNothing();
    for (let n = 0; n < 2; n++) {
      await caller.send({ type: "invokefunction", invocation_id: `${n}`, function_id: "leave::f" });
      await b.run({ result: n });
      assert.equal((await caller.receive()).result, n);
    }
    b.destroy();
    await caller.send({ type: "ping" });
    await caller.receive();

    const error = await untilGone(() => caller.call("leave::f", undefined, { timeout_ms: 50 }));
    assert.deepEqual(error, { code: "function_not_found", message: "Function leave::f not found" });
  },

  "listings show one entry, that of the newest registration": async ({ open }) => {
    const [a, b] = [await open(), await open()];
    const prefix = { prefix: "newest::" };
    const describe = async () => {
      const { functions } = await a.value<FunctionList>("engine::functions::list", prefix);
      return functions.map(({ description, worker_name }) => `${description} ${worker_name}`);
    };
    await b.announce("newer");

    await a.offer({ id: "newest::f", description: "first" });
    await b.offer({ id: "newest::f", description: "second" });
    const both = await describe();
    await b.send({ type: "unregisterfunction", id: "newest::f" });
    await b.receivesNothing();

    assert.deepEqual([both, await describe()], [["second newer"], ["first newest"]]);
  },
});

proveOnWire("namespaces", {
  "one id in two namespaces is two functions, without a fallback": async ({ open }) => {
    const [caller, a, b] = [await open(), await open(), await open()];
    await a.offer("space::f");
    await b.offer({ id: "space::f", namespace: "shop" });

    const run = async (client: typeof a, more: JsonObject) => {
      await caller.send({
        type: "invokefunction",
        invocation_id: "1",
        function_id: "space::f",
        ...more,
      });
      const call = await client.run();
      await caller.receive();
      return call.namespace;
    };

    assert.equal(await run(a, {}), undefined);
    assert.equal(await run(a, { namespace: "default" }), undefined);
    assert.equal(await run(b, { namespace: "shop" }), "shop");
    const none = await caller.failure("space::f", null, { namespace: "elsewhere" });
    assert.deepEqual([none.code, none.message], [
      "function_not_found",
      "Function space::f not found",
    ]);
  },

  "an empty namespace, or one that is no text, is `INVALID_NAMESPACE`": async ({ open }) => {
    const client = await open();

    for (const namespace of ["", 5, {}, false]) {
      const { code } = await client.failure("space::x", null, { namespace });
      assert.equal(code, "INVALID_NAMESPACE");
      await client.send({ type: "registerfunction", id: "space::x", namespace });
      const { type, error } = await client.receive() as { error: JsonObject } & JsonObject;
      assert.deepEqual([type, error.code], ["error", "INVALID_NAMESPACE"]);
    }
  },

  "built-in functions exist in `default` only": async ({ open }) => {
    const client = await open();

    for (const id of ["state::get", "engine::functions::list", "engine::workers::register"]) {
      const { code } = await client.failure(id, {}, { namespace: "shop" });
      assert.equal(code, "function_not_found", id);
    }
  },
});

proveOnWire("payload check", {
  "a payload that does not fit never reaches the worker": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer({ id: "check::f", request_format: PRICE, response_format: PRICE });

    const wrong = await caller.failure("check::f", { sku: 5 });
    const absent = await caller.failure("check::f");

    for (const { code, message, details } of [wrong, absent]) {
      assert.deepEqual([code, typeof message], ["invalid_payload", "string"]);
      const { errors } = details as { errors: { path: string; message: string }[] };
      assert.ok(errors.length > 0);
      for (const each of errors) assert.deepEqual(Object.keys(each), ["path", "message"]);
    }
    await worker.receivesNothing();
  },

  "a payload that fits arrives untouched, and answers are not checked": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer({ id: "check::g", request_format: PRICE, response_format: PRICE });
    const data = '{ "sku" : "A1","n":9007199254740993}';

    const head = '{"type":"invokefunction","invocation_id":"1","function_id":"check::g"';
    await caller.send(`${head},"data":${data}}`);
    const { text, message } = await worker.receiveRaw();
    await worker.answer(message, { result: "no price" });

    assert.ok(text.endsWith(`,"data":${data}}`), text);
    assert.equal((await caller.receive()).result, "no price");
  },

  "a rejected void call gets an `error` frame": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer({ id: "check::h", request_format: PRICE });

    await caller.send({
      type: "invokefunction",
      function_id: "check::h",
      action: { type: "void" },
      data: 1,
    });

    const { type, error } = await caller.receive() as { error: JsonObject } & JsonObject;
    assert.deepEqual([type, error.code], ["error", "invalid_payload"]);
    await worker.receivesNothing();
  },

  "an invalid schema, or one that refers to others, is not enforced": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    const useless = [{ type: "nonsense" }, { $ref: "https://else.where/schema" }, 5, "text", [1]];

    for (const request_format of useless) {
      await worker.offer({ id: "check::i", request_format });
      await caller.send({
        type: "invokefunction",
        invocation_id: "1",
        function_id: "check::i",
        data: 1,
      });
      await worker.run({ result: "ran" });
      assert.equal((await caller.receive()).result, "ran");
    }
  },
});

proveOnWire("payload check turned off", {
  "everything reaches the worker": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer({ id: "check::f", request_format: PRICE });

    await caller.send({ type: "invokefunction", invocation_id: "1", function_id: "check::f" });

    await worker.run({ result: 1 });
    assert.equal((await caller.receive()).result, 1);
  },
}, { engine: ["validate_payloads: false"] });

/** Calls until the error says that no worker offers the function. */
async function untilGone(call: () => Promise<JsonObject>): Promise<unknown> {
  let error: unknown;
  await until(async () => {
    ({ error } = await call());
    return ((error ?? {}) as { code?: string }).code === "function_not_found";
  });
  return error;
}
