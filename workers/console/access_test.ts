/**
 * @module
 */
import assert from "node:assert/strict";
import { AllowedHosts } from "../kit/allowed_hosts.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import {
  addressKey,
  checkCall,
  checkTrigger,
  derive,
  guestView,
  isSameText,
  operatorKeyOf,
  randomSecret,
  requestProblem,
  rightsOf,
  storedSecret,
} from "./access.ts";

/** A request with these headers; `Request` would not let a test set some of them. */
const request = (headers: Record<string, string>): Request =>
  ({ headers: new Headers(headers) }) as Request;

const local = (headers: Record<string, string>, isUpgrade = false) =>
  requestProblem(request(headers), {
    isLoopback: true,
    isUpgrade,
    hosts: new AllowedHosts(["127.0.0.1", "console.example"]),
  });

Deno.test("requestProblem() accepts every name of this machine", () => {
  for (const host of ["127.0.0.1:3113", "localhost:3113", "127.8.9.1", "[::1]:80", "localhost"]) {
    assert.equal(local({ host }), undefined, host);
  }
});

Deno.test("requestProblem() refuses a foreign name that resolves to this machine", () => {
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

Deno.test("requestProblem() refuses a request without a readable host", () => {
  for (const host of ["", "::1", "a b", "[", "localhost:port"]) {
    assert.match(local({ host })!, /Host of the request is missing or invalid/, host);
  }
  assert.match(local({})!, /Host of the request is missing or invalid/);
});

Deno.test("requestProblem() accepts WebSockets of the console's own pages only", () => {
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
  assert.match(local({ host }, true)!, /without an Origin/);
});

Deno.test("requestProblem() refuses the page to other web pages, too", () => {
  const host = "localhost:3113";

  assert.equal(local({ host, origin: "http://localhost:3113" }), undefined);
  assert.match(local({ host, origin: "http://evil.example" })!, /Another web page/);
});

Deno.test("requestProblem() on a public address accepts known names, and only its own origin", () => {
  const hosts = new AllowedHosts(["0.0.0.0", "box.lan"]);
  const ask = (headers: Record<string, string>) =>
    requestProblem(request(headers), { isLoopback: false, isUpgrade: true, hosts });
  const rebound = { host: "evil.example:3113", origin: "http://evil.example:3113" };

  assert.equal(ask({ host: "10.0.0.7:3113", origin: "http://10.0.0.7:3113" }), undefined);
  assert.match(ask(rebound)!, /add "evil\.example" to allowed_hosts of engine-console/);

  assert.equal(ask({ host: "box.lan:3113", origin: "http://box.lan:3113" }), undefined);
  assert.match(ask({ host: "box.lan:3113", origin: "http://evil.example" })!, /Another web page/);
});

Deno.test("rightsOf() returns the rights of each token, and none for other texts", () => {
  const tokens = [{ text: "abc", rights: "operator" }, { text: "xyz", rights: "guest" }] as const;

  assert.deepEqual(
    ["abc", "xyz", "", "ab", "abcd", "ABC", "xyz "].map((text) => rightsOf(text, tokens)),
    ["operator", "guest", undefined, undefined, undefined, undefined, undefined],
  );
  assert.equal(rightsOf("", []), undefined);
});

Deno.test("isSameText() compares whole texts, also non-ASCII ones", () => {
  assert.ok(isSameText("schlüssel", "schlüssel"));
  assert.ok(!isSameText("schlüssel", "schlussel"));
  assert.ok(!isSameText("", "a"));
  assert.ok(!isSameText("a", ""));
});

Deno.test("isLoopback() is true for addresses of this machine only", () => {
  const hosts = ["127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0", "::", "10.0.0.1", "127.1"];

  assert.deepEqual(hosts.map(isLoopback), [true, true, true, true, false, false, false, false]);
});

const CHANGES = ["start", "stop", "restart", "add", "remove", "exec"];

Deno.test("checkCall() refuses a guest that manages workers, and says how to open an operator page", () => {
  for (const name of [...CHANGES, "something_new", ""]) {
    assert.throws(() => checkCall("guest", `engine::supervisor::${name}`), {
      code: "FORBIDDEN",
      message: /engine console --open$/,
    });
  }
});

Deno.test("checkCall() refuses a guest that changes the console's own connection", () => {
  for (const name of ["workers::register", "register_trigger", "unregister_trigger"]) {
    assert.throws(() => checkCall("guest", `engine::${name}`), { code: "FORBIDDEN" });
    checkCall("operator", `engine::${name}`);
  }
});

Deno.test("checkCall() refuses a guest that removes traces or logs", () => {
  for (const id of ["engine::traces::clear", "engine::logs::clear"]) {
    assert.throws(() => checkCall("guest", id), { code: "FORBIDDEN" });
    checkCall("operator", id);
  }
});

Deno.test("checkCall() refuses a guest that decides about the jobs of a queue", () => {
  for (
    const name of [
      "pause",
      "resume",
      "purge",
      "redrive",
      "redrive_message",
      "discard",
      "discard_message",
    ]
  ) {
    assert.throws(() => checkCall("guest", `engine::queue::${name}`), { code: "FORBIDDEN" });
    checkCall("operator", `engine::queue::${name}`);
  }
  for (const name of ["list", "stats", "peek", "dlq_messages", "enqueue"]) {
    checkCall("guest", `engine::queue::${name}`);
  }
});

Deno.test("checkCall() refuses a guest that lets a queue make a call it may not make", () => {
  const enqueue = (payload: unknown) => checkCall("guest", "engine::queue::enqueue", payload);

  const ids = ["configuration::get", "engine::queue::purge", "engine::queue::enqueue"];
  for (const function_id of ids) {
    assert.throws(() => enqueue({ function_id }), { code: "FORBIDDEN" });
    checkCall("operator", "engine::queue::enqueue", { function_id });
  }
  for (const payload of [{ function_id: "mail::send" }, { function_id: 7 }, undefined, null, 5]) {
    enqueue(payload);
  }
});

Deno.test("checkTrigger() refuses a guest that lets a trigger make a call it may not make", () => {
  const config = { topic: "t", condition_function_id: "engine::queue::purge" };

  assert.throws(() => checkTrigger("guest", { type: "subscribe", config }), { code: "FORBIDDEN" });
  checkTrigger("operator", { type: "subscribe", config });
  checkTrigger("guest", { type: "subscribe", config: { condition_function_id: "mail::is_open" } });
  checkTrigger("guest", { type: "log" });
});

Deno.test("checkCall() lets a guest look, and call what any worker may call", () => {
  for (const name of ["list", "status", "logs", "info"]) {
    checkCall("guest", `engine::supervisor::${name}`);
  }
  for (const id of ["math::add", "state::set", "engine::workers::list", "supervisor::stop"]) {
    checkCall("guest", id);
  }
});

Deno.test("checkCall() lets the operator call everything", () => {
  for (const name of CHANGES) checkCall("operator", `engine::supervisor::${name}`);
});

Deno.test("checkCall() refuses a guest that changes configurations or streams, or reads secrets", () => {
  for (
    const id of [
      "configuration::register",
      "configuration::set",
      "configuration::get",
      "stream::set",
      "stream::update",
      "stream::delete",
      "stream::send",
    ]
  ) {
    assert.throws(() => checkCall("guest", id), { code: "FORBIDDEN" });
    checkCall("operator", id);
  }
  for (const id of ["configuration::list", "configuration::history", "stream::list"]) {
    checkCall("guest", id);
  }
});

Deno.test("guestView() removes payloads of traces wherever they are, and nothing else", () => {
  const view = guestView("engine::traces::tree")!;
  const span = {
    name: "math::add",
    attributes: [["engine.worker", "math"], ["engine.request", "{}"], ["engine.response", "3"]],
    "engine.request": "{}",
    children: [{ attributes: [["engine.request", "deep"]], n: null }],
  };

  assert.deepEqual(view({ spans: [span], total: 1 }), {
    spans: [{
      name: "math::add",
      attributes: [["engine.worker", "math"]],
      children: [{ attributes: [], n: null }],
    }],
    total: 1,
  });
  for (const plain of [undefined, null, 1, "engine.request", true]) {
    assert.equal(view(plain), plain);
  }
});

Deno.test("guestView() removes payloads and results of jobs, and nothing else", () => {
  const job = { id: "j1", function_id: "mail::send", error: "no address" };
  const full = { ...job, payload: { to: "ann" } };

  assert.deepEqual(guestView("engine::queue::peek")!({ jobs: [full, full] }), { jobs: [job, job] });
  assert.deepEqual(guestView("engine::queue::dlq_messages")!([full]), [job]);
  assert.deepEqual(
    guestView("engine::queue::result")!({ id: "j1", result: { jobs: 5 }, done_at_ms: 1 }),
    { id: "j1", done_at_ms: 1 },
  );
  for (const plain of [undefined, null, 1, []]) {
    assert.deepEqual(guestView("engine::queue::peek")!(plain), plain);
  }
});

Deno.test("guestView() is for functions that return payloads only", () => {
  const ids = ["engine::queue::list", "engine::queue::stats", "engine::logs::list", "a::b"];

  assert.deepEqual(ids.map(guestView), ids.map(() => undefined));
});

/** A file with this text. */
async function setup(text: string) {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, text);
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path) };
}

