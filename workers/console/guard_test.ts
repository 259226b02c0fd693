/**
 * @module
 */
import assert from "node:assert/strict";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { isSameText, problemOf, rightsOf } from "./guard.ts";

/** A request with these headers; `Request` would not let a test set some of them. */
const request = (headers: Record<string, string>): Request =>
  ({ headers: new Headers(headers) }) as Request;

const local = (headers: Record<string, string>, isUpgrade = false) =>
  problemOf(request(headers), { isLoopback: true, isUpgrade });

Deno.test("problemOf() lets pages in that are opened by any name of this machine", () => {
  for (const host of ["127.0.0.1:3113", "localhost:3113", "127.8.9.1", "[::1]:80", "localhost"]) {
    assert.equal(local({ host }), undefined, host);
  }
});

Deno.test("problemOf() refuses a name that somebody else has led to this machine", () => {
  for (
    const host of [
      "evil.example:3113",
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "notlocalhost",
      "192.168.1.5:3113",
      "0.0.0.0:3113",
      "[::]:3113",
      "128.0.0.1",
    ]
  ) assert.match(local({ host })!, /listens on this machine only/, host);
});

Deno.test("problemOf() refuses a request without a host that can be read", () => {
  for (const host of ["", "::1", "a b", "[", "localhost:port"]) {
    assert.match(local({ host })!, /names no host/, host);
  }
  assert.match(local({})!, /names no host/);
});

Deno.test("problemOf() takes lines of its own pages only", () => {
  const host = "localhost:3113";

  assert.equal(local({ host, origin: "http://localhost:3113" }, true), undefined);
  assert.equal(local({ host, origin: "https://localhost:3113" }, true), undefined);
  for (
    const origin of [
      "null",
      "http://localhost",
      "http://localhost:8080",
      "http://127.0.0.1:3113",
      "http://evil.example",
      "http://localhost:3113.evil.example",
      "http://evil.example/http://localhost:3113",
      "file://",
      "",
    ]
  ) assert.match(local({ host, origin }, true)!, /Another web page/, origin);
  assert.match(local({ host }, true)!, /without an origin/);
});

Deno.test("problemOf() refuses other web pages the page itself, too", () => {
  const host = "localhost:3113";

  assert.equal(local({ host, origin: "http://localhost:3113" }), undefined);
  assert.match(local({ host, origin: "http://evil.example" })!, /Another web page/);
});

Deno.test("problemOf() on an address for other machines takes any host but its own origin only", () => {
  const ask = (headers: Record<string, string>) =>
    problemOf(request(headers), { isLoopback: false, isUpgrade: true });

  assert.equal(ask({ host: "box.lan:3113", origin: "http://box.lan:3113" }), undefined);
  assert.match(ask({ host: "box.lan:3113", origin: "http://evil.example" })!, /Another web page/);
});

Deno.test("rightsOf() knows every token, and nothing of anything else", () => {
  const tokens = [{ text: "abc", rights: "operator" }, { text: "xyz", rights: "guest" }] as const;

  assert.deepEqual(
    ["abc", "xyz", "", "ab", "abcd", "ABC", "xyz "].map((text) => rightsOf(text, tokens)),
    ["operator", "guest", undefined, undefined, undefined, undefined, undefined],
  );
  assert.equal(rightsOf("", []), undefined);
});

Deno.test("isSameText() compares whole texts, whatever their letters", () => {
  assert.ok(isSameText("schlüssel", "schlüssel"));
  assert.ok(!isSameText("schlüssel", "schlussel"));
  assert.ok(!isSameText("", "a"));
  assert.ok(!isSameText("a", ""));
});

Deno.test("isLoopback() knows addresses of this machine only", () => {
  const hosts = ["127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0", "::", "10.0.0.1", "127.1"];

  assert.deepEqual(hosts.map(isLoopback), [true, true, true, true, false, false, false, false]);
});
