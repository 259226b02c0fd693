import assert from "node:assert/strict";
import type { WebSockets } from "../../../engine/ports/web_sockets.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import { servedRequest, settle } from "../../../tests/fakes/fake_http.ts";
import { fakeSockets } from "../../../tests/fakes/fake_sockets.ts";
import { EventSpans } from "./spans.ts";
import { SocketUpgrades } from "./upgrade.ts";

function setup(config: JsonObject = {}) {
  const it = fakeSockets({ ...config, close_function_id: "left" }, { max: 2 });
  it.functions.left = () => {};
  const spans = new EventSpans({ open: () => null, record() {} }, it.clock);
  const webSockets: WebSockets = { problemOf: () => undefined, accept: () => Promise.resolve() };
  const newId = () => crypto.randomUUID();
  const origins = ["https://listed.example"];
  const refused: string[] = [];
  const services = {
    ...{ webSockets, sockets: it.sockets, spans, newId, origins },
    refused: (origin: string) => void refused.push(origin),
  };
  const upgrade = new SocketUpgrades(services, () => it.routes.find("/")!, it.target(), () => {});
  const open = (said?: unknown) => {
    const request = servedRequest(new Request("http://localhost/"));
    const payload: JsonObject = { path: "/", path_params: {} };
    upgrade.prepare(payload, request);
    return upgrade.open(request, payload, () => Promise.resolve(said as JsonObject), undefined);
  };
  return { ...it, upgrade, open, refused };
}

Deno.test("A client that leaves while connect runs is closed with 1006, once", async () => {
  const it = setup({ connect_function_id: "join" });

  const reply = await it.open({ groups: ["g"] });
  assert.deepEqual([reply.status, it.sockets.size], [101, 1]);
  reply.lost!();
  reply.lost!();
  await settle();

  assert.deepEqual(it.calls.map(({ payload }) => (payload as JsonObject).code), [1006]);
  assert.deepEqual([it.sockets.size, it.sockets.groupCount, it.memory.usedBytes], [0, 0, 0]);
});

Deno.test("A refused connect returns its place", async () => {
  const it = setup({ connect_function_id: "join" });

  for (let i = 0; i < 5; i++) assert.equal((await it.open({ status_code: 403 })).status, 403);
  for (let i = 0; i < 5; i++) await assert.rejects(it.open("?"), { code: "invocation_failed" });
  assert.equal((await it.open()).status, 101);
});

Deno.test("A connect that ends while the engine stops is closed with 1001 at once", async () => {
  const it = setup({ connect_function_id: "join" });
  const opening = it.open();

  await it.sockets.drain();
  const reply = await opening;
  await settle();

  assert.equal(reply.status, 101);
  assert.deepEqual(it.calls.map(({ payload }) => (payload as JsonObject).code), [1001]);
});

Deno.test("Pages may connect whose origin CORS or the trigger lists, and those of the same host", () => {
  const { upgrade, refused } = setup({ allowed_origins: ["https://app.example"] });
  const status = (origin: string, host = "localhost:3111") => {
    const request = servedRequest(new Request("http://localhost/"));
    const headers = { ...request.headers, origin, host };
    return upgrade.refusalOf({ ...request, headers })?.status;
  };

  for (
    const origin of [
      "https://listed.example",
      "https://app.example",
      "HTTPS://APP.example",
      "http://localhost:5173",
      "http://127.0.0.1",
    ]
  ) assert.equal(status(origin), undefined, origin);
  assert.equal(status("https://shop.example", "shop.example"), undefined);
  assert.deepEqual(refused, []);
  for (
    const origin of [
      "https://evil.example",
      "https://app.example.evil.example",
      "https://evil.example#https://app.example",
      "null",
      "",
      "file://",
    ]
  ) assert.equal(status(origin), 403, origin);
  assert.deepEqual(refused.slice(0, 1), ["https://evil.example"]);
});
