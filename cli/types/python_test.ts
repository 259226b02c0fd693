import assert from "node:assert/strict";
import { writePython } from "./python.ts";
import type { LiveFunction } from "./tree.ts";

/** The text without its head; tests/types/ and the Python SDK check what checkers say to it. */
function body(...functions: LiveFunction[]): string {
  return writePython(functions, undefined).split(
    "    from engine_sdk import CallOptions, Worker\n",
  )[1]!;
}

Deno.test("a client has types, and a class for each group with both forms of a call", () => {
  const text = body({
    function_id: "math::add",
    description: "Add two numbers",
    request_schema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
    response_schema: { type: "integer" },
  });

  assert.equal(
    text,
    `

class MathAddPayload(TypedDict):
    a: float


def _request(function_id: str, payload: Any, options: Any) -> Any:
    return {"function_id": function_id, "payload": payload, **options}


class _Math:
    """Functions below \`\`math\`\`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def add(
        self, payload: MathAddPayload, **options: Unpack[CallOptions]
    ) -> int:
        """Add two numbers"""
        return cast("int", self._worker.trigger(_request("math::add", payload, options)))

    async def add_async(
        self, payload: MathAddPayload, **options: Unpack[CallOptions]
    ) -> int:
        """Add two numbers"""
        return cast("int", await self._worker.trigger_async(_request("math::add", payload, options)))


class Api:
    """The functions of the live system."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.math = _Math(worker)
`,
  );
});

Deno.test("ids become names of Python, each its own", () => {
  const ids = [
    "x::a-b",
    "x::a_b",
    "x::class",
    "x::1",
    "x::__init__",
    "x::_worker",
    "x::Any",
    "x::a",
  ];
  const text = body(...["x::a_async", ...ids].map((function_id) => ({ function_id })));

  const names = [...text.matchAll(/^ {4}def (\w+)\(\n/gm)].map((match) => match[1]);
  assert.deepEqual(names, [
    "f_1",
    "Any_",
    "init__",
    "worker",
    "a",
    "a_b",
    "a_async2",
    "a_b2",
    "class_",
  ]);
});

Deno.test("a method with the name of a built-in type does not hide it", () => {
  const text = body(
    { function_id: "x::list", response_schema: { type: "array", items: { type: "string" } } },
  );

  assert.match(text, /-> builtins\.list\[builtins\.str\]:/);
});

Deno.test("members that no class can have make a TypedDict by call", () => {
  const properties = { "a-b": { type: "string" }, from: { const: "x" } };
  const text = body({ function_id: "x::y", request_schema: { type: "object", properties } });

  assert.match(text, /^XYPayload = TypedDict\("XYPayload", \{\n {4}"a-b": "NotRequired\[str\]",$/m);
  assert.match(text, /^ {4}"from": "NotRequired\[Literal\[\\"x\\"\]\]",$/m);
});

Deno.test("texts of workers cannot leave their docstrings", () => {
  const text = body({ function_id: "x::y", description: 'a """\nevil()\\' });

  assert.match(text, /^ {8}a \\"\\"\\"\n {8}evil\(\)\\\\\n {8}"""$/m);
});
