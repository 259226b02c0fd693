/**
 * PROTOCOL 1.10, 2.11, 2.12, 3.3 to 3.7 from the other end of the wire: deadlines, cancellation,
 * progress, ends of workers, bounds.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire, type Wire, type WireClient } from "../fakes/wire_engine.ts";

const CANCELLED = { code: "cancelled", message: "Invocation cancelled" };
const STOPPED = { code: "invocation_stopped", message: "Invocation stopped" };

function callOf(invocation_id: string, function_id: string, more: JsonObject = {}): JsonObject {
  return { type: "invokefunction", invocation_id, function_id, ...more };
}

function cancel(invocation_id: string, reason?: string): JsonObject {
  return { type: "cancelinvocation", invocation_id, ...reason === undefined ? {} : { reason } };
}

/** A caller, and a worker with one function that can do what is asked. */
async function setup(
  { open }: Wire,
  id: string,
  ...capabilities: string[]
): Promise<[caller: WireClient, worker: WireClient]> {
  const [caller, worker] = [await open(), await open()];
  await worker.offer(id);
  await worker.announce(`worker of ${id}`, ...capabilities);
  return [caller, worker];
}

proveOnWire("deadlines", {
  "`timeout_ms` is enforced, and the worker receives a cancel if it announced `cancel`": async (
    wire,
  ) => {
    const [caller, worker] = await setup(wire, "slow::f", "cancel");
    await caller.send(callOf("1", "slow::f", { timeout_ms: 30 }));

    const call = await worker.receive();
    const { error } = await caller.receive();

    assert.ok(call.timeout_ms as number >= 1 && call.timeout_ms as number <= 30);
    const message = "Invocation of slow::f timed out after 30 ms";
    assert.deepEqual(error, { code: "timeout", message });
    assert.deepEqual(await worker.receive(), cancel(call.invocation_id as string, "timeout"));
    await worker.answer(call, { result: "late" });
    await worker.receivesNothing();
    await caller.receivesNothing();
  },

  "a worker that did not announce `cancel` receives nothing at a timeout": async (wire) => {
    const [caller, worker] = await setup(wire, "slow::g");
    await caller.send(callOf("1", "slow::g", { timeout_ms: 20 }));
    await worker.receive();

    await caller.receive();

    await worker.receivesNothing();
  },

  "without `timeout_ms` the engine's own holds, and is not passed on": async (wire) => {
    const [caller, worker] = await setup(wire, "slow::h");
    await caller.send(callOf("1", "slow::h"));

    const call = await worker.receive();
    const { error } = await caller.receive() as { error: JsonObject };

    assert.ok(!("timeout_ms" in call));
    assert.equal(error.code, "timeout");
    assert.equal(error.message, "Invocation of slow::h timed out after 150 ms");
  },
}, { engine: ["invocation_timeout_ms: 150"] });

