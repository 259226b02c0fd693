import assert from "node:assert/strict";
import { listenError, refusalAnswer, wantsUpgrade } from "./answers.ts";

Deno.test("a missing token is answered with how to send one, another refusal as it is", () => {
  const forbidden = { status: 403, message: "Not you" };

  assert.deepEqual(refusalAnswer({ status: 401, message: "Who?" }), {
    status: 401,
    message: "Who?",
    headers: { "www-authenticate": "Bearer" },
  });
  assert.equal(refusalAnswer(forbidden), forbidden);
});

Deno.test("an upgrade is asked for in any case and among others", () => {
  assert.equal(wantsUpgrade(new Headers({ upgrade: "h2c, WebSocket" })), true);
  assert.equal(wantsUpgrade(new Headers({ upgrade: "h2c" })), false);
  assert.equal(wantsUpgrade(new Headers()), false);
});

Deno.test("listenError() tells a taken port from an address that cannot be had", () => {
  const taken = listenError("127.0.0.1", 1, new Deno.errors.AddrInUse("in use"));
  const other = listenError("nowhere", 1, new Error("no such host"));

  assert.equal(taken.code, "address_in_use");
  assert.equal(other.code, "address_not_available");
  assert.match(other.message, /nowhere:1 \(no such host\); set engine\.host/);
});
