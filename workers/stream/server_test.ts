import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { type FakeStreams, fakeStreams } from "../../tests/fakes/stream_subscriber.ts";

function urlOf({ engine }: FakeStreams): string {
  return engine.endpoints.find(({ name }) => name === "streams")!.url;
}

/** The status of a request to the port that is not upgraded. */
async function statusOf(at: FakeStreams, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(urlOf(at));
  const socket = await Deno.connect({ hostname, port: Number(port) });
  const all = { host: "localhost", connection: "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  await socket.write(new TextEncoder().encode(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`));
  const text = await new Response(socket.readable).text();
  return [Number(text.split(" ")[1]), text.slice(text.indexOf("\r\n\r\n") + 4)] as const;
}

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

Deno.test("the port serves WebSockets of pages of this machine and of listed origins only", async () => {
  await using at = await fakeStreams({ allowed_origins: ["https://shop.example"] });
  const foreign = { ...UPGRADE, origin: "https://evil.example" };
  const cases: [string, Record<string, string>, number, RegExp][] = [
    ["/", {}, 426, /WebSocket/],
    ["/other", UPGRADE, 404, /Subscribers connect to \//],
    ["/", foreign, 403, /allowed_origins of engine-stream/],
    ["/", { ...UPGRADE, host: "evil.example" }, 403, /allowed_hosts of engine-stream/],
    ["/", { ...UPGRADE, "sec-websocket-version": "8" }, 426, /version/i],
  ];
  for (const [path, headers, status, text] of cases) {
    const answer = await statusOf(at, path, headers);
    assert.equal(answer[0], status, answer[1]);
    assert.match(answer[1], text);
  }
  assert.equal((await at.stats()).connections, 0);
});

Deno.test("a real client joins by the port, and its subprotocol is selected", async () => {
  await using at = await fakeStreams();
  await at.call("set", { stream_name: "chat", group_id: "room-1", item_id: "a", data: { n: 1 } });
  const socket = new WebSocket(urlOf(at), ["engine.stream.v1", "bearer.token"]);
  const messages: Json[] = [];
  const two = Promise.withResolvers<void>();
  socket.onmessage = ({ data }) => {
    if (messages.push((JSON.parse(data) as { event: Json }).event) === 2) two.resolve();
  };
  await new Promise((resolve) => socket.onopen = resolve);
  socket.send(JSON.stringify({
    type: "join",
    data: { subscriptionId: "s", streamName: "chat", groupId: "room-1" },
  }));
  while (messages.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  await at.call("set", { stream_name: "chat", group_id: "room-1", item_id: "b", data: 2 });
  await two.promise;

  assert.equal(socket.protocol, "engine.stream.v1");
  assert.deepEqual(messages, [
    { type: "sync", data: [{ n: 1 }], ids: ["a"] },
    { type: "create", data: 2 },
  ]);
  const closed = new Promise<CloseEvent>((resolve) => socket.onclose = resolve);
  await at.engine[Symbol.asyncDispose]();
  assert.equal((await closed).code, 1001);
});

Deno.test("there is a number of places, of which one client cannot have all", async () => {
  await using at = await fakeStreams({ connections_max: 8 });
  const own = Array.from({ length: 7 }, () => at.connect());

  assert.throws(() => at.connect(), /503 This client has 7 connections/);
  own[0]!.cut();
  at.connect();
  await at.engine.settle();

  const { connections, connections_max } = await at.stats();
  assert.deepEqual([connections, connections_max], [7, 8]);
});

Deno.test("the path of the worker port is open when an auth function decides", async () => {
  await using closed = await fakeStreams();
  await using open = await fakeStreams({ auth_function: "auth" });

  assert.equal(closed.engine.sockets.get("/stream")!.open, false);
  assert.equal(open.engine.sockets.get("/stream")!.open, true);
});
