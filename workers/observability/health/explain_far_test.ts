import assert from "node:assert/strict";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { explainElsewhere, explainThere } from "./explain_far.ts";

const OWN = {
  lines: ["a called f", "engine b ran it", "It succeeded"],
  engine: "b",
  span: { span_id: "s1" },
  trace_id: "t1",
};

function answering(result: Json) {
  const asked: Json[] = [];
  const ask = (_function_id: string, payload: Json) => {
    asked.push(payload);
    return Promise.resolve([
      { engine: "c", life: "c1", result: null },
      { engine: "b", life: "b1", result },
    ]);
  };
  return { ask, asked };
}

Deno.test("a call that went to another engine is explained by both", async () => {
  const { ask, asked } = answering({ lines: ["a called f", "w ran it", "It succeeded"] });

  const { lines } = await explainThere(OWN, ask);

  assert.deepEqual(lines, [
    ...OWN.lines,
    "At engine b: w ran it",
    "At engine b: It succeeded",
  ]);
  assert.deepEqual(asked, [{ invocation_id: "s1", trace_id: "t1" }]);
});

Deno.test("an engine that says nothing of a call is named", async () => {
  const { ask } = answering({});

  const { lines } = await explainThere(OWN, ask);

  assert.match(String((lines as string[]).at(-1)), /^Engine b recorded nothing about it/);
});

Deno.test("a call that stayed here asks no other engine", async () => {
  const { ask, asked } = answering({});
  const own = { lines: ["w ran it"] };

  assert.equal(await explainThere(own, ask), own);
  assert.deepEqual(asked, []);
});

Deno.test("an id that only another engine knows is explained by that one", async () => {
  const found = answering({ lines: ["x called f"], trace_id: "t" });

  const answer = await explainElsewhere("i-1", found.ask);

  assert.deepEqual(answer?.lines, ["Engine b recorded it", "x called f"]);
  assert.equal(await explainElsewhere("i-1", answering(null).ask), undefined);
});
