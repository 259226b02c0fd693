/**
 * Names in `Host`; `workers/http/server_test.ts` has the table of what is allowed.
 *
 * @module
 */
import assert from "node:assert/strict";
import { AllowedHosts, nameOf } from "./allowed_hosts.ts";

for (
  const [host, name] of [
    ["localhost", "localhost"],
    ["LocalHost:3111", "localhost"],
    ["a.example.", "a.example"],
    ["[::1]:80", "[::1]"],
    ["::1", undefined],
    ["2130706433", "127.0.0.1"],
    ["", undefined],
    ["a b", undefined],
    ["a@b", undefined],
    ["a/b", undefined],
    ["a:x", undefined],
  ] as const
) {
  Deno.test(`nameOf(${JSON.stringify(host)}) is ${name}`, () => {
    assert.equal(nameOf(host), name);
  });
}

Deno.test("AllowedHosts remembers a good header and no bad one", () => {
  const hosts = new AllowedHosts(["api.example"]);

  assert.equal(hosts.allows("api.example"), true);
  assert.equal(hosts.allows("api.example"), true);
  assert.equal(hosts.allows("other.example"), false);
  assert.equal(hosts.allows("other.example"), false);
});