Deno.test("operatorKeyOf() equals addressKey() of the same control key", async () => {
  const key = "0123456789abcdef".repeat(4);
  await using file = await setup(JSON.stringify({ url: "ws://127.0.0.1:1", pid: 1, key }));

  const found = await operatorKeyOf({ path: file.path, problem: null });

  assert.equal(found, await addressKey(key));
  assert.notEqual(found, key);
});

Deno.test("operatorKeyOf() is undefined without a readable key", async () => {
  await using empty = await setup("{}");
  await using broken = await setup("not JSON");
  const missing = `${empty.path}.gone`;

  for (const path of [empty.path, broken.path, missing]) {
    assert.equal(await operatorKeyOf({ path, problem: null }), undefined);
  }
  assert.equal(await operatorKeyOf({ path: empty.path, problem: "no room" }), undefined);
});

Deno.test("storedSecret() is stable per store, and differs between stores", async () => {
  await using store = new MemoryStore();
  await using other = new MemoryStore();

  const secret = await storedSecret(store);

  assert.match(secret, /^[0-9a-f]{64}$/);
  assert.equal(await storedSecret(store), secret);
  assert.notEqual(await storedSecret(other), secret);
});

Deno.test("storedSecret() is random when the store cannot keep it", async () => {
  const broken = { write: () => Promise.reject(new Error("read-only")) };

  assert.notEqual(await storedSecret(broken), await storedSecret(broken));
});

Deno.test("storedSecret() ignores a stored value that is no text", async () => {
  await using store = new MemoryStore();
  await store.write([[["console", "secret"], () => ({ not: "a text" })]]);

  assert.match(await storedSecret(store), /^[0-9a-f]{64}$/);
});

Deno.test("derive() is deterministic, and differs for each secret and purpose", async () => {
  const one = await derive("secret", "operator");

  assert.match(one, /^[0-9a-f]{32}$/);
  assert.equal(await derive("secret", "operator"), one);
  assert.notEqual(await derive("secret", "guest"), one);
  assert.notEqual(await derive("secre", "operator"), one);
});

Deno.test("randomSecret() is two hexadecimal digits per byte, and differs each time", () => {
  assert.match(randomSecret(6), /^[0-9a-f]{12}$/);
  assert.notEqual(randomSecret(), randomSecret());
});
