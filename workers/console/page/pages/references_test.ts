import assert from "node:assert/strict";
import { triggerLabel } from "./references.tsx";

Deno.test("triggerLabel() of a route is method and path, with GET and a slash as defaults", () => {
  assert.equal(triggerLabel("http", { api_path: "/a/:id", http_method: "post" }), "POST /a/:id");
  assert.equal(triggerLabel("http", { api_path: "a" }), "GET /a");
});

Deno.test("triggerLabel() of WebSockets is WS and path", () => {
  assert.equal(triggerLabel("websocket", { api_path: "chat/:room" }), "WS /chat/:room");
  assert.equal(triggerLabel("websocket", {}, "none"), "none");
});

Deno.test("triggerLabel() of a state trigger is scope and key", () => {
  assert.equal(triggerLabel("state", { scope: "orders" }), "orders");
  assert.equal(triggerLabel("state", { scope: "orders", key: "1" }), "orders / 1");
});

Deno.test("triggerLabel() of other types is an expression or a topic", () => {
  assert.equal(triggerLabel("cron", { expression: "0 * * * *" }), "0 * * * *");
  assert.equal(triggerLabel("subscribe", { topic: "mail" }), "mail");
});

Deno.test("triggerLabel() of an unknown type is its configuration", () => {
  assert.equal(triggerLabel("mine", { a: 1 }, "a=1"), "a=1");
  assert.equal(triggerLabel("mine", { a: 1 }), '{"a":1}');
  for (const none of [{}, null, undefined]) assert.equal(triggerLabel("mine", none), "always");
  assert.equal(triggerLabel("http", "broken"), '"broken"');
});
