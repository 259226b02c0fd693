/**
 * The test engine of `engine-sdk/testing` behaves as the engine: one program runs on both, and what
 * its worker notices is equal.
 *
 * @module
 */
import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { registerWorker } from "../../sdk/typescript/register_worker.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { startTestEngine } from "../../sdk/testing/mod.ts";
import { http } from "../../workers/http/mod.ts";
import { pubsub } from "../../workers/pubsub/mod.ts";
import { queue } from "../../workers/queue/mod.ts";
import { state } from "../../workers/state/mod.ts";
import { LocalEngine } from "../fakes/local_engine.ts";

/** What a program does besides calls of its worker. */
interface World {
  readonly worker: Worker;
  settle(): Promise<void>;
  http(method: string, path: string, body?: Json): Promise<{ status: number; body: unknown }>;
}

/** A program: it returns what it noticed. */
type Program = (world: World) => Promise<unknown>;

async function onEngine(program: Program): Promise<unknown> {
  await using engine = new LocalEngine({ store: new MemoryStore() });
  await engine.start(state);
  await engine.start(pubsub);
  await engine.start(queue);
  await engine.start(http, { port: 0 });
  const worker = await engine.connect("program");
  const { url } = engine.endpoints.find(({ url }) => url.startsWith("http"))!;
  return await program({
    worker,
    settle: async () => {
      for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 0));
    },
    async http(method, path, body) {
      const response = await fetch(`${url}${path}`, {
        method,
        ...body !== undefined && {
          body: JSON.stringify(body),
          headers: { "content-type": "application/json" },
        },
      });
      const text = await response.text();
      const isJson = response.headers.get("content-type")?.includes("json") === true;
      return { status: response.status, body: isJson ? JSON.parse(text) : text };
    },
  });
}

async function onTestEngine(program: Program): Promise<unknown> {
  await using engine = startTestEngine();
  await using worker = registerWorker("ws://127.0.0.1:1", { workerName: "program" });
  await engine.settle();
  return await program({
    worker,
    settle: () => engine.settle(),
    async http(method, path, body) {
      const { status, body: answer } = await engine.http(method, path, { body });
      return { status, body: answer };
    },
  });
}

/** The result of a call, or the code that it failed with. */
async function outcome(worker: Worker, function_id: string, payload: Json): Promise<unknown> {
  try {
    return await worker.trigger({ function_id, payload }) ?? "nothing";
  } catch (thrown) {
    return (thrown as EngineError).code;
  }
}

const AT = { scope: "cart", key: "u1" };
const OPS: readonly JsonObject[] = [
  { type: "increment", path: "n", by: 2 },
  { type: "decrement", path: "n", by: 1 },
  { type: "append", path: "log", value: { at: 1 } },
  { type: "append", path: "text", value: "a" },
  { type: "append", path: "text", value: "b" },
  { type: "append", path: ["deep", "list"], value: "x" },
  { type: "append", path: "n", value: 1 },
  { type: "merge", path: ["meta", "ui"], value: { dark: true } },
  { type: "merge", value: { more: 1 } },
  { type: "merge", path: "meta", value: 5 },
  { type: "set", path: "x.y", value: 1 },
  { type: "remove", path: "more" },
  { type: "decrement", path: "log", by: 1 },
  { type: "increment", path: "fresh", by: 3 },
];

