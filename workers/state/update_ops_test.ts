import assert from "node:assert/strict";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { fit } from "../kit/fit.ts";
import { applyOps, UPDATE_OPS_MAX, UpdateOp } from "./update_ops.ts";

/** Name, old value, op, new value. */
const APPLIED: readonly [string, Json | undefined, Json, Json][] = [
  ["set puts a member", { a: 1 }, { type: "set", path: "b", value: 2 }, { a: 1, b: 2 }],
  ["set replaces a member", { a: 1 }, { type: "set", path: "a", value: null }, { a: null }],
  ["set takes a path literally", {}, { type: "set", path: "a.b", value: 1 }, { "a.b": 1 }],
  ["set replaces the root", { a: 1 }, { type: "set", path: "", value: [1] }, [1]],
  ["set starts from an object", undefined, { type: "set", path: "a", value: 1 }, { a: 1 }],
  ["merge adds to the root", { a: 1 }, { type: "merge", value: { b: 2 } }, { a: 1, b: 2 }],
  ["merge takes null for no path", {}, { type: "merge", path: null, value: { b: 2 } }, { b: 2 }],
  ["merge is shallow", { a: { x: 1 } }, { type: "merge", value: { a: { y: 2 } } }, { a: { y: 2 } }],
  [
    "merge adds to a member",
    { a: { x: 1 } },
    { type: "merge", path: "a", value: { y: 2 } },
    { a: { x: 1, y: 2 } },
  ],
  [
    "merge makes objects on its way",
    { a: 1 },
    { type: "merge", path: ["a", "b"], value: { y: 2 } },
    { a: { b: { y: 2 } } },
  ],
  ["merge replaces a root that is no object", [1], { type: "merge", value: { a: 1 } }, { a: 1 }],
  ["increment adds", { n: 1 }, { type: "increment", path: "n", by: 2 }, { n: 3 }],
  ["increment starts from nothing", undefined, { type: "increment", path: "n", by: 2 }, { n: 2 }],
  ["increment adds to a fraction", { n: 0.5 }, { type: "increment", path: "n", by: -1 }, {
    n: -0.5,
  }],
  ["increment adds to a root", 5, { type: "increment", path: "", by: 2 }, 7],
  ["decrement subtracts", { n: 1 }, { type: "decrement", path: "n", by: 2 }, { n: -1 }],
  ["decrement starts from nothing", {}, { type: "decrement", path: "n", by: 2 }, { n: -2 }],
  ["append pushes", { l: [1] }, { type: "append", path: "l", value: [2] }, { l: [1, [2]] }],
  ["append joins texts", { t: "a" }, { type: "append", path: "t", value: "b" }, { t: "ab" }],
  ["append starts a text", {}, { type: "append", path: "t", value: "b" }, { t: "b" }],
  ["append starts a text from null", { t: null }, { type: "append", path: ["t"], value: "b" }, {
    t: "b",
  }],
  ["append starts a list", { l: null }, { type: "append", path: "l", value: 1 }, { l: [1] }],
  [
    "append starts a list on a nested path, also for a text",
    {},
    { type: "append", path: ["a", "l"], value: "b" },
    { a: { l: ["b"] } },
  ],
  ["append pushes to the root", [1], { type: "append", value: 2 }, [1, 2]],
  ["append joins to the root", "a", { type: "append", path: "", value: "b" }, "ab"],
  ["append starts at a null root", null, { type: "append", value: 1 }, [1]],
  ["remove deletes a member", { a: 1, b: 2 }, { type: "remove", path: "a" }, { b: 2 }],
  ["remove of nothing does nothing", { a: 1 }, { type: "remove", path: "b" }, { a: 1 }],
  ["remove does nothing to a list", [1], { type: "remove", path: "0" }, [1]],
  ["remove sets the root to null", { a: 1 }, { type: "remove", path: "" }, null],
];

for (const [name, old, op, expected] of APPLIED) {
  Deno.test(`applyOps() ${name}`, () => {
    const before = JSON.stringify(old);

    const { value, errors } = applyOps(old, [fit("f", UpdateOp, op)]);

    assert.deepEqual(errors, []);
    assert.deepEqual(value, expected);
    assert.equal(JSON.stringify(old), before, "the old value is as it was");
  });
}

