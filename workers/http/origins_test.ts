import assert from "node:assert/strict";
import { mayUse } from "./origins.ts";

Deno.test("mayUse() allows pages of this machine and of the same host, whatever their port", () => {
  const isAllowed = mayUse({ origins: [] });

  assert.equal(isAllowed("http://localhost:5173", "localhost:3111"), true);
  assert.equal(isAllowed("http://[::1]:80", "shop.example"), true);
  assert.equal(isAllowed("https://shop.example", "shop.example:3111"), true);
  assert.equal(isAllowed("https://shop.example", undefined), false);
  assert.equal(isAllowed("https://www.shop.example", "shop.example"), false);
  assert.equal(isAllowed("null", "shop.example"), false);
  assert.equal(isAllowed("chrome-extension://abc", "shop.example"), false);
});

Deno.test("mayUse() allows listed origins in any case, and all with *", () => {
  const isAllowed = mayUse({ origins: ["https://App.example", "null"] });

  assert.equal(isAllowed("https://app.EXAMPLE", "shop.example"), true);
  assert.equal(isAllowed("null", "shop.example"), true);
  assert.equal(isAllowed("https://app.example:8443", "shop.example"), false);
  assert.equal(mayUse({ origins: ["*"] })("https://evil.example", undefined), true);
});