const PROGRAMS: Readonly<Record<string, Program>> = {
  "calls and their errors": async ({ worker }) => {
    worker.registerFunction("a::echo", (payload) => payload);
    worker.registerFunction("a::nothing", () => {});
    worker.registerFunction("a::fails", () => {
      throw new EngineError("sold_out", "None left", { details: { left: 0 } });
    });
    worker.registerFunction("a::crashes", () => {
      throw new TypeError("broken");
    });
    const ids = ["a::echo", "a::nothing", "a::fails", "a::crashes", "a::missing"];
    const found = [];
    for (const id of ids) found.push(await outcome(worker, id, { n: [null] }));
    return found;
  },
  "the state": async ({ worker, settle }) => {
    const events: unknown[] = [];
    worker.registerFunction("cart::changed", (event: JsonObject) => void events.push(event));
    const config = { scope: "cart" };
    worker.registerTrigger({ type: "state", function_id: "cart::changed", config });
    const found: unknown[] = [];
    const call = async (name: string, payload: JsonObject) => {
      found.push(await outcome(worker, `state::${name}`, payload));
      await settle();
    };
    await call("get", AT);
    await call("set", { ...AT, value: { n: 1 } });
    await call("set", { ...AT, value: null, expected_version: 0 });
    await call("set", { scope: "other", key: "k", data: 5 });
    await call("update", { scope: "cart", key: "u2", ops: [...OPS] });
    await call("update", { ...AT, ops: [{ type: "set", path: "", value: [1] }, OPS[0]!] });
    await call("list", { scope: "cart" });
    await call("list", { scope: "none" });
    await call("list_groups", {});
    await call("delete", AT);
    await call("delete", AT);
    await call("get", { scope: "cart" });
    // Texts of errors are for people.
    const withoutTexts = JSON.stringify(found, (key, value) => key === "message" ? "" : value);
    return { found: JSON.parse(withoutTexts), events };
  },
  "topics": async ({ worker, settle }) => {
    const heard: unknown[] = [];
    for (const topic of ["orders.*", "orders.>", "orders.paid"]) {
      worker.subscribe(topic, (data) => void heard.push([topic, data]));
    }
    await settle();
    for (const topic of ["orders.paid", "orders.paid.late", "orders", "others"]) {
      await worker.publish(topic, topic);
      await settle();
    }
    // Between subscriptions there is no order.
    return [
      heard.map((each) => JSON.stringify(each)).sort(),
      await outcome(worker, "publish", { topic: "" }),
    ];
  },
  "queues": async ({ worker, settle }) => {
    const seen: unknown[] = [];
    worker.registerFunction("mail::send", (payload) => void seen.push(payload));
    await worker.enqueue({ function_id: "mail::send", payload: 1 });
    const first = await worker.enqueue({ function_id: "mail::send", payload: 2, id: "m" });
    const again = await worker.enqueue({ function_id: "mail::send", payload: 3, id: "m" });
    await settle();
    const error = await worker.enqueue({ function_id: "mail::send", queue: "none" })
      .catch(({ code, message }: EngineError) => ({ code, message }));
    return { seen, first, again, error };
  },
  "routes": async ({ worker, settle, http }) => {
    const withoutStreams = (payload: JsonObject) => {
      const { request_body: _in, response: _out, headers: _headers, ...rest } = payload;
      return { body: rest };
    };
    for (const api_path of ["/a/:id", "b/*", "/a/fixed"]) {
      const function_id = `route::${api_path}`;
      worker.registerFunction(function_id, withoutStreams);
      for (const http_method of ["GET", "POST"]) {
        worker.registerTrigger({ type: "http", function_id, config: { api_path, http_method } });
      }
    }
    const results: Record<string, unknown> = {
      "/text": "hi",
      "/list": [1],
      "/parts": { status_code: 201, body: { ok: true } },
      "/html": { headers: { "content-type": "text/html" }, body: "<p>" },
      "/null": { status_code: 202, body: null },
    };
    for (const [api_path, result] of Object.entries(results)) {
      worker.registerFunction(`result::${api_path}`, () => result);
      const config = { api_path };
      worker.registerTrigger({ type: "http", function_id: `result::${api_path}`, config });
    }
    worker.registerFunction("route::fails", () => {
      throw new EngineError("sold_out", "None left");
    });
    const failing = { api_path: "/fails" };
    worker.registerTrigger({ type: "http", function_id: "route::fails", config: failing });
    await settle();
    const found = [];
    for (const path of ["/a/x%2Fy?q=1&q=2&r=", "/a/fixed", "/b/c/d", "/b/", "/b", "/a/"]) {
      found.push(await http("GET", path), await http("POST", path, { n: 1 }));
    }
    for (const path of [...Object.keys(results), "/fails"]) found.push(await http("GET", path));
    const withoutIds = JSON.stringify(
      found,
      (key, value) => key === "error_id" ? undefined : value,
    );
    return JSON.parse(withoutIds).map(({ status, body }: { status: number; body: unknown }) => {
      return status === 404 ? { status } : { status, body };
    });
  },
};

for (const [name, program] of Object.entries(PROGRAMS)) {
  Deno.test(`the test engine is as the engine: ${name}`, async () => {
    const expected = await onEngine(program);

    const found = await onTestEngine(program);

    assert.deepEqual(found, expected);
  });
}
