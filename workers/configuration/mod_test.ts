import assert from "node:assert/strict";
import { configuration } from "./mod.ts";

Deno.test("the configuration lists variables, and a directory of secrets", () => {
  assert.deepEqual(configuration.parse(undefined), { environment: [] });
  const config = { environment: ["SHOP_*", "MODE"], secrets_directory: "/run/secrets" };
  assert.deepEqual(configuration.parse(config), config);
});

Deno.test("patterns that are no names, and unknown keys, are refused", () => {
  for (const pattern of ["*", "A*B", "a-b", "", "1A"]) {
    assert.throws(() => configuration.parse({ environment: [pattern] }), /environment/, pattern);
  }
  assert.throws(() => configuration.parse({ secrets: "x" }), /secrets/);
});
