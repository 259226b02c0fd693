/**
 * Clients that `engine types` writes, as editors and compilers read them: tsc in strict mode, and
 * pyright; mypy checks the same Python client with the tests of the Python SDK.
 *
 * @module
 */
import assert from "node:assert/strict";
import { writePython } from "../../cli/types/python.ts";
import { writeTypeScript } from "../../cli/types/typescript.ts";
import { FUNCTIONS, PYTHON_CLIENT } from "./live_functions.ts";
import { runPyright } from "./pyright.ts";
import { runTsc } from "./tsc.ts";

const PROGRAM = `import { registerWorker } from "engine-sdk";
import { type ABNamePayloadTree, createApi, type MathAddPayload } from "./api.js";

interface Pair {
  a: number;
  b: number;
}
interface Anything {
  topic: string;
}

const api = createApi(registerWorker());
const pair: Pair = { a: 1, b: 2 };
const payload: MathAddPayload = pair;
const sum: number = (await api.math.add(payload, { timeout_ms: 5 })).c;
const b: number = await api.a.b("x");
await api.a.b(2);
await api.a.b();
const tree: ABNamePayloadTree = { value: 1, children: [{ value: 2 }] };
const child: number | undefined = (await api.a.b.name(tree)).children?.[0]?.value;
const text: string | null = await api.a.b.c.d();
const price: number | undefined = (await api["my-shop"]["price.of"]({ sku: "A1" })).EUR;
await api.shapes.area({ kind: "circle", radius: 1 });
await api.shapes.area({ kind: "square", "side-length": 1, class: null });
const circles = await api.shapes.list({ page: { size: 2 }, more: 1 } as const);
const radius: number | undefined = circles[0]?.radius;
await api.shapes.corner([1, 2]);
const anything: Anything = { topic: "a" };
const nothing: null = await api.publish(anything);
const proto: string = await api.odd["__proto__"]();
const unknown: unknown = await api.math.untyped({ any: "thing" });
await api[""][""]();
console.log(sum, b, child, text, price, radius, nothing, proto, unknown);

// @ts-expect-error A member is missing.
await api.math.add({ a: 1 });
// @ts-expect-error A member is of the wrong type.
await api.math.add({ a: 1, b: "2" });
// @ts-expect-error There is no such member.
await api.math.add({ a: 1, b: 2, c: 3 });
// @ts-expect-error There is no such function.
await api.math.sub({ a: 1, b: 2 });
// @ts-expect-error The result has no such member.
console.log((await api.math.add(pair)).d);
// @ts-expect-error Not one of the values.
await api.a.b("z");
// @ts-expect-error A square has no radius.
await api.shapes.area({ kind: "square", radius: 1 });
// @ts-expect-error The result of a function without a schema is unknown.
console.log((await api.math.untyped()).c);
// @ts-expect-error There is nothing to wait for.
const never: string = await api.odd["1st"]().then((value) => value.length);
`;

Deno.test("a generated client is typed in and out, under tsc in strict mode", async () => {
  const client = writeTypeScript(FUNCTIONS, undefined);

  const { success, text } = await runTsc({ "api.ts": client, "program.ts": PROGRAM });

  assert.ok(success, text);
});

Deno.test("a generated client calls the ids it was made of", async () => {
  const path = await Deno.makeTempFile({ suffix: ".ts" });
  await Deno.writeTextFile(path, writeTypeScript(FUNCTIONS, "eu"));
  const calls: unknown[] = [];
  const trigger = (request: unknown) => Promise.resolve(void calls.push(request));

  try {
    const { createApi } = await import(`file://${path}`);
    const api = createApi({ trigger });
    await api.math.add({ a: 1, b: 2 }, { timeout_ms: 5 });
    await api.a.b("x");
    await api.a.b.name({ value: 1 });
    await api.odd["__proto__"]();
    await api[""][""]();

    assert.deepEqual(calls, [
      { timeout_ms: 5, function_id: "math::add", payload: { a: 1, b: 2 }, namespace: "eu" },
      { function_id: "a::b", payload: "x", namespace: "eu" },
      { function_id: "a::b::name", payload: { value: 1 }, namespace: "eu" },
      { function_id: "odd::__proto__", payload: undefined, namespace: "eu" },
      { function_id: "::", payload: undefined, namespace: "eu" },
    ]);
  } finally {
    await Deno.remove(path);
  }
});

Deno.test("the Python client of the SDK's tests is written from these functions", async () => {
  const written = await Deno.readTextFile(PYTHON_CLIENT);

  const same = written === writePython(FUNCTIONS, undefined);
  assert.ok(same, "write it again: deno run -A tests/types/live_functions.ts");
});

Deno.test("a generated client in Python is typed in and out, under pyright in strict mode", async () => {
  const { success, text } = await runPyright({
    "api.py": writePython(FUNCTIONS, undefined),
    "program.py": `from engine_sdk import Worker

from api import ABNamePayloadTree, Api, MathAddPayload


async def run(worker: Worker) -> None:
    api = Api(worker)
    payload: MathAddPayload = {"a": 1, "b": 2}
    total: float = api.math.add(payload, timeout_ms=5)["c"]
    later: float = (await api.math.add_async({"a": 1, "b": 2}))["c"]
    tree: ABNamePayloadTree = {"value": 1, "children": [{"value": 2}]}
    value: int = api.a.b.name(tree)["value"]
    number: int = api.a.b("x")
    text: str | None = api.a.b.c.d()
    price: dict[str, float] = api.my_shop.price_of({"sku": "A1"})
    area: float = api.shapes.area({"kind": "square", "side-length": 1, "class": None})
    api.shapes.list({"page": {"size": 1}, "more": 2})
    api.shapes.corner([1, 2])
    flag: bool = api.odd.class_()
    print(total, later, value, number, text, price, area, flag, api.odd.str())


def wrong(api: Api) -> None:
    api.math.add({"a": 1})
    api.math.add({"a": 1, "b": "2"})
    api.math.sub({"a": 1, "b": 2})
    api.a.b("z")
    print(api.math.add({"a": 1, "b": 2})["d"])
`,
  });

  assert.equal(success, false);
  const lines = [...text.matchAll(/program\.py:(\d+):\d+ - error/g)].map(([, line]) =>
    Number(line)
  );
  assert.deepEqual([...new Set(lines)], [24, 25, 26, 27, 28], text);
  assert.doesNotMatch(text, /api\.py:\d+:\d+ - error/);
});