proveOnWire("cancellation", {
  "a cancelled call ends at once, and the worker receives the reason": async (wire) => {
    const [caller, worker] = await setup(wire, "cancel::f", "cancel");
    await caller.send(callOf("1", "cancel::f"));
    const call = await worker.receive();

    await caller.send(cancel("1", "user closed the page"));

    const { invocation_id, error } = await caller.receive();
    assert.deepEqual([invocation_id, error], ["1", CANCELLED]);
    const told = cancel(call.invocation_id as string, "user closed the page");
    assert.deepEqual(await worker.receive(), told);
    await worker.answer(call, { result: "late" });
    await worker.receivesNothing();
    await caller.receivesNothing();
  },

  "without a reason none is passed on; without `cancel` nothing is": async (wire) => {
    const [caller, worker] = await setup(wire, "cancel::g", "cancel");
    const silent = await wire.open();
    await silent.offer("cancel::silent");
    await caller.send(callOf("1", "cancel::g"), callOf("2", "cancel::silent"));
    const call = await worker.receive();
    await silent.receive();

    await caller.send(cancel("1"), cancel("2", "x"));

    assert.deepEqual(await worker.receive(), cancel(call.invocation_id as string));
    assert.deepEqual((await caller.receive()).error, CANCELLED);
    assert.deepEqual((await caller.receive()).error, CANCELLED);
    await silent.receivesNothing();
  },

  "only the connection that made a call can cancel it, and only while it runs": async (wire) => {
    const [caller, worker] = await setup(wire, "cancel::h", "cancel");
    const other = await wire.open();
    await caller.send(callOf("1", "cancel::h"));
    const call = await worker.receive();

    await other.send(cancel("1"), cancel(call.invocation_id as string));
    await worker.send(cancel(call.invocation_id as string));
    await other.receivesNothing();
    await worker.answer(call, { result: "wins" });
    assert.equal((await caller.receive()).result, "wins");
    await caller.send(cancel("1"), cancel("never made"));

    await caller.receivesNothing();
    await worker.receivesNothing();
  },

  "a caller that leaves cancels its calls, but not its void calls": async (wire) => {
    const [caller, worker] = await setup(wire, "cancel::i", "cancel");
    const action = { type: "void" };
    await caller.send(callOf("1", "cancel::i", { data: "waits" }));
    await caller.send({ type: "invokefunction", function_id: "cancel::i", action, data: "void" });
    const calls = [await worker.receive(), await worker.receive()];

    await caller.raw.close(1000);

    const waited = calls.find(({ data }) => data === "waits")!;
    const told = cancel(waited.invocation_id as string, "caller_disconnected");
    assert.deepEqual(await worker.receive(), told);
    await worker.answer(waited, { result: "late" });
    await worker.receivesNothing();
  },
});

proveOnWire("progress", {
  "it reaches a caller that announced it, in order, before the result": async (wire) => {
    const [caller, worker] = await setup(wire, "progress::f", "progress");
    await caller.announce("patient", "progress");
    await caller.send(callOf("mine", "progress::f"));
    const { invocation_id, function_id } = await worker.receive();

    const head = `{"type":"invocationprogress","invocation_id":"${invocation_id}"`;
    const values = ["1", "null", '{"big":9007199254740993, "n":null}'];
    for (const value of values) await worker.send(`${head},"data":${value}}`);
    await worker.answer({ invocation_id: invocation_id!, function_id: function_id! }, {
      result: 1,
    });

    const texts = [];
    for (const _ of values) texts.push((await caller.receiveRaw()).text);
    const expected = '{"type":"invocationprogress","invocation_id":"mine","data":';
    assert.deepEqual(texts, values.map((value) => `${expected}${value}}`));
    assert.equal((await caller.receive()).result, 1);
  },

  "it is discarded for others, from others, and after the end": async (wire) => {
    const [caller, worker] = await setup(wire, "progress::g", "progress");
    const other = await wire.open();
    await caller.send(callOf("1", "progress::g"));
    const call = await worker.receive();
    const { invocation_id } = call;
    const news = { type: "invocationprogress", invocation_id: invocation_id!, data: 1 };

    await worker.send(news, { ...news, invocation_id: "unknown" });
    await worker.receivesNothing();
    await caller.receivesNothing();
    await caller.announce("attentive", "progress");
    await other.send(news);
    await other.receivesNothing();
    await caller.receivesNothing();
    await worker.answer(call, { result: 2 });
    await worker.send(news);
    await worker.receivesNothing();

    assert.equal((await caller.receive()).result, 2);
    await caller.receivesNothing();
  },
});

