import assert from "node:assert/strict";
import { isLoopback } from "./loopback.ts";

for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]) {
  Deno.test(`${host} is a loopback address`, () => assert.ok(isLoopback(host)));
}

for (
  const host of [
    "",
    "0.0.0.0",
    "::",
    "128.0.0.1",
    "127.0.0",
    "127.evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
  ]
) {
  Deno.test(`"${host}" is not a loopback address`, () => assert.ok(!isLoopback(host)));
}
