import assert from "node:assert/strict";
import { makeTokenCheck } from "./token.ts";

// The forms a token may come in are tried at the gate.

Deno.test("without a token, or with an empty one, all may go on", () => {
  for (const token of [undefined, ""]) {
    assert.ok(makeTokenCheck(token)(asked("/?token=whatever")));
    assert.ok(makeTokenCheck(token)(asked("/")));
  }
});

Deno.test("a token of another length is wrong as well", () => {
  const check = makeTokenCheck("secret");

  assert.ok(check(asked("/?token=secret")));
  for (const token of ["", "s", "secre", "secrets", "SECRET"]) {
    assert.ok(!check(asked(`/?token=${token}`)), token);
  }
});

function asked(target: string) {
  const { pathname: path, searchParams: query } = new URL(target, "http://127.0.0.1");
  return { path, query, headers: new Headers(), address: "127.0.0.1" };
}
