/**
 * The SDK as Node gets it: the built module in a real Node process, against a real router.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type CallContext,
  EngineError,
  type Json,
  registerWorker,
  type Worker,
} from "../../mod.ts";
import { findNode, NodeProgram } from "../fakes/programs.ts";
import { SocketEngine } from "../fakes/socket_server.ts";
import { until } from "../fakes/until.ts";

const hasNode = await findNode("tests/e2e/node_test.ts");

/** A test that needs Node. */
function nodeTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: !hasNode, fn });
}

/** Serves until the input ends, then leaves. */
const UNTIL_INPUT_ENDS = `
  process.stdin.on("end", () => worker.shutdown()).resume();`;

/** A worker of this process, connected. */
async function connect(url: string): Promise<Worker> {
  const worker = registerWorker(url, { workerName: "deno-worker" });
  await worker.trigger({ function_id: "no::such" }).catch(() => {});
  return worker;
}

nodeTest("a worker in Node offers functions, also those that fail", async () => {
  await using engine = new SocketEngine();
  await using node = new NodeProgram(
    engine.url,
    `
    const worker = registerWorker();
    worker.registerFunction("node::add", ({ a, b }) => ({ c: a + b }));
    worker.registerFunction("node::nothing", () => {});
    worker.registerFunction("node::throws", () => { throw new TypeError("broken"); });
    worker.registerFunction("node::code", () => {
      throw new EngineError("out_of_stock", "Only 2 left", { details: { left: 2 } });
    });
    worker.registerFunction("node::bigint", () => 1n);
    await worker.trigger({ function_id: "no::such" }).catch(() => {});
    say("ready");${UNTIL_INPUT_ENDS}`,
  );
  await using worker = await connect(engine.url);
  assert.equal(await node.said(), "ready");
  const call = (function_id: string, payload: Json = {}) =>
    worker.trigger({ function_id, payload });

  assert.deepEqual(await call("node::add", { a: 2, b: 3 }), { c: 5 });
  assert.equal(await call("node::nothing"), undefined);
  await assert.rejects(call("node::throws"), {
    code: "invocation_failed",
    message: "invocation_failed: broken",
    stacktrace: /TypeError: broken/,
  });
  await assert.rejects(call("node::code"), { code: "out_of_stock", details: { left: 2 } });
  await assert.rejects(call("node::bigint"), { code: "serialization_error" });
  assert.deepEqual(
    engine.router.directory.workers().map(({ name, runtime }) => `${name}: ${runtime}`).sort(),
    ["deno-worker: deno", "node-worker: node"],
  );
  assert.equal(await node.end(), 0);
});

nodeTest(
  "a worker in Node calls, cancels, gets progress, and its process ends by itself",
  async () => {
    await using engine = new SocketEngine();
    await using worker = await connect(engine.url);
    const cancelled = Promise.withResolvers<string>();
    let seen: Partial<CallContext> = {};
    worker.registerFunction("deno::count", (_payload: Json, _metadata, context) => {
      seen = { timeout_ms: context.timeout_ms };
      [1, 2, 3].forEach((n) => context.progress(n));
      return "counted";
    });
    worker.registerFunction("deno::waits", (_payload: Json, _metadata, { signal }) => {
      signal.onabort = () => cancelled.resolve(signal.reason.message);
      return cancelled.promise;
    });
    worker.registerFunction("deno::fails", () => {
      throw new EngineError("no_luck", "Not today");
    });

    await using node = new NodeProgram(
      engine.url,
      `
    const worker = registerWorker();
    const seen = [];
    const onProgress = (n) => seen.push(n);
    const counted = await worker.trigger({ function_id: "deno::count", onProgress, timeout_ms: 60000 });
    say([counted, seen]);
    const failed = await worker.trigger({ function_id: "deno::fails" }).catch((error) => error);
    say([failed.name, failed.code, failed.message, failed.function_id]);
    const controller = new AbortController();
    const waits = worker.trigger({ function_id: "deno::waits", signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 100);
    say(await waits.catch((error) => error.code));
    const nested = worker.registerFunction("node::nested", async () =>
      (await worker.trigger({ function_id: "deno::count" })));
    await worker.trigger({ function_id: "node::nested", timeout_ms: 60000 });
    nested.unregister();
    await worker.shutdown();
    say("left");`,
    );

    assert.deepEqual(await node.said(), ["counted", [1, 2, 3]]);
    assert.deepEqual(await node.said(), [
      "InvocationError",
      "no_luck",
      "no_luck: Not today",
      "deno::fails",
    ]);
    assert.equal(await node.said(), "cancelled");
    assert.equal(await cancelled.promise, "enough");
    assert.equal(await node.said(), "left");
    assert.ok(seen.timeout_ms! <= 60_000, `nested call inherits the deadline: ${seen.timeout_ms}`);
    assert.equal(await node.end(), 0);
  },
);

nodeTest("a worker in Node comes back to an engine that was restarted", async () => {
  const first = new SocketEngine();
  await using node = new NodeProgram(
    first.url,
    `
    const worker = registerWorker(undefined, { reconnect: { firstMs: 20, maxMs: 100 }, onError() {} });
    worker.registerFunction("node::add", ({ a, b }) => ({ c: a + b }));
    await worker.trigger({ function_id: "no::such" }).catch(() => {});
    say("ready");${UNTIL_INPUT_ENDS}`,
  );
  assert.equal(await node.said(), "ready");
  const { port } = first;
  await first[Symbol.asyncDispose]();

  await using second = new SocketEngine({ port });
  await using worker = await connect(second.url);
  const add = () => worker.trigger({ function_id: "node::add", payload: { a: 2, b: 3 } });
  let answer: Json | undefined;
  await until(async () => {
    answer = await add() as Json;
    return true;
  });

  assert.deepEqual(answer, { c: 5 });
});

nodeTest("a worker in Node with a wrong token keeps trying and says why", async () => {
  await using engine = new SocketEngine({ authToken: "right" });
  await using node = new NodeProgram(
    engine.url,
    `
    const onError = (error) => say(error.message);
    const options = { token: "wrong", onError, reconnect: { firstMs: 5, maxAttempts: 3 } };
    const worker = registerWorker(undefined, options);
    const failure = await worker.trigger({ function_id: "a::b" }).catch((error) => error);
    say([failure.code, worker.connectionState]);`,
  );

  const text = `Cannot reach the engine at ${engine.url}/: HTTP 401`;
  assert.equal(await node.said(), `${text}; retrying in the background`);
  assert.equal(await node.said(), text);
  assert.deepEqual(await node.said(), ["engine_unreachable", "failed"]);
  assert.equal(await node.end(), 0);
});
