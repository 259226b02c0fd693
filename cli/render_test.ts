import assert from "node:assert/strict";
import {
  compactJson,
  count,
  printable,
  renderBytes,
  renderDuration,
  renderJson,
  renderShortDuration,
  renderStack,
  renderTable,
} from "./render.ts";

Deno.test("renderJson() keeps short values on one line", () => {
  assert.equal(renderJson({ c: 5 }), '{ "c": 5 }');
  assert.equal(renderJson({ a: [1, 2], b: { c: null } }), '{ "a": [1, 2], "b": { "c": null } }');
  assert.equal(renderJson({}), "{}");
  assert.equal(renderJson([]), "[]");
  assert.equal(renderJson("text"), '"text"');
  assert.equal(renderJson(null), "null");
});

Deno.test("renderJson() indents values that are longer than a line, and no others", () => {
  const long = "x".repeat(70);

  const text = renderJson({ short: { a: 1 }, long, list: [long, 2] });

  assert.equal(
    text,
    `{\n  "short": { "a": 1 },\n  "long": "${long}",\n  "list": [\n    "${long}",\n    2\n  ]\n}`,
  );
});

Deno.test("renderJson() is JSON of the same value, whatever it contains", () => {
  const value = { "\u0085": ["\u001b[31m", "\u202e", "\ud800", "é", { deep: [[[]]] }], n: -0.5 };

  assert.deepEqual(JSON.parse(renderJson(value)), value);
  assert.deepEqual(JSON.parse(compactJson(value)), value);
});

Deno.test("JSON for people and programs holds no character that a terminal obeys", () => {
  const value = "\u001b[2J\u009b\u202e\u2028\u007f";

  for (const text of [renderJson(value), compactJson(value)]) {
    assert.match(text, /^[\x20-\x7e]*$/);
  }
});

Deno.test("printable() removes escape sequences and control characters, and nothing else", () => {
  assert.equal(printable("\u001b[31mred\u001b[0m\ttab\nline\u0007\u202e é"), "red\ttab\nline é");
  assert.equal(printable("\u001b]0;title\u0007after"), "after");
  assert.equal(printable("a\rb\u009b5mc"), "ab5mc");
});

Deno.test("renderTable() pads all columns but the last, and removes line breaks", () => {
  const lines = renderTable(["NAME", "STATE", "REMARK"], [["math", "ready", ""], [
    "a\nb",
    "x",
    "y",
  ]]);

  assert.deepEqual(lines, ["NAME  STATE  REMARK", "math  ready", "a b   x      y"]);
});

Deno.test("renderDuration() uses the two units that matter", () => {
  const shown = [0, 85.4, 999, 2_849, 59_960, 252_000, 3_600_000, 11_100_000, 187_200_000]
    .map(renderDuration);

  assert.deepEqual(shown, [
    "0 ms",
    "85 ms",
    "999 ms",
    "2.8 s",
    "1 min 0 s",
    "4 min 12 s",
    "1 h 0 min",
    "3 h 5 min",
    "2 d 4 h",
  ]);
});

Deno.test("count() uses the singular for one", () => {
  assert.deepEqual([0, 1, 2].map((n) => count(n, "line")), ["0 lines", "1 line", "2 lines"]);
});

for (
  const [ms, text] of [
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_999, "59m"],
    [3_600_000, "1h"],
    [86_399_999, "23h"],
    [86_400_000, "1d"],
    [400 * 86_400_000, "400d"],
  ] as const
) {
  Deno.test(`renderShortDuration(${ms}) is ${text}`, () => {
    assert.equal(renderShortDuration(ms), text);
  });
}

for (
  const [bytes, text] of [
    [0, "0 KiB"],
    [627_000, "612 KiB"],
    [49_283_072, "47 MiB"],
    [1_610_612_736, "1.5 GiB"],
    [25_769_803_776, "24 GiB"],
    [1_098_437_885_952, "1.0 TiB"],
  ] as const
) {
  Deno.test(`renderBytes(${bytes}) is ${text}`, () => assert.equal(renderBytes(bytes), text));
}

Deno.test("renderStack() leaves out the frames of the SDK and the runtime", () => {
  const ts = [
    "Error: no",
    "    at fail (file:///shop/main.js:10:23)",
    "    at file:///shop/node_modules/engine-sdk/engine_sdk.js:6584:16",
    "    at AsyncLocalStorage.run (ext:deno_node/async_hooks.ts:1:1762)",
    "    at node:internal/main:5:1",
  ].join("\n");
  const py = [
    "Traceback (most recent call last):",
    '  File "/x/engine_sdk/_handlers.py", line 9, in run',
    "    return handler(payload)",
    "           ^^^^^^^",
    '  File "/shop/main.py", line 3, in fail',
    '    raise ValueError("no")',
    "ValueError: no",
  ].join("\n");

  assert.deepEqual(renderStack(ts, "shop::f").slice(1), [
    "    Error: no",
    "        at fail (file:///shop/main.js:10:23)",
  ]);
  assert.deepEqual(renderStack(py, "shop::f").slice(1), [
    "    Traceback (most recent call last):",
    '      File "/shop/main.py", line 3, in fail',
    '        raise ValueError("no")',
    "    ValueError: no",
  ]);
});
