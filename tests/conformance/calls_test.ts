/**
 * PROTOCOL 2.9, 2.10 and 3.1 to 3.4 from the other end of the wire: what a call looks like on its
 * way there and back.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

const VOID = { type: "void" };
const TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/** A text that a parser in between would change. */
const ODD = '{"big":9007199254740993, "e" : 1.50e+3,"\\u0061":"\\/ü","n":null,"a":1,"a":[ ]}';

function callOf(function_id: string, more: JsonObject = {}): JsonObject {
  return { type: "invokefunction", invocation_id: crypto.randomUUID(), function_id, ...more };
}

/** The text of a forwarded call without its id. */
function withoutId(text: string): string {
  return text.replace(/"invocation_id":"[^"]+",/, "");
}

proveOnWire("what a worker receives", {
  "a call in canonical order is forwarded as it was written": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("odd::f");

    const tail = `"function_id":"odd::f","traceparent":"${TRACE}","baggage":"a=1","data":${ODD}}`;
    await caller.send(`{"type":"invokefunction","invocation_id":"mine",${tail}`);

    const { text } = await worker.receiveRaw();
    assert.equal(withoutId(text), `{"type":"invokefunction",${tail}`);
    assert.match(text, /^\{"type":"invokefunction","invocation_id":"[^"]+",/);
  },

  "a call in any other order is put in order, its payload untouched": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer({ id: "odd::g", namespace: "shop" });

    await caller.send(
      `{"data":${ODD},"baggage":"a=1", "traceparent":"${TRACE}","metadata":{"x":9007199254740993,"y":null},` +
        `"timeout_ms":60000,"invocation_id":"mine","namespace":"shop","function_id":"odd::g","type":"invokefunction","new":1}`,
    );

    const { text, message } = await worker.receiveRaw();
    const rest = withoutId(text).replace(`"timeout_ms":${message.timeout_ms},`, "");
    assert.equal(
      rest,
      `{"type":"invokefunction","function_id":"odd::g","namespace":"shop",` +
        `"metadata":{"x":9007199254740993,"y":null},"traceparent":"${TRACE}","baggage":"a=1","data":${ODD}}`,
    );
    assert.ok(message.timeout_ms as number <= 60_000 && message.timeout_ms as number > 30_000);
  },

  "`data` that is absent stays absent, `null` and falsy values arrive": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("data::f");

    await caller.send(callOf("data::f"));
    const absent = await worker.receive();
    const arrived = [];
    for (const data of [0, false, "", [], {}]) {
      await caller.send(callOf("data::f", { data }));
      arrived.push((await worker.receive()).data);
    }
    await caller.send(callOf("data::f", { data: null }));
    const nothing = await worker.receive();

    assert.deepEqual(Object.keys(absent), ["type", "invocation_id", "function_id"]);
    assert.deepEqual(arrived, [0, false, "", [], {}]);
    assert.equal(nothing.data ?? null, null);
  },

  "optional fields that are null are absent": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("null::f");
    const names = ["action", "metadata", "traceparent", "baggage", "namespace", "timeout_ms"];

    await caller.send(callOf("null::f", Object.fromEntries(names.map((name) => [name, null]))));
    const call = await worker.run({ error: null, traceparent: null, result: 1 });
    const answer = await caller.receive();

    for (const name of names) assert.equal(call[name] ?? null, null);
    assert.deepEqual([answer.result, answer.error ?? null], [1, null]);
  },

  "the default namespace is never named, `action` never sent": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("plain::f");

    await caller.send(
      callOf("plain::f", { namespace: "default", data: 1 }),
      { type: "invokefunction", function_id: "plain::f", action: VOID, data: 2 },
      `{"type":"invokefunction","function_id":"plain::f","data":3,"action":{"type":"void"}}`,
    );

    for (const data of [1, 2, 3]) {
      const call = await worker.receive();
      assert.deepEqual(Object.keys(call), ["type", "invocation_id", "function_id", "data"]);
      assert.equal(call.data, data);
      assert.ok(typeof call.invocation_id === "string" && call.invocation_id !== "");
    }
  },

  "names of fields inside a payload mean nothing": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("inner::f");
    const data = {
      action: VOID,
      namespace: "elsewhere",
      timeout_ms: -1,
      error: { code: "x", message: "y" },
      type: "pong",
      invocation_id: 5,
    };

    await caller.send(callOf("inner::f", { data }));
    const call = await worker.run({ result: data });

    assert.deepEqual([call.data, (await caller.receive()).result], [data, data]);
  },
}, { traces: false });

