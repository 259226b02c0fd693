/**
 * @module
 */
import assert from "node:assert/strict";
import type { ConfigValue } from "../../../../engine/ports/config.ts";
import { isChanged, matchesSearch, originText } from "./settings.tsx";

function setting(change: Partial<ConfigValue> = {}): ConfigValue {
  return {
    key: "engine.port",
    value: 49134,
    default: 49134,
    source: "default",
    line: null,
    variable: null,
    needs_restart: true,
    ...change,
  };
}

Deno.test("isChanged() compares a value with its default, whatever its source", () => {
  assert.equal(isChanged(setting({ source: "file", line: 2 })), false);
  assert.equal(isChanged(setting({ value: 1 })), true);
  assert.equal(isChanged(setting({ value: [], default: [] })), false);
});

for (
  const [change, words] of [
    [{}, "default"],
    [{ source: "file", line: 12 }, "line 12"],
    [{ source: "file" }, "file"],
    [{ source: "variable", variable: "PORT", line: 3 }, "PORT, line 3"],
    [{ source: "variable" }, "variable"],
    [{ source: "option" }, "command line"],
  ] as const
) {
  Deno.test(`originText() of ${JSON.stringify(change)} is ${words}`, () => {
    assert.equal(originText(setting(change)), words);
  });
}

Deno.test("matchesSearch() needs every word in name, value or origin", () => {
  const it = setting({ source: "variable", variable: "PORT", value: "abc" });

  for (const found of ["", "ENGINE", "port abc", "engine PORT"]) {
    assert.ok(matchesSearch(it, found));
  }
  for (const none of ["host", "port xyz"]) assert.ok(!matchesSearch(it, none));
});