const DEEP = Array.from({ length: 33 }, (_, i) => `p${i}`);
const MANY = Object.fromEntries(Array.from({ length: 1_025 }, (_, i) => [`k${i}`, i]));

/** Code, old value, op. */
const SKIPPED: readonly [string, Json, Json][] = [
  ["set.target_not_object", [1], { type: "set", path: "a", value: 1 }],
  ["set.target_not_object", null, { type: "set", path: "a", value: 1 }],
  ["merge.value.not_an_object", {}, { type: "merge", value: [1] }],
  ["merge.value.not_an_object", {}, { type: "merge", value: null }],
  ["merge.value.too_many_keys", {}, { type: "merge", value: MANY }],
  ["merge.value.too_deep", {}, { type: "merge", value: nested(17) }],
  ["merge.value.proto_polluted", {}, { type: "merge", value: JSON.parse('{"__proto__":1}') }],
  ["merge.value.proto_polluted", {}, { type: "merge", value: { a: [{ constructor: 1 }] } }],
  ["merge.path.too_deep", {}, { type: "merge", path: DEEP, value: {} }],
  ["merge.path.segment_too_long", {}, { type: "merge", path: ["☃".repeat(86)], value: {} }],
  ["merge.path.empty_segment", {}, { type: "merge", path: ["a", ""], value: {} }],
  ["merge.path.proto_polluted", {}, { type: "merge", path: ["a", "prototype"], value: {} }],
  ["merge.path.proto_polluted", {}, { type: "merge", path: "__proto__", value: {} }],
  ["increment.not_number", { n: "1" }, { type: "increment", path: "n", by: 1 }],
  ["increment.not_number", { n: null }, { type: "increment", path: "n", by: 1 }],
  ["increment.not_number", {}, { type: "increment", path: "", by: 1 }],
  ["increment.target_not_object", 5, { type: "increment", path: "n", by: 1 }],
  ["decrement.not_number", { n: [] }, { type: "decrement", path: "n", by: 1 }],
  ["decrement.target_not_object", [], { type: "decrement", path: "n", by: 1 }],
  ["append.type_mismatch", { t: "a" }, { type: "append", path: "t", value: 1 }],
  ["append.type_mismatch", { t: { a: 1 } }, { type: "append", path: "t", value: "b" }],
  ["append.type_mismatch", {}, { type: "append", value: 1 }],
  ["append.target_not_object", [1], { type: "append", path: "a", value: 1 }],
  ["append.target_not_object", { a: 1 }, { type: "append", path: ["a", "b"], value: 1 }],
  ["append.path.too_deep", {}, { type: "append", path: DEEP, value: 1 }],
  ["append.path.segment_too_long", {}, { type: "append", path: "x".repeat(257), value: 1 }],
  ["append.path.empty_segment", {}, { type: "append", path: [""], value: 1 }],
  ["append.path.proto_polluted", {}, { type: "append", path: ["constructor"], value: 1 }],
  ["set.value.too_deep", {}, { type: "set", path: "a", value: nested(127) }],
  ["set.value.too_deep", {}, { type: "set", path: "", value: nested(128) }],
  ["append.value.too_deep", {}, { type: "append", path: ["a", "b"], value: nested(125) }],
];

for (const [i, [code, old, op]] of SKIPPED.entries()) {
  Deno.test(`applyOps() skips an operation as ${code} (case ${i}), and the others apply`, () => {
    const last: Json = { type: "set", path: "", value: "done" };

    const { value, errors } = applyOps(old, [fit("f", UpdateOp, op), fit("f", UpdateOp, last)]);
    const alone = applyOps(old, [fit("f", UpdateOp, op)]);

    assert.equal(value, "done");
    assert.deepEqual(errors.map((error) => [error.op_index, error.code]), [[0, code]]);
    assert.match(errors[0]!.message, /^[A-Z].*[^.]$/);
    assert.deepEqual(alone.value, old);
  });
}

