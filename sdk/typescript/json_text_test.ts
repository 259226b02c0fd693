/**
 * What user code may send, and the path of what it may not.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { toJson } from "./json_text.ts";
import { EngineError } from "./wire/errors.ts";

class Point {
  x = 1;
  y = [{ z: 2 }];
  method(): void {}
}

class Secret {
  #value = 1;
  get value(): number {
    return this.#value;
  }
}

class Money {
  toJSON(): unknown {
    return { cents: 5 };
  }
}

function* count(): Generator<number> {
  yield 1;
}

async function* countLater(): AsyncGenerator<number> {
  yield await Promise.resolve(1);
}

Deno.test("toJson() encodes values as JSON, and undefined as undefined", () => {
  assert.equal(toJson("It", { a: [1, null] }), '{"a":[1,null]}');
  assert.equal(toJson("It", null), "null");
  assert.equal(toJson("It", undefined), undefined);
  assert.equal(toJson("It", "é\ud800"), '"é\\ud800"');
});

for (
  const value of [
    {},
    [],
    [undefined, , 1],
    { a: undefined, b: {} },
    Object.create(null),
    new Date(0),
    { at: [new Date(0)] },
    new Point(),
    new Money(),
    { deep: [new Money(), new Point()] },
    new EngineError("a", "b"),
    new URL("http://a/b"),
    Object(5),
    Object("x"),
    Object(true),
    { toJSON: () => 5 },
    { sum: 0, toJSON: () => 5, later: new Money() },
    new Proxy({ a: 1 }, {}),
    { constructor: 1, toString: 2, ["__proto__"]: 3 },
  ]
) {
  Deno.test(`toJson() writes ${JSON.stringify(value)} as JSON.stringify() does`, () => {
    assert.equal(toJson("It", value), JSON.stringify(value));
    assert.equal(toJson("It", { in: [value] }), JSON.stringify({ in: [value] }));
  });
}

const cycle: Record<string, unknown> = { a: 1 };
cycle.self = [cycle];

for (
  const [value, said] of [
    [new Map([["a", 1]]), "a Map; send Object.fromEntries(map)"],
    [new Set([1]), "a Set; send an array: [...set]"],
    [new WeakMap(), "a WeakMap"],
    [1n, "a BigInt; send a number or a string"],
    [new Uint8Array(2), "an Uint8Array; send a string, such as base64"],
    [Buffer.from("a"), "a Buffer; send a string, such as base64"],
    [new ArrayBuffer(1), "an ArrayBuffer; send a string, such as base64"],
    [new Float64Array(1), "a Float64Array; send a string, such as base64"],
    [() => {}, "a function"],
    [Symbol("s"), "a symbol"],
    [NaN, "NaN"],
    [-Infinity, "-Infinity"],
    [new Date(NaN), "an invalid Date"],
    [count(), "a Generator; send an array: [...values]"],
    [countLater(), "an AsyncGenerator; send an array: [...values]"],
    [new Map().keys(), /^an? (Map )?Iterator; send an array/],
    [new URLSearchParams("a=1"), "an URLSearchParams; send an array: [...values]"],
    [new ReadableStream(), "a ReadableStream; send an array: [...values]"],
    [Promise.resolve(1), "a Promise; await it"],
    [new RangeError("x"), "a RangeError; send its message"],
    [/x/, "a RegExp"],
    [new Secret(), "a Secret"],
    [new Response("x"), "a Response"],
    [new Blob(["x"]), "a Blob"],
  ] as [unknown, string | RegExp][]
) {
  const name = typeof said === "string" ? said : "a Map Iterator";
  Deno.test(`toJson() refuses ${name}, wherever it is, and says where`, () => {
    for (
      const [inside, path] of [
        [value, ""],
        [{ a: { b: value } }, ".a.b"],
        [[0, [value]], "[1][0]"],
        [{ ok: new Point(), rows: [{ at: new Date(0), v: value }] }, ".rows[0].v"],
      ] as [unknown, string][]
    ) {
      assert.throws(() => toJson("The result of a::b", inside), (error: EngineError) => {
        assert.equal(error.code, "serialization_error");
        assert.deepEqual(error.details, { path });
        const start = `The result of a::b cannot be written as JSON: value${path} is `;
        assert.ok(error.message.startsWith(start), error.message);
        const rest = error.message.slice(start.length);
        if (typeof said === "string") assert.equal(rest, said);
        else assert.match(rest, said);
        return true;
      });
    }
  });
}

Deno.test("toJson() names the part that contains itself", () => {
  assert.throws(() => toJson("It", cycle), {
    message: "It cannot be written as JSON: value.self[0] is an object that contains itself",
    details: { path: ".self[0]" },
  });
});

Deno.test("toJson() takes the same object twice, which is no cycle", () => {
  const shared = { a: new Point() };

  assert.equal(toJson("It", [shared, shared]), JSON.stringify([shared, shared]));
});

/** Arrays in arrays: `levels` of them. */
function nested(levels: number, inner: unknown = 1): unknown {
  let value = inner;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

Deno.test("toJson() takes 128 levels, also when a class makes them", () => {
  const made = { toJSON: () => nested(100) };

  for (const value of [nested(128), nested(28, made), nested(127, new Date(0))]) {
    assert.equal(typeof toJson("It", value), "string");
  }
  for (const value of [nested(129), nested(29, made), nested(100_000)]) {
    assert.throws(() => toJson("It", value), {
      code: "serialization_error",
      message: /^It is nested more deeply than 128 levels, at /,
    });
  }
});

Deno.test("toJson() gives up its search for a reason, not the error", () => {
  const wide = Array.from({ length: 400_000 }, () => ({}));
  const value = [...wide, 1n];

  assert.throws(() => toJson("It", value), {
    code: "serialization_error",
    message: /^It cannot be written as JSON: /,
  });
});

Deno.test("toJson() searches all of a value that would be written", () => {
  const value = [...Array.from({ length: 150_000 }, () => new Point()), new Map()];

  assert.throws(() => toJson("It", value), { details: { path: "[150000]" } });
});

Deno.test("a class of the user may teach BigInt to write itself", () => {
  const prototype = BigInt.prototype as unknown as { toJSON?: () => string };
  prototype.toJSON = function (this: bigint) {
    return String(this);
  };
  try {
    assert.equal(toJson("It", { n: 1n }), '{"n":"1"}');
  } finally {
    delete prototype.toJSON;
  }
});