proveOnWire("what a caller receives", {
  "a result goes back as it was written, with the caller's own id": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("back::f");
    const tail =
      `"function_id":"back::f","traceparent":"${TRACE}","baggage":"b=2","result":${ODD}}`;

    await caller.send({ ...callOf("back::f"), invocation_id: 'my "own" id' });
    const { invocation_id } = await worker.receive();
    await worker.send(`{"type":"invocationresult","invocation_id":"${invocation_id}",${tail}`);

    const { text } = await caller.receiveRaw();
    assert.equal(text, `{"type":"invocationresult","invocation_id":"my \\"own\\" id",${tail}`);
  },

  "a result in any other order is put in order": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("back::g");

    await caller.send({ ...callOf("back::g"), invocation_id: "mine" });
    const { invocation_id } = await worker.receive();
    await worker.send(
      ` {"result": ${ODD} ,"function_id":"back::g","invocation_id":"${invocation_id}","type":"invocationresult"}`,
    );

    const { text } = await caller.receiveRaw();
    const head = '{"type":"invocationresult","invocation_id":"mine","function_id":"back::g"';
    assert.equal(text, `${head},"result":${ODD}}`);
  },

  "a result that is null or absent has no key, nested nulls and falsy values stay": async (
    { open },
  ) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("null::r");
    const kept = [{ a: null }, [null], false, 0, ""];
    const answers = [];

    for (const outcome of [{ result: null }, {}, ...kept.map((result) => ({ result }))]) {
      await caller.send(callOf("null::r"));
      await worker.run(outcome);
      answers.push(await caller.receive());
    }

    const [first, second, ...rest] = answers;
    for (const answer of [first!, second!]) {
      assert.deepEqual(Object.keys(answer), ["type", "invocation_id", "function_id"]);
    }
    assert.deepEqual(rest.map(({ result }) => result), kept);
  },

  "the error of a handler arrives unchanged": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("err::f");
    const error = '{"code":"sold_out","message":"no","stacktrace":"at x","retryable":true,' +
      '"details":{"left":9007199254740993,"n":null},"extra":[1]}';

    await caller.send(callOf("err::f"));
    const { invocation_id } = await worker.receive();
    const head = `{"type":"invocationresult","invocation_id":"${invocation_id}"`;
    await worker.send(`${head},"function_id":"err::f","error":${error}}`);

    const { text, message } = await caller.receiveRaw();
    assert.ok(text.includes(`"error":${error}`), text);
    assert.ok(!("result" in message));
  },

  "a bare string as error becomes code `UNKNOWN`": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("err::bare");

    await caller.send(callOf("err::bare"));
    await worker.run({ error: "it broke", result: 5 });

    const answer = await caller.receive();
    assert.deepEqual(answer.error, { code: "UNKNOWN", message: "it broke" });
    assert.ok(!("result" in answer));
  },

  "an error always has a code and a message": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("err::odd");

    for (const error of [{}, { code: 5, message: [] }, { code: "x" }, 7, [], true]) {
      await caller.send(callOf("err::odd"));
      await worker.run({ error });
      const { error: seen } = await caller.receive() as { error: JsonObject };
      assert.deepEqual([typeof seen.code, typeof seen.message], ["string", "string"]);
    }
  },

  "`function_id` of a result is not checked": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("id::f");

    await caller.send(callOf("id::f"));
    await worker.answer({ ...await worker.receive(), function_id: "another" }, { result: 1 });

    assert.equal((await caller.receive()).result, 1);
  },
});

proveOnWire("three modes", {
  "void is never answered, also with an id, also without `action`": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("void::f");
    const void_ = { type: "invokefunction", function_id: "void::f", data: {} };

    await caller.send(
      { ...void_, action: VOID },
      void_,
      { ...void_, invocation_id: null },
      { ...void_, invocation_id: "1", action: VOID },
    );
    for (let i = 0; i < 3; i++) await worker.run({ result: i });
    await worker.run({ error: { code: "x", message: "y" } });

    await worker.receivesNothing();
    await caller.receivesNothing();
  },

  "void calls that cannot run are not answered either": async ({ open }) => {
    const caller = await open();
    const lost = { type: "invokefunction", function_id: "missing::f" };

    await caller.send({ ...lost, action: VOID }, lost, {
      ...lost,
      invocation_id: "1",
      action: VOID,
    });

    await caller.receivesNothing();
  },

  "enqueue without such a queue is `enqueue_error`, and nothing runs": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("queue::f");
    const action = { type: "enqueue", queue: "mails" };

    const error = await caller.failure("queue::f", 1, { action });

    const { code, message } = error as JsonObject;
    assert.deepEqual([code, message], ["enqueue_error", "Queue 'mails' not found"]);
    await worker.receivesNothing();
  },

  "an unknown function is `function_not_found`, with ids that are close": async ({ open }) => {
    const [caller, worker] = [await open(), await open()];
    await worker.offer("close::price", "close::prices");

    const far = await caller.failure("xyzzy");
    const near = await caller.failure("close::prize", {});

    assert.deepEqual(far, { code: "function_not_found", message: "Function xyzzy not found" });
    const { code, message, details } = near as { details: { similar: string[] } } & JsonObject;
    assert.deepEqual([code, message], ["function_not_found", "Function close::prize not found"]);
    assert.ok(details.similar.includes("close::price") && details.similar.length <= 3);
  },

  "a worker may call itself, and calls run side by side": async ({ open }) => {
    const client = await open();
    await client.offer("self::f");

    await client.send(callOf("self::f", { data: 1 }), callOf("self::f", { data: 2 }));
    const calls = [await client.receive(), await client.receive()];
    await client.answer(calls[1]!, { result: "second" });
    await client.answer(calls[0]!, { result: "first" });

    assert.deepEqual(calls.map(({ data }) => data), [1, 2]);
    assert.deepEqual([(await client.receive()).result, (await client.receive()).result], [
      "second",
      "first",
    ]);
  },
});
