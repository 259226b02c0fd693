/**
 * What is said of settings.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ConfigValue } from "../../../../engine/ports/config.ts";
import { fitsSetting, isChanged, originWords } from "./configuration.tsx";

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

Deno.test("a setting is changed when its value is another than the default, wherever it is from", () => {
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
  Deno.test(`${JSON.stringify(change)} is from: ${words}`, () => {
    assert.equal(originWords(setting(change)), words);
  });
}

Deno.test("a search needs every word in name, value or origin", () => {
  const it = setting({ source: "variable", variable: "PORT", value: "abc" });

  for (const found of ["", "ENGINE", "port abc", "engine PORT"]) assert.ok(fitsSetting(it, found));
  for (const none of ["host", "port xyz"]) assert.ok(!fitsSetting(it, none));
});
