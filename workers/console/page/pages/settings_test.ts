/**
 * @module
 */
import assert from "node:assert/strict";
import type { ConfigValue } from "../../../../engine/ports/config.ts";
import { isChanged, matchesSearch, originText, withUnit } from "./settings.tsx";

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

for (
  const [name, value, text] of [
    ["engine.max_message_bytes", 67_108_864, "64 MiB"],
    ["engine.memory_mb", 2_048, "2 GiB"],
    ["engine.invocation_timeout_ms", 600_000, "10 min"],
    ["engine.max_inflight_bytes_per_worker", 268_435_456, "256 MiB"],
    ["for_s", 30, "30 s"],
    ["cpu_percent", 20, "20 %"],
    ["engine.port", 49_134, null],
    ["engine.address_bytes", "64", null],
    ["engine.max_inflight_calls_per_worker", 10_000, null],
  ] as const
) {
  Deno.test(`withUnit() of ${name} ${value} is ${text}`, () => {
    assert.equal(withUnit(name, value), text);
  });
}
