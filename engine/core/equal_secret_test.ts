/**
 * Comparing secrets.
 *
 * @module
 */
import assert from "node:assert/strict";
import { isEqualSecret } from "./equal_secret.ts";

for (
  const [known, said, equal] of [
    ["abc", "abc", true],
    ["abc", "abd", false],
    ["abc", "", false],
    ["abc", "abcabc", false],
    ["aaaa", "a", false],
  ] as const
) {
  Deno.test(`isEqualSecret() says ${equal} of "${known}" and "${said}"`, () => {
    assert.equal(isEqualSecret(known, said), equal);
  });
}
