import assert from "node:assert/strict";
import { uncommentBlock } from "./calls_walkthrough.ts";

Deno.test("uncommentBlock() uncomments one block and keeps the indentation", () => {
  const text = `a
    # state: begin (uncomment down to "state: end")
    # total = 1
    # if total:
    #     total += 1
    # state: end
    # stays`;

  assert.equal(
    uncommentBlock(text, "state"),
    `a
    # state: begin (uncomment down to "state: end")
    total = 1
    if total:
        total += 1
    # state: end
    # stays`,
  );
});

Deno.test("uncommentBlock() supports comments of TypeScript", () => {
  assert.equal(
    uncommentBlock("// http: begin\n// f({\n//   a: 1,\n// });\n// http: end\n", "http"),
    "// http: begin\nf({\n  a: 1,\n});\n// http: end\n",
  );
});

Deno.test("uncommentBlock() refuses a missing or uncommented block", () => {
  assert.throws(() => uncommentBlock("# state: begin\n", "state"), /no block between state: begin/);
  assert.throws(() => uncommentBlock("nothing", "state"), /no block/);
  assert.throws(() => uncommentBlock("# s: begin\nx = 1\n# s: end", "s"), /uncommented already/);
});
