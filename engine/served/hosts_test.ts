import assert from "node:assert/strict";
import { type HostPattern, isHostAllowed, patternFor, readHostPattern } from "./hosts.ts";

function allows(patterns: readonly string[], url: string): boolean {
  const read = patterns.map((text) => readHostPattern(text) as HostPattern);
  return isHostAllowed(new URL(url), read);
}

Deno.test("a pattern allows its host by https on its own port only", () => {
  assert.ok(allows(["api.example.com"], "https://api.example.com/a?b"));
  assert.ok(allows(["API.Example.com"], "https://api.example.COM:443/"));
  assert.ok(allows(["api.example.com"], "https://api.example.com./"));
  for (
    const url of [
      "http://api.example.com/",
      "https://api.example.com:8443/",
      "https://example.com/",
      "https://x.api.example.com/",
      "https://api.example.com.evil.test/",
      "https://api.example.com@evil.test/",
      "https://notapi.example.com/",
    ]
  ) assert.ok(!allows(["api.example.com"], url), url);
});

Deno.test("a pattern with a scheme and a port allows just these", () => {
  const patterns = ["http://127.0.0.1:8080", "http://legacy", "https://[::1]:9443"];

  assert.ok(allows(patterns, "http://127.0.0.1:8080/x"));
  assert.ok(allows(patterns, "http://0x7f.1:8080/x"), "another spelling of the address");
  assert.ok(allows(patterns, "http://legacy/"));
  assert.ok(allows(patterns, "https://[0:0::1]:9443/"));
  assert.ok(!allows(patterns, "https://127.0.0.1:8080/x"));
  assert.ok(!allows(patterns, "http://127.0.0.1/x"));
  assert.ok(!allows(patterns, "https://legacy/"));
});

Deno.test("stars stand for any host, any part in front, any port", () => {
  assert.ok(allows(["*.example.com"], "https://a.b.example.com/"));
  assert.ok(!allows(["*.example.com"], "https://example.com/"));
  assert.ok(!allows(["*.example.com"], "https://.example.com/"));
  assert.ok(!allows(["*.example.com"], "https://notexample.com/"));
  assert.ok(allows(["*"], "https://anything.test/"));
  assert.ok(!allows(["*"], "https://anything.test:8443/"));
  assert.ok(!allows(["*"], "http://anything.test/"));
  assert.ok(allows(["*:*"], "https://anything.test:8443/"));
  assert.ok(allows(["http://*:*"], "http://[::1]:1/"));
});

Deno.test("no pattern allows nothing", () => {
  assert.ok(!allows([], "https://api.example.com/"));
});

Deno.test("readHostPattern() refuses what is no pattern, and says what is expected", () => {
  for (
    const text of [
      "",
      " ",
      "ftp://a.test",
      "a.test/path",
      "a.test?x",
      "user@a.test",
      "a.*.test",
      "*a.test",
      "a.test:99999",
      "a.test:x",
      "a test",
      "[::1",
      "[1.2]",
      "https://",
      "*.",
      "999.1.1.1",
      "*.[::1]",
    ]
  ) assert.match(String(readHostPattern(text)), /such as api\.example\.com/, text);
});

Deno.test("patternFor() is a pattern that allows the URL", () => {
  for (
    const url of [
      "https://api.example.com/a",
      "https://api.example.com:8443/a",
      "http://127.0.0.1:8080/",
      "http://[::1]/",
    ]
  ) assert.ok(allows([patternFor(new URL(url))], url), url);
});
