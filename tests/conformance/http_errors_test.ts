/**
 * PROTOCOL 6.5 and 6.6 from both ends: the statuses that the engine produces, conditions and
 * middleware.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { proveOnWire, type Wire, type WireClient } from "../fakes/wire_engine.ts";

/** What a client got. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

async function ask({ httpUrl }: Wire, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(httpUrl + path, init);
  return { status: response.status, text: await response.text() };
}

/** A worker with a function, a route to it, and more functions. */
async function serve(
  { open }: Wire,
  id: string,
  config: JsonObject,
  ...others: string[]
): Promise<WireClient> {
  const worker = await open();
  await worker.offer(id, ...others);
  await worker.send({ type: "registertrigger", id, trigger_type: "http", function_id: id, config });
  await worker.receivesNothing();
  return worker;
}

/** The error of an answer, whose body has the usual form. */
function errorOf({ status, text }: Answer): JsonObject {
  assert.notEqual(text, "", `the answer ${status} has no body`);
  const { error, ...rest } = JSON.parse(text);
  assert.deepEqual(rest, {});
  assert.match(error.error_id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(Object.keys(error).sort(), ["code", "error_id", "message"]);
  return error;
}

proveOnWire("statuses of failures", {
  "the code alone decides, whichever side made it; stacks stay inside": async (wire) => {
    const worker = await serve(wire, "fails::f", { api_path: "/fails" });
    const statuses = {
      sold_out: 500,
      invocation_failed: 500,
      function_not_found: 503,
      invocation_stopped: 503,
      overloaded: 429,
      CONDITION_NOT_MET: 422,
      body_too_large: 413,
      invalid_json: 400,
      MIDDLEWARE_TIMEOUT: 504,
    };

    for (const [code, status] of Object.entries(statuses)) {
      const asked = ask(wire, "/fails");
      await worker.run({
        error: { code, message: "no", stacktrace: "at secret", details: { a: 1 } },
      });
      const answer = await asked;
      assert.equal(answer.status, status, code);
      const { error_id: _, ...error } = errorOf(answer);
      assert.deepEqual(error, { code, message: "no" });
    }
  },

  "`details.status_code` from 400 to 599 decides instead, and adds `details.headers`": async (
    wire,
  ) => {
    const worker = await serve(wire, "fails::own", { api_path: "/fails-own" });
    const cases: [Json, number][] = [[404, 404], [599, 599], [302, 500], ["404", 500]];

    for (const [status_code, status] of cases) {
      const asked = fetch(`${wire.httpUrl}/fails-own`);
      const details = { status_code, headers: { "retry-after": "9" } };
      await worker.run({ error: { code: "own", message: "no", details } });
      const response = await asked;
      const { error_id: _, ...error } = errorOf({ status, text: await response.text() });
      assert.deepEqual(error, { code: "own", message: "no" });
      const retryAfter = response.headers.get("retry-after");
      assert.deepEqual([response.status, retryAfter], [status, status === 500 ? null : "9"]);
    }
  },

  "a timeout is 504 without a body, and the worker receives the cancellation": async (wire) => {
    const worker = await serve(wire, "slow::f", { api_path: "/slow" });
    await worker.announce("slow", "cancel");

    const asked = ask(wire, "/slow");
    const call = await worker.receive();
    const answer = await asked;

    assert.deepEqual([answer.status, answer.text], [504, ""]);
    const { type, invocation_id } = await worker.receive();
    assert.deepEqual([type, invocation_id], ["cancelinvocation", call.invocation_id]);
  },

  "code `timeout` of a handler is 504 without a body as well": async (wire) => {
    const worker = await serve(wire, "slow::g", { api_path: "/slow-g" });

    const asked = ask(wire, "/slow-g");
    await worker.run({ error: { code: "timeout", message: "inner" } });

    const answer = await asked;
    assert.deepEqual([answer.status, answer.text], [504, ""]);
  },

  "no such function and a worker that dies are 503": async (wire) => {
    const worker = await serve(wire, "dies::f", { api_path: "/dies" });
    const keeper = await wire.open();
    const config = { api_path: "/missing" };
    await keeper.send({
      type: "registertrigger",
      id: "n",
      trigger_type: "http",
      function_id: "missing::f",
      config,
    });
    await keeper.receivesNothing();

    const missing = await ask(wire, "/missing");
    const asked = ask(wire, "/dies");
    await worker.receive();
    worker.destroy();
    const died = await asked;

    assert.deepEqual([missing.status, errorOf(missing).code], [503, "function_not_found"]);
    assert.deepEqual([died.status, errorOf(died).code], [503, "invocation_stopped"]);
  },

  "a client that goes away cancels its call": async (wire) => {
    const worker = await serve(wire, "gone::f", { api_path: "/gone" });
    await worker.announce("gone", "cancel");
    const abort = new AbortController();

    const asked = ask(wire, "/gone", { signal: abort.signal });
    const call = await worker.receive();
    abort.abort();

    await assert.rejects(asked);
    const { type, invocation_id } = await worker.receive();
    assert.deepEqual([type, invocation_id], ["cancelinvocation", call.invocation_id]);
  },
});

proveOnWire("bodies", {
  "malformed JSON is 400, and the handler does not run": async (wire) => {
    const worker = await serve(wire, "json::f", { api_path: "/json", http_method: "POST" });
    const headers = { "content-type": "application/json" };

    for (const body of ["{", "nonsense", "{'a':1}", " ", "[1,]"]) {
      const answer = await ask(wire, "/json", { method: "POST", body, headers });
      assert.deepEqual([answer.status, errorOf(answer).code], [400, "invalid_json"], body);
    }
    await worker.receivesNothing();
  },

  "unless the route is lenient: then the body is null": async (wire) => {
    const config = { api_path: "/lenient", http_method: "POST", lenient_body: true };
    const worker = await serve(wire, "json::g", config);
    const headers = { "content-type": "application/json" };

    const asked = ask(wire, "/lenient", { method: "POST", body: "{", headers });
    const { data } = await worker.run({ result: {} });

    assert.deepEqual([(data as JsonObject).body, (await asked).status], [null, 200]);
  },

  "one above the limit is 413, with its length or in pieces": async (wire) => {
    const worker = await serve(wire, "large::f", { api_path: "/large", http_method: "POST" });
    const large = new Uint8Array(65_537);
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(large.subarray(0, 60_000));
        controller.enqueue(large.subarray(0, 60_000));
        controller.close();
      },
    });

    const init = { method: "POST", headers: { "content-type": "text/plain" } };
    const whole = await ask(wire, "/large", { ...init, body: large });
    const pieces = await ask(wire, "/large", { ...init, body: stream });

    assert.deepEqual([whole.status, errorOf(whole).code], [413, "body_too_large"]);
    assert.deepEqual([pieces.status, errorOf(pieces).code], [413, "body_too_large"]);
    await worker.receivesNothing();
    const asked = ask(wire, "/large", { ...init, body: large.subarray(1) });
    await worker.run({ result: {} });
    assert.equal((await asked).status, 200);
  },
});

