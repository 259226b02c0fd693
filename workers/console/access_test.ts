/**
 * @module
 */
import assert from "node:assert/strict";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import {
  addressKey,
  checkCall,
  derive,
  holdsPayloads,
  isSameText,
  keptSecret,
  operatorKeyOf,
  problemOf,
  rightsOf,
  withoutPayloads,
} from "./access.ts";

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

const CHANGES = ["start", "stop", "restart", "add", "remove", "exec"];

Deno.test("checkCall() keeps a guest from managing workers, and says how to", () => {
  for (const name of [...CHANGES, "something_new", ""]) {
    assert.throws(() => checkCall("guest", `engine::supervisor::${name}`), {
      code: "FORBIDDEN",
      message: /engine console --open$/,
    });
  }
});

Deno.test("checkCall() keeps a guest from changing the console's own connection", () => {
  for (const name of ["workers::register", "register_trigger", "unregister_trigger"]) {
    assert.throws(() => checkCall("guest", `engine::${name}`), { code: "FORBIDDEN" });
    checkCall("operator", `engine::${name}`);
  }
});

Deno.test("checkCall() lets a guest look, and call what any worker may", () => {
  for (const name of ["list", "status", "logs", "info"]) {
    checkCall("guest", `engine::supervisor::${name}`);
  }
  for (const id of ["math::add", "state::set", "engine::workers::list", "supervisor::stop"]) {
    checkCall("guest", id);
  }
});

Deno.test("checkCall() lets the operator do everything", () => {
  for (const name of CHANGES) checkCall("operator", `engine::supervisor::${name}`);
});

Deno.test("withoutPayloads() takes out payloads wherever they are, and nothing else", () => {
  const span = {
    name: "math::add",
    attributes: [["engine.worker", "math"], ["engine.request", "{}"], ["engine.response", "3"]],
    "engine.request": "{}",
    children: [{ attributes: [["engine.request", "deep"]], n: null }],
  };

  assert.deepEqual(withoutPayloads({ spans: [span], total: 1 }), {
    spans: [{
      name: "math::add",
      attributes: [["engine.worker", "math"]],
      children: [{ attributes: [], n: null }],
    }],
    total: 1,
  });
  for (const plain of [undefined, null, 1, "engine.request", true]) {
    assert.equal(withoutPayloads(plain), plain);
  }
});

Deno.test("holdsPayloads() is about traces only", () => {
  assert.deepEqual(
    ["engine::traces::list", "engine::traces::explain", "engine::logs::list", "a::b"]
      .map(holdsPayloads),
    [true, true, false, false],
  );
});

/** A file with this text. */
async function setup(text: string) {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, text);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

Deno.test("operatorKeyOf() is what the command line makes of the same key", async () => {
  const key = "0123456789abcdef".repeat(4);
  await using file = await setup(JSON.stringify({ url: "ws://127.0.0.1:1", pid: 1, key }));

  const found = await operatorKeyOf({ path: file.path, problem: null });

  assert.equal(found, await addressKey(key));
  assert.notEqual(found, key);
});

Deno.test("operatorKeyOf() is none when there is no key, or none that can be read", async () => {
  await using empty = await setup("{}");
  await using broken = await setup("not JSON");
  const missing = `${empty.path}.gone`;

  for (const path of [empty.path, broken.path, missing]) {
    assert.equal(await operatorKeyOf({ path, problem: null }), undefined);
  }
  assert.equal(await operatorKeyOf({ path: empty.path, problem: "no room" }), undefined);
});

Deno.test("keptSecret() is the same for one store, and another for another", async () => {
  await using store = new MemoryStore();
  await using other = new MemoryStore();

  const secret = await keptSecret(store);

  assert.match(secret, /^[0-9a-f]{64}$/);
  assert.equal(await keptSecret(store), secret);
  assert.notEqual(await keptSecret(other), secret);
});

Deno.test("keptSecret() is a new one where the store cannot keep it", async () => {
  const broken = { write: () => Promise.reject(new Error("read-only")) };

  assert.notEqual(await keptSecret(broken), await keptSecret(broken));
});

Deno.test("keptSecret() trusts nothing but a text in its place", async () => {
  await using store = new MemoryStore();
  await store.write([[["console", "secret"], () => ({ not: "a text" })]]);

  assert.match(await keptSecret(store), /^[0-9a-f]{64}$/);
});

Deno.test("derive() gives another secret for each purpose, always the same", async () => {
  const one = await derive("secret", "operator");

  assert.match(one, /^[0-9a-f]{32}$/);
  assert.equal(await derive("secret", "operator"), one);
  assert.notEqual(await derive("secret", "guest"), one);
  assert.notEqual(await derive("secre", "operator"), one);
});
