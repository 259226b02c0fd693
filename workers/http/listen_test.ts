/**
 * A port that opens, drains and closes, with real sockets.
 *
 * @module
 */
import assert from "node:assert/strict";
import { DRAIN_MS } from "../../sdk/typescript/wire/limits.ts";
import { HTTP_FLUSH_MS } from "../limits.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { HttpListener } from "./listen.ts";

/** A listener whose answers wait until they are let go. */
function setup(at = { host: "127.0.0.1", port: 0 }) {
  const clock = new FakeClock();
  const waiting: (() => void)[] = [];
  const heard: string[] = [];
  const listener = new HttpListener(at, clock, {
    fetch: (request) => {
      if (request.url.endsWith("/now")) return new Response("now");
      return new Promise((resolve) => waiting.push(() => resolve(new Response("later"))));
    },
    drain: () => void heard.push("drain"),
    stop: () => {
      heard.push("stop");
      waiting.forEach((finish) => finish());
    },
  });
  return { clock, waiting, heard, listener };
}

/** Waits for something that sockets bring about. */
async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !holds(); i++) await new Promise((go) => setTimeout(go, 5));
  assert.ok(holds(), "did not come about in 5 s");
}

Deno.test("HttpListener says on which port it is", async () => {
  const { listener } = setup();

  const response = await fetch(`${listener.url}/now`);

  assert.match(listener.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(await response.text(), "now");
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener puts an IPv6 address in brackets", async () => {
  const { listener } = setup({ host: "::1", port: 0 });

  assert.match(listener.url, /^http:\/\/\[::1\]:\d+$/);
  assert.equal(await (await fetch(`${listener.url}/now`)).text(), "now");
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener says that a port is taken and what to do", async () => {
  const { listener } = setup();
  const port = Number(new URL(listener.url).port);

  assert.throws(() => setup({ host: "127.0.0.1", port }), {
    code: "address_in_use",
    message: `Port ${port} is taken; stop the other program or set port of engine-http`,
    details: { host: "127.0.0.1", port },
  });
  await listener[Symbol.asyncDispose]();
});

Deno.test("HttpListener says that an address is not this machine's", () => {
  assert.throws(() => setup({ host: "203.0.113.7", port: 0 }), { code: "address_not_available" });
});

Deno.test("HttpListener closes at once when only idle clients are left", async () => {
  const { listener, clock } = setup();
  const { hostname, port } = new URL(listener.url);
  const idle = await Deno.connect({ hostname, port: Number(port) });
  await idle.write(new TextEncoder().encode("GET /now HTTP/1.1\r\nhost: a\r\n\r\n"));
  await idle.read(new Uint8Array(1_000));

  await listener[Symbol.asyncDispose]();

  assert.equal(clock.waiting, 0);
  idle.close();
  await assert.rejects(Deno.connect({ hostname, port: Number(port) }));
});

Deno.test("HttpListener lets running requests finish and takes no new ones", async () => {
  const { listener, waiting, heard } = setup();
  const running = fetch(`${listener.url}/later`);
  await until(() => waiting.length === 1);

  const closed = listener[Symbol.asyncDispose]();
  await assert.rejects(fetch(`${listener.url}/now`));
  waiting[0]!();

  assert.equal(await (await running).text(), "later");
  await closed;
  assert.deepEqual(heard, ["drain", "stop"]);
});

Deno.test("HttpListener ends requests that outlive the drain", async () => {
  const { listener, waiting, heard, clock } = setup();
  const running = fetch(`${listener.url}/later`);
  await until(() => waiting.length === 1);

  const closed = listener[Symbol.asyncDispose]();
  clock.tick(DRAIN_MS - 1);
  assert.deepEqual(heard, ["drain"]);
  clock.tick(1);

  assert.equal(await (await running).text(), "later");
  await closed;
  assert.deepEqual(heard, ["drain", "stop", "stop"]);
});

Deno.test("HttpListener does not wait for a client that stops in the middle of its head", async () => {
  const { listener } = setup();
  const { hostname, port } = new URL(listener.url);
  const stuck = await Deno.connect({ hostname, port: Number(port) });
  await stuck.write(new TextEncoder().encode("GET /now HTTP/1.1\r\nhost:"));
  await fetch(`${listener.url}/now`).then((response) => response.text());

  await listener[Symbol.asyncDispose]();

  stuck.close();
});

Deno.test("HttpListener gives up on a client that never sends its whole body", async () => {
  const { listener, clock } = setup();
  const { hostname, port } = new URL(listener.url);
  const stuck = await Deno.connect({ hostname, port: Number(port) });
  const head = "POST /now HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nabc";
  await stuck.write(new TextEncoder().encode(head));
  await stuck.read(new Uint8Array(1_000));

  const closed = listener[Symbol.asyncDispose]();
  await until(() => clock.waiting === 2);
  clock.tick(DRAIN_MS + HTTP_FLUSH_MS);

  await closed;
  let again: HttpListener | undefined;
  await until(() => {
    try {
      again = setup({ host: hostname, port: Number(port) }).listener;
    } catch {
      // The port comes free a turn later.
    }
    return again !== undefined;
  });
  await again![Symbol.asyncDispose]();
  stuck.close();
  await listener.drain();
});

Deno.test("HttpListener can be told twice to drain and to close", async () => {
  const { listener, heard } = setup();

  void listener.drain();
  void listener.drain();
  await Promise.all([listener[Symbol.asyncDispose](), listener[Symbol.asyncDispose]()]);

  assert.ok(heard.includes("drain"));
});
