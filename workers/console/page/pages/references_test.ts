import assert from "node:assert/strict";
import { triggerLabel } from "./references.tsx";

Deno.test("triggerLabel() names a route by method and path, GET and a slash being understood", () => {
  assert.equal(triggerLabel("http", { api_path: "/a/:id", http_method: "post" }), "POST /a/:id");
  assert.equal(triggerLabel("http", { api_path: "a" }), "GET /a");
});

Deno.test("triggerLabel() names a place in the state", () => {
  assert.equal(triggerLabel("state", { scope: "orders" }), "orders");
  assert.equal(triggerLabel("state", { scope: "orders", key: "1" }), "orders / 1");
});

Deno.test("triggerLabel() takes an expression or a topic of other types", () => {
  assert.equal(triggerLabel("cron", { expression: "0 * * * *" }), "0 * * * *");
  assert.equal(triggerLabel("subscribe", { topic: "mail" }), "mail");
});

Deno.test("triggerLabel() of a type that it does not know is the configuration in short", () => {
  assert.equal(triggerLabel("mine", { a: 1 }, "a=1"), "a=1");
  assert.equal(triggerLabel("mine", { a: 1 }), '{"a":1}');
  for (const none of [{}, null, undefined]) assert.equal(triggerLabel("mine", none), "always");
  assert.equal(triggerLabel("http", "broken"), '"broken"');
});
