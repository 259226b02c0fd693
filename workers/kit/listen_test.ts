/**
 * @module
 */
import assert from "node:assert/strict";
import { listenError } from "../../engine/ports/listen.ts";
import { authorityOf } from "./listen.ts";

const SETTINGS = { port: "port of engine-test", address: "host or port of engine-test" };

Deno.test("listenError() names an address that cannot be opened, and the settings", () => {
  const cause = new Error("no such address");

  const error = listenError(cause, { host: "192.0.2.1", port: 80 }, SETTINGS);

  assert.equal(error.code, "address_not_available");
  assert.equal(
    error.message,
    "Cannot listen on 192.0.2.1:80 (no such address); change host or port of engine-test",
  );
  assert.equal(error.cause, cause);
  const taken = listenError(new Deno.errors.AddrInUse("in use"), { host: "a", port: 1 }, SETTINGS);
  assert.equal(taken.code, "address_in_use");
  assert.match(taken.message, /^Port 1 is taken; stop the other program or set /);
});

Deno.test("authorityOf() puts an IPv6 address into brackets", () => {
  assert.equal(authorityOf({ hostname: "::1", port: 80 }), "[::1]:80");
  assert.equal(authorityOf({ hostname: "127.0.0.1", port: 80 }), "127.0.0.1:80");
});