proveOnWire("conditions and middleware", {
  "a condition that says `false` is 422": async (wire) => {
    const condition_function_id = "cond::ask";
    const worker = await serve(
      wire,
      "cond::f",
      { api_path: "/cond", condition_function_id },
      "cond::ask",
    );

    const asked = ask(wire, "/cond");
    await worker.run({ result: false });
    const answer = await asked;

    assert.equal(answer.status, 422);
    assert.deepEqual(JSON.parse(answer.text), {
      error: { code: "CONDITION_NOT_MET", message: "Request condition not met" },
      skipped: true,
    });
    await worker.receivesNothing();
  },

  "anything else lets the request pass, with the same payload": async (wire) => {
    const condition_function_id = "cond::ask2";
    const worker = await serve(
      wire,
      "cond::g",
      { api_path: "/cond2", condition_function_id },
      "cond::ask2",
    );

    for (const outcome of [{ result: true }, { result: 0 }, {}]) {
      const asked = ask(wire, "/cond2?a=b");
      const question = await worker.run(outcome);
      const call = await worker.run({ result: {} });
      assert.equal((await asked).status, 200);
      assert.deepEqual([question.function_id, call.function_id], ["cond::ask2", "cond::g"]);
      assert.deepEqual(question.data, call.data);
    }
  },

  "a condition that fails is 500": async (wire) => {
    const condition_function_id = "cond::ask3";
    const worker = await serve(
      wire,
      "cond::h",
      { api_path: "/cond3", condition_function_id },
      "cond::ask3",
    );

    const asked = ask(wire, "/cond3");
    await worker.run({ error: { code: "broken", message: "x" } });

    assert.equal((await asked).status, 500);
    await worker.receivesNothing();
  },

  "middleware runs in order; each passes the request on or responds": async (wire) => {
    const middleware_function_ids = ["mid::a", "mid::b"];
    const config = { api_path: "/mid/:id", middleware_function_ids };
    const worker = await serve(wire, "mid::f", config, "mid::a", "mid::b");
    const respond = { action: "respond", response: { status_code: 401, body: { no: 1 } } };

    const passing = ask(wire, "/mid/7?q=1");
    const first = await worker.run({ result: { action: "continue" } });
    await worker.run({});
    const call = await worker.run({ result: {} });
    const stopping = ask(wire, "/mid/8");
    await worker.run({ result: respond });
    const stopped = await stopping;

    assert.deepEqual([(await passing).status, call.function_id], [200, "mid::f"]);
    const { request, ...rest } = first.data as { request: JsonObject } & JsonObject;
    assert.deepEqual(rest, { phase: "preHandler", context: {} });
    const { headers, ...asked } = request;
    assert.equal(typeof headers, "object");
    assert.deepEqual(asked, { path_params: { id: "7" }, query_params: { q: "1" }, method: "GET" });
    assert.deepEqual([stopped.status, stopped.text], [401, '{"no":1}']);
    await worker.receivesNothing();
  },

  "middleware that fails is 500, that is too slow 504": async (wire) => {
    const config = { api_path: "/mid2", middleware_function_ids: ["mid::c"] };
    const worker = await serve(wire, "mid::g", config, "mid::c");

    const failing = ask(wire, "/mid2");
    await worker.run({ error: "broken" });
    const failed = await failing;
    const late = ask(wire, "/mid2");
    await worker.receive();
    const slow = await late;

    assert.equal(failed.status, 500);
    assert.deepEqual([slow.status, errorOf(slow).code], [504, "MIDDLEWARE_TIMEOUT"]);
    await worker.receivesNothing();
  },
});