Deno.test("applyOps() applies operations in order and reports skipped ones", () => {
  const ops: Json[] = [
    { type: "increment", path: "n", by: 2 },
    { type: "append", path: "n", value: 1 },
    { type: "append", path: "log", value: { at: 1 } },
    { type: "append", path: "log", value: { at: 2 } },
    { type: "merge", path: ["meta", "ui"], value: { dark: true } },
    { type: "decrement", path: "log", by: 1 },
    { type: "remove", path: "old" },
  ];

  const { value, errors } = applyOps({ old: 1 }, ops.map((op) => fit("f", UpdateOp, op)));

  assert.deepEqual(value, { n: 2, log: [{ at: 1 }, { at: 2 }], meta: { ui: { dark: true } } });
  assert.deepEqual(errors.map(({ op_index, code }) => [op_index, code]), [
    [1, "append.type_mismatch"],
    [5, "decrement.not_number"],
  ]);
});

Deno.test("applyOps() treats __proto__ as an ordinary member", () => {
  const op = (type: string, rest: object) =>
    fit("f", UpdateOp, { type, path: "__proto__", ...rest });

  const made = applyOps({}, [op("set", { value: { polluted: true } })]).value;
  const added = applyOps({}, [op("increment", { by: 1 }), op("increment", { by: 1 })]).value;
  const gone = applyOps(made, [op("remove", {})]).value;

  assert.equal(JSON.stringify(made), '{"__proto__":{"polluted":true}}');
  assert.equal(JSON.stringify(added), '{"__proto__":2}');
  assert.equal(JSON.stringify(gone), "{}");
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

Deno.test("applyOps() modifies neither its input nor the operations", () => {
  const old = { list: [1], inner: { a: 1 } };
  const value = { list: ["x"] };
  const ops: UpdateOp[] = [
    { type: "append", path: "list", value: 2 },
    { type: "merge", path: ["inner"], value: { b: 2 } },
    { type: "set", path: "op", value },
    { type: "append", path: ["op", "list"], value: "y" },
  ];

  const updated = applyOps(old, ops).value;

  assert.deepEqual(updated, {
    list: [1, 2],
    inner: { a: 1, b: 2 },
    op: { list: ["x", "y"] },
  });
  assert.deepEqual([old, value], [{ list: [1], inner: { a: 1 } }, { list: ["x"] }]);
});

const REFUSED: readonly [string, Json, RegExp][] = [
  ["an unknown type", { type: "push", path: "a" }, /type: expected set, merge, increment/],
  ["no type", { path: "a" }, /type: /],
  ["a list", [], /expected/],
  ["no path", { type: "set", value: 1 }, /path: expected string, received nothing/],
  ["no value", { type: "set", path: "a" }, /value: expected a value/],
  ["no value to merge", { type: "merge" }, /value: expected a value/],
  ["a path of numbers", { type: "append", path: [1], value: 1 }, /path: expected string or array/],
  ["a list as path of set", { type: "set", path: ["a"], value: 1 }, /path: expected string/],
  ["a fraction", { type: "increment", path: "a", by: 0.5 }, /by: expected int, received 0.5/],
  ["no number", { type: "decrement", path: "a", by: "1" }, /by: expected number/],
];

for (const [name, op, message] of REFUSED) {
  Deno.test(`UpdateOp rejects ${name}`, () => {
    assert.throws(() => fit("f", UpdateOp, op), { code: "deserialization_error", message });
  });
}

function nested(levels: number): Json {
  return levels === 1 ? {} : { a: nested(levels - 1) };
}

Deno.test("applyOps() merges a value of 16 levels on a path of 32 names", () => {
  const op = fit("f", UpdateOp, { type: "merge", path: DEEP.slice(1), value: nested(16) });

  assert.deepEqual(applyOps({}, [op]).errors, []);
});

Deno.test("applyOps() takes values to 127 levels, so that state::set takes them again", () => {
  const ops: Json[] = [
    { type: "set", path: "a", value: nested(126) },
    { type: "append", path: ["b", "c"], value: nested(124) },
  ];

  assert.deepEqual(applyOps({}, ops.map((op) => fit("f", UpdateOp, op))).errors, []);
});

Deno.test("applyOps() merges in time that does not grow with the value", () => {
  const large = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`k${i}`, i]));
  const ops = Array.from(
    { length: UPDATE_OPS_MAX },
    (_, i): UpdateOp => ({ type: "merge", path: undefined, value: { [`m${i}`]: i } }),
  );
  const began = performance.now();

  const { value } = applyOps(large, ops);

  assert.equal(Object.keys(value as object).length, 31_000);
  assert.ok(performance.now() - began < 1_000, `${performance.now() - began} ms`);
});
