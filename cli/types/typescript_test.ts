import assert from "node:assert/strict";
import type { LiveFunction } from "./tree.ts";
import { writeTypeScript } from "./typescript.ts";

/** The text without its head; tests/types/ checks what compilers say to it. */
function body(...functions: LiveFunction[]): string {
  return writeTypeScript(functions, undefined).split('from "engine-sdk";\n\n')[1]!;
}

Deno.test("a client has an interface with documentation, and a function that makes it", () => {
  const text = body({
    function_id: "math::add",
    description: "Add two numbers",
    request_schema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
    response_schema: { type: "array", items: { type: ["integer", "null"] } },
  });

  assert.equal(
    text,
    `export interface MathAddPayload {
  a: number;
}

/** The functions of the live system. */
export interface Api {
  readonly math: {
    /** Add two numbers */
    add(payload: MathAddPayload, options?: CallOptions): Promise<(number | null)[]>;
  };
}

/** A client of all functions; the worker makes the calls. */
export function createApi(worker: Pick<Worker, "trigger">): Api {
  const call = (function_id: string) => (payload?: unknown, options?: CallOptions) =>
    worker.trigger({ ...options, function_id, payload });
  return {
    math: {
      add: call("math::add"),
    },
  } as unknown as Api;
}
`,
  );
});

Deno.test("texts of workers cannot leave their comments and quotes", () => {
  const text = body({ function_id: 'a"; evil(); "::b', description: "*/ evil();\u2028evil() /*" });

  assert.match(text, /^ {4}\/\*\*\n {5}\* \*\\\/ evil\(\);\n {5}\* evil\(\) \/\*\n {5}\*\/$/m);
  assert.match(text, /^ {4}"a\\"; evil\(\); \\"": \{$/m);
});

Deno.test("without functions a client is empty", () => {
  assert.match(body(), /export interface Api \{\n\}\n/);
});
