import assert from "node:assert/strict";
import { type Admitted, makeTokenCheck } from "./token.ts";
import type { TokenRecord } from "./token_file.ts";
import type { TokenFound } from "./tokens.ts";

// The forms a token may come in are tried at the gate.

Deno.test("without a token, or with an empty one, all may go on", () => {
  for (const authToken of [undefined, ""]) {
    assert.ok(passes(makeTokenCheck({ authToken })(asked("/?token=whatever"))));
    assert.ok(passes(makeTokenCheck({ authToken })(asked("/"))));
  }
});

Deno.test("a token of another length is wrong as well", () => {
  const check = makeTokenCheck({ authToken: "secret" });

  assert.ok(passes(check(asked("/?token=secret"))));
  for (const token of ["", "s", "secre", "secrets", "SECRET"]) {
    assert.ok(!passes(check(asked(`/?token=${token}`))), token);
  }
});

const token = { id: "1", name: "ci" } as unknown as TokenRecord;
const created = {
  find: (presented: string): TokenFound =>
    presented === "good"
      ? { state: "valid", token }
      : presented.startsWith("old")
      ? { state: "refused", message: "Token ci was revoked" }
      : { state: "unknown" },
};

Deno.test("a created token counts beside the one of config.yaml, and says who came", () => {
  const check = makeTokenCheck({ authToken: "secret", created });

  assert.deepEqual(check(asked("/?token=good")), { token });
  assert.deepEqual(check(asked("/?token=secret")), { token: undefined });
  assert.deepEqual(check(asked("/?token=old")), {
    status: 401,
    message: "Token ci was revoked; create one with engine token create",
  });
});

Deno.test("the token of config.yaml counts also if it looks like a created one", () => {
  const check = makeTokenCheck({ authToken: "old-shape", created });

  assert.deepEqual(check(asked("/?token=old-shape")), { token: undefined });
});

Deno.test("an open port knows created tokens, and refuses those that have ended", () => {
  const check = makeTokenCheck({ created });

  assert.deepEqual(check(asked("/?token=good")), { token });
  assert.ok(passes(check(asked("/"))));
  assert.ok(passes(check(asked("/?token=other"))));
  assert.ok(!passes(check(asked("/?token=old"))));
});

Deno.test("a port that requires a token without one of its own takes created ones only", () => {
  const check = makeTokenCheck({ created, required: true });

  assert.ok(passes(check(asked("/?token=good"))));
  assert.ok(!passes(check(asked("/"))));
  assert.ok(!passes(check(asked("/?token=other"))));
});

function passes(outcome: Admitted | { status: number }): outcome is Admitted {
  return !("status" in outcome);
}

function asked(target: string) {
  const { pathname: path, searchParams: query } = new URL(target, "http://127.0.0.1");
  return { path, query, headers: new Headers(), address: "127.0.0.1" };
}
