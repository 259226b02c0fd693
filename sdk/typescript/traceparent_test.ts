import assert from "node:assert/strict";
import { looksSampled, readTraceparent } from "./traceparent.ts";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

for (
  const [flags, isSampled] of [["00", false], ["01", true], ["02", false], ["03", true], [
    "ff",
    true,
  ], ["fe", false]] as const
) {
  Deno.test(`readTraceparent() reads ids and the decision in flags ${flags}`, () => {
    const read = readTraceparent(`00-${TRACE}-${SPAN}-${flags}`);

    assert.deepEqual(read, { trace_id: TRACE, span_id: SPAN, isSampled });
    assert.equal(looksSampled(`00-${TRACE}-${SPAN}-${flags}`), isSampled);
  });
}

Deno.test("readTraceparent() takes a later version with more behind", () => {
  assert.equal(readTraceparent(`01-${TRACE}-${SPAN}-01-more`)?.span_id, SPAN);
});

const NONE = {
  "nothing": undefined,
  "an empty text": "",
  "a word": "nonsense",
  "capitals": `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  "a trace of zeros": `00-${"0".repeat(32)}-${SPAN}-01`,
  "a span of zeros": `00-${TRACE}-${"0".repeat(16)}-01`,
  "the version that is none": `ff-${TRACE}-${SPAN}-01`,
  "a short trace": `00-${TRACE.slice(1)}-${SPAN}-01`,
  "no flags": `00-${TRACE}-${SPAN}`,
  "more behind in the first version": `00-${TRACE}-${SPAN}-01-more`,
  "flags that go on": `01-${TRACE}-${SPAN}-011`,
  "something before": ` 00-${TRACE}-${SPAN}-01`,
};
for (const [name, text] of Object.entries(NONE)) {
  Deno.test(`readTraceparent() takes ${name} for absent`, () => {
    assert.equal(readTraceparent(text), undefined);
  });
}

Deno.test("looksSampled() takes a text that is too short for one that is not", () => {
  assert.deepEqual(["", "1", `00-${TRACE}-${SPAN}-0`].map(looksSampled), [false, false, false]);
});