proveOnWire("whose result counts", {
  "two callers with one id do not meet": async (wire) => {
    const [a, worker] = await setup(wire, "same::f");
    const b = await wire.open();
    await a.send(callOf("1", "same::f", { data: "a" }));
    await b.send(callOf("1", "same::f", { data: "b" }));

    for (let i = 0; i < 2; i++) {
      const call = await worker.receive();
      await worker.answer(call, { result: `for ${call.data}` });
    }

    assert.equal((await a.receive()).result, "for a");
    assert.equal((await b.receive()).result, "for b");
  },

  "an id that is still open is refused, and the first call goes on": async (wire) => {
    const [caller, worker] = await setup(wire, "same::g");
    await caller.send(callOf("1", "same::g", { data: "first" }));
    const call = await worker.receive();

    await caller.send(callOf("1", "same::g", { data: "second" }));

    const { type, error } = await caller.receive() as { error: JsonObject } & JsonObject;
    assert.deepEqual([type, error.code], ["error", "bad_message"]);
    await worker.receivesNothing();
    await worker.answer(call, { result: "first" });
    assert.equal((await caller.receive()).result, "first");
    await caller.send(callOf("1", "same::g", { data: "free again" }));
    assert.equal((await worker.run()).data, "free again");
    await caller.receive();
  },

  "results without a call, from other workers, and repeated ones are ignored": async (wire) => {
    const [caller, worker] = await setup(wire, "steal::f");
    const thief = await wire.open();
    await caller.send(callOf("1", "steal::f"));
    const call = await worker.receive();

    await thief.answer(call, { result: "stolen" });
    await thief.answer({ invocation_id: "1", function_id: "steal::f" }, { result: "stolen" });
    await thief.receivesNothing();
    await worker.answer({ invocation_id: crypto.randomUUID(), function_id: "steal::f" });
    await worker.answer(call, { result: "right" });
    await worker.answer(call, { result: "twice" });
    await worker.receivesNothing();

    assert.equal((await caller.receive()).result, "right");
    await caller.receivesNothing();
  },

  "a worker that dies ends its calls within 100 ms where the machine is not busy": async (wire) => {
    const times = [];
    for (let i = 0; i < 11; i++) {
      const [caller, worker] = await setup(wire, `dies::f${i}`);
      await caller.send(callOf("1", `dies::f${i}`));
      await worker.receive();

      worker.destroy();
      const died = performance.now();
      const { error } = await caller.receive();
      times.push(performance.now() - died);

      const { details, ...rest } = error as typeof STOPPED & { details: unknown };
      assert.deepEqual(rest, STOPPED);
      assert.deepEqual(details, { reason: "connection lost" });
      assert.equal((await caller.failure(`dies::f${i}`)).code, "function_not_found");
    }

    const fastest = Math.min(...times);
    assert.ok(fastest < 100, `${fastest} ms`);
  },
});

proveOnWire("bounds of a worker", {
  "the call above the bound is `overloaded` and may be tried again": async (wire) => {
    const [caller, worker] = await setup(wire, "full::f");
    await caller.send(callOf("1", "full::f"), callOf("2", "full::f"));
    const calls = [await worker.receive(), await worker.receive()];

    const { code, message, retryable } = await caller.failure("full::f");

    assert.deepEqual([code, typeof message, retryable], ["overloaded", "string", true]);
    await worker.answer(calls[0]!, { result: 1 });
    assert.equal((await caller.receive()).result, 1);
    await caller.send(callOf("3", "full::f"));
    assert.equal((await worker.receive()).function_id, "full::f");
  },

  "a void call above the bound gets an `error` frame": async (wire) => {
    const [caller, worker] = await setup(wire, "full::g");
    await caller.send(callOf("1", "full::g"), callOf("2", "full::g"));
    await worker.receive();
    await worker.receive();

    const action = { type: "void" };
    await caller.send({ type: "invokefunction", function_id: "full::g", action });

    const { type, error } = await caller.receive() as { error: JsonObject } & JsonObject;
    assert.deepEqual([type, error.code, error.retryable], ["error", "overloaded", true]);
    await worker.receivesNothing();
  },

  "a replica with room takes the calls that a full one cannot": async (wire) => {
    const [caller, full] = await setup(wire, "full::h");
    await caller.send(callOf("1", "full::h"), callOf("2", "full::h"));
    await full.receive();
    await full.receive();
    const second = await wire.open();
    await second.offer("full::h");

    await caller.send(callOf("3", "full::h"));

    await second.run({ result: "room" });
    assert.equal((await caller.receive()).result, "room");
  },
}, { engine: ["max_inflight_calls_per_worker: 2"] });
