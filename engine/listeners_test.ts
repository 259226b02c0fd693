import assert from "node:assert/strict";
import { shareSockets } from "./listeners.ts";

// Listeners are opened and asked over sockets in tests/e2e/listeners_test.ts.

Deno.test("the default listener has all sockets where it is alone, else half of them", () => {
  assert.deepEqual(shareSockets(20_000, 0), { first: 20_000, each: 0 });
  assert.deepEqual(shareSockets(20_000, 3), { first: 10_000, each: 3_333 });
  assert.deepEqual(shareSockets(3, 32), { first: 2, each: 1 });
});
