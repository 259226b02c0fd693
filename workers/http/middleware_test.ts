/**
 * Middleware and conditions: their order, what they see, say and fail with.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
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

for (const step of ["early", "condition", "own"]) {
  Deno.test(`An error of ${step} that names its status is answered with it`, async () => {
    const { send, ran } = setup({
      [step]: () => {
        const headers = { "www-authenticate": "Bearer" };
        throw failure("unauthorized", "who?", { details: { status_code: 401, headers } });
      },
    });

    const response = await send();

    assert.deepEqual([response.status, response.headers.get("www-authenticate")], [401, "Bearer"]);
    assert.equal((await response.json()).error.message, "who?");
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
  Deno.test(`Middleware that returns ${JSON.stringify(said)} lets no request pass`, async () => {
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

Deno.test("what middleware says about a request reaches all later steps", async () => {
  let condition: string[] = [];
  const { send, calls } = setup({
    early: () => ({ action: "continue", context: { user: { id: 7 }, shop: "a" } }),
    condition: ({ payload }) => {
      condition = Object.keys((payload as JsonObject).context!);
      return true;
    },
    own: () => ({ action: "continue", context: { shop: "b", ["__proto__"]: { admin: true } } }),
  });

  await send();

  const [early, late, _condition, own, handler] = calls.map(({ payload }) => {
    return (payload as JsonObject).context;
  });
  assert.deepEqual([early, late], [{}, { user: { id: 7 }, shop: "a" }]);
  assert.deepEqual([own, condition], [late, ["user", "shop"]]);
  assert.deepEqual(Object.keys(handler!), ["user", "shop", "__proto__"]);
  assert.equal((handler as { admin?: boolean }).admin, undefined);
  assert.deepEqual((handler as JsonObject).shop, "b");
});

Deno.test("the payload has no context if no middleware said something", async () => {
  const { send, calls } = setup({ own: () => ({ action: "continue", context: null }) });

  await send();

  assert.ok(!("context" in (calls.at(-1)!.payload as JsonObject)));
});

for (const context of ["text", 5, [1], true] as Json[]) {
  Deno.test(`a context ${JSON.stringify(context)} of middleware lets no request pass`, async () => {
    const { send, ran } = setup({ own: () => ({ action: "continue", context }) });

    const response = await send();

    assert.equal(response.status, 500);
    assert.match((await response.json()).error.message, /its context is an object/);
    assert.equal(ran().at(-1), "own");
  });
}
