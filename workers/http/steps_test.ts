/**
 * What stops a request before its handler: middleware and conditions, and what happens when they
 * fail themselves.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { failure, type FakeFunction, fakeHttp, json } from "../../tests/fakes/fake_http.ts";

const MIDDLEWARE = [{ function_id: "late", priority: 5 }, { function_id: "early", priority: -1 }];

/** A route whose steps note that they ran. */
function setup(functions: Record<string, FakeFunction> = {}) {
  const steps = {
    early: () => ({ action: "continue" }),
    late: () => null,
    condition: () => true,
    own: () => undefined,
    handler: () => ({ body: "handled" }),
    ...functions,
  };
  const fake = fakeHttp({ middleware: MIDDLEWARE }, steps);
  fake.route("POST /f/:id", "handler", {
    condition_function_id: "condition",
    middleware_function_ids: ["own"],
  });
  const ran = (): string[] => fake.calls.map(({ function_id }) => function_id);
  const send = () => fake.fetch("POST /f/1?q=2", json('{"a":1}'));
  return { ...fake, ran, send };
}

Deno.test("Steps run in order: global middleware, condition, own middleware, handler", async () => {
  const { send, ran } = setup();

  const response = await send();

  assert.equal(await response.json(), "handled");
  assert.deepEqual(ran(), ["early", "late", "condition", "own", "handler"]);
});

Deno.test("Middleware sees the request without its body, the condition all of it", async () => {
  const { send, calls } = setup();

  await send();

  const request = {
    path_params: { id: "1" },
    query_params: { q: "2" },
    headers: { "content-type": "application/json" },
    method: "POST",
  };
  assert.deepEqual(calls[0]!.payload, { phase: "preHandler", request, context: {} });
  assert.deepEqual(calls[3]!.payload, calls[0]!.payload);
  assert.deepEqual(calls[2]!.payload, calls[4]!.payload);
  assert.deepEqual((calls[2]!.payload as { body: Json }).body, { a: 1 });
});

for (const name of ["early", "own"]) {
  Deno.test(`Middleware ${name} answers instead of the handler`, async () => {
    const response = { status_code: 401, body: { who: "you" }, headers: { "x-a": "1" } };
    const { send, ran } = setup({ [name]: () => ({ action: "respond", response }) });

    const answer = await send();

    assert.equal(answer.status, 401);
    assert.equal(answer.headers.get("x-a"), "1");
    assert.deepEqual(await answer.json(), { who: "you" });
    assert.equal(ran().at(-1), name);
  });
}

for (const said of [null, undefined, true, 0, "", "false", {}, [], { a: false }]) {
  Deno.test(`A condition that returns ${JSON.stringify(said)} lets the request pass`, async () => {
    const { send } = setup({ condition: () => said });

    assert.equal((await send()).status, 200);
  });
}

Deno.test("A condition that returns false is answered with 422", async () => {
  const { send, ran } = setup({ condition: () => false });

  const response = await send();

  assert.equal(response.status, 422);
  assert.deepEqual(await response.json(), {
    error: { code: "CONDITION_NOT_MET", message: "Request condition not met" },
    skipped: true,
  });
  assert.equal(ran().at(-1), "condition");
});

for (
  const [step, code, status] of [
    ["early", "invocation_failed", 500],
    ["early", "function_not_found", 500],
    ["own", "own_code", 500],
    ["own", "overloaded", 429],
    ["condition", "invocation_failed", 500],
    ["condition", "function_not_found", 500],
  ] as const
) {
  Deno.test(`An error ${code} of ${step} is answered with ${status}`, async () => {
    const { send, ran } = setup({
      [step]: () => {
        throw failure(code, "broken");
      },
    });

    const response = await send();

    assert.equal(response.status, status);
    const { error } = await response.json();
    assert.equal(error.code, code);
    assert.equal(error.message, "broken");
    assert.equal(ran().at(-1), step);
  });
}

Deno.test("Middleware that is too slow is answered with 504 and says which", async () => {
  const { send } = setup({
    own: () => {
      throw failure("timeout", "late");
    },
  });

  const response = await send();

  assert.equal(response.status, 504);
  const { error } = await response.json();
  assert.equal(error.code, "MIDDLEWARE_TIMEOUT");
  assert.equal(error.message, "Middleware own did not answer in time");
});

Deno.test("A condition that is too slow is answered with 504", async () => {
  const { send } = setup({
    condition: () => {
      throw failure("timeout", "late");
    },
  });

  assert.equal((await send()).status, 504);
});

for (const said of [{}, { action: "allow" }, { action: null }, true, "continue", []]) {
  Deno.test(`Middleware that returns ${JSON.stringify(said)} opens no door`, async () => {
    const { send, ran } = setup({ early: () => said });

    const response = await send();

    assert.equal(response.status, 500);
    assert.match((await response.json()).error.message, /must return/);
    assert.deepEqual(ran(), ["early"]);
  });
}

Deno.test("All steps share the time of the request", async () => {
  const fake = setup({
    early: () => {
      fake.clock.tick(10_000);
      return null;
    },
  });

  await fake.send();

  assert.deepEqual(fake.calls.map(({ timeout_ms }) => timeout_ms), [
    30_000,
    20_000,
    20_000,
    20_000,
    20_000,
  ]);
});

Deno.test("A broken body is found before the condition, but after global middleware", async () => {
  const { fetch, ran } = setup();

  const response = await fetch("POST /f/1", json("{"));

  assert.equal(response.status, 400);
  assert.deepEqual(ran(), ["early", "late"]);
});