proveOnWire("conditions of a route", {
  "a wrong token is 401, a client over its rate 429 with `Retry-After`": async (wire) => {
    const config = {
      api_path: "/guarded",
      auth_token: "s3cret",
      rate_limit: { requests: 2, per_s: 3_600, key: "header:x-key" },
    };
    const worker = await serve(wire, "guarded::f", config);
    const headers = { authorization: "Bearer s3cret", "x-key": "a" };

    const wrong = await ask(wire, "/guarded", { headers: { "x-key": "a" } });
    const asked = ask(wire, "/guarded", { headers });
    await worker.run({ result: {} });
    const answered = await asked;
    const over = await fetch(`${wire.httpUrl}/guarded`, { headers });
    const { code } = errorOf({ status: over.status, text: await over.text() });

    assert.deepEqual([wrong.status, errorOf(wrong).code], [401, "unauthorized"]);
    assert.equal(answered.status, 200);
    assert.deepEqual([over.status, code], [429, "rate_limited"]);
    assert.match(over.headers.get("retry-after") ?? "", /^1[78]\d\d$/);
  },

  "`context` of middleware reaches the handler, which has none without": async (wire) => {
    const config = { api_path: "/context", middleware_function_ids: ["context::who"] };
    const worker = await serve(wire, "context::f", config, "context::who");

    const contexts = [];
    for (const context of [{ user: 7 }, null]) {
      const asked = ask(wire, "/context");
      await worker.run({ result: { action: "continue", context } });
      const { data } = await worker.run({ result: {} });
      contexts.push((data as JsonObject).context);
      assert.equal((await asked).status, 200);
    }

    assert.deepEqual(contexts, [{ user: 7 }, undefined]);
  },
});
