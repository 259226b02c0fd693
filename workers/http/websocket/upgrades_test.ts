import assert from "node:assert/strict";
import { tokenIn, upgradeRequired, wantsUpgrade } from "./upgrades.ts";

Deno.test("wantsUpgrade() takes a GET that asks for a WebSocket, however it spells it", () => {
  assert.equal(wantsUpgrade("GET", { upgrade: "websocket" }), true);
  assert.equal(wantsUpgrade("GET", { upgrade: "WebSocket, h2c" }), true);
  assert.equal(wantsUpgrade("POST", { upgrade: "websocket" }), false);
  assert.equal(wantsUpgrade("GET", { upgrade: "h2c" }), false);
  assert.equal(wantsUpgrade("GET", {}), false);
});

Deno.test("tokenIn() decodes the token of a query", () => {
  assert.equal(tokenIn("a=1&token=x%2By"), "x+y");
  assert.equal(tokenIn("token="), "");
  assert.equal(tokenIn("tokens=1"), undefined);
});

Deno.test("upgradeRequired() is 426 with the protocol to upgrade to", () => {
  const { status, headers } = upgradeRequired();

  assert.equal(status, 426);
  assert.ok(headers.some(([name, value]) => name === "upgrade" && value === "websocket"));
});
