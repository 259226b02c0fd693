import assert from "node:assert/strict";
import { CallScopes, looksSampled, readTraceparent, runningTraceparent } from "./trace_context.ts";

const SCOPE = { deadline: 5, traceparent: undefined, baggage: undefined };

Deno.test("CallScopes.current() is the running scope, also after an await", async () => {
  const scopes = new CallScopes();

  const seen = await scopes.run(SCOPE, async () => {
    await Promise.resolve();
    return scopes.current();
  });

  assert.equal(seen, SCOPE);
  assert.equal(scopes.current(), undefined);
});

Deno.test("CallScopes separates concurrent handlers", async () => {
  const scopes = new CallScopes();
  const run = (deadline: number) =>
    scopes.run({ ...SCOPE, deadline }, async () => {
      await Promise.resolve();
      return scopes.current()?.deadline;
    });

  assert.deepEqual(await Promise.all([run(1), run(2)]), [1, 2]);
});

Deno.test("CallScopes of two workers are independent", () => {
  const [one, two] = [new CallScopes(), new CallScopes()];

  assert.equal(one.run(SCOPE, () => two.current()), undefined);
});

Deno.test("CallScopes runs tasks on a platform without AsyncLocalStorage", () => {
  const globals = globalThis as { process?: unknown };
  const { process } = globals;
  const scopes = new CallScopes();
  globals.process = undefined;
  const result = scopes.run(SCOPE, () => 7);
  globals.process = process;

  assert.equal(result, 7);
  assert.equal(scopes.run(SCOPE, () => scopes.current()), undefined);
});

Deno.test("runningTraceparent() is that of the running handler, of workers with attached scopes", () => {
  const [one, two] = [new CallScopes(), new CallScopes()];
  const seen: (string | undefined)[] = [];
  const look = (): void => void seen.push(runningTraceparent());

  one.run({ ...SCOPE, traceparent: "1" }, look);
  one.attach();
  two.attach();
  look();
  one.run({ ...SCOPE, traceparent: "1" }, look);
  two.run({ ...SCOPE, traceparent: "2" }, look);
  two.run(SCOPE, look);
  two.detach();
  two.run({ ...SCOPE, traceparent: "2" }, look);
  one.detach();

  assert.deepEqual(seen, [undefined, undefined, "1", "2", undefined, undefined]);
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const SPAN = "b7ad6b7169203331";

for (
  const [flags, isSampled] of [["00", false], ["01", true], ["02", false], ["03", true], [
    "ff",
    true,
  ], ["fe", false]] as const
) {
  Deno.test(`readTraceparent() reads the ids and flags ${flags}`, () => {
    const read = readTraceparent(`00-${TRACE}-${SPAN}-${flags}`);

    assert.deepEqual(read, { trace_id: TRACE, span_id: SPAN, isSampled });
    assert.equal(looksSampled(`00-${TRACE}-${SPAN}-${flags}`), isSampled);
  });
}

Deno.test("readTraceparent() accepts a later version with more fields", () => {
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
  Deno.test(`readTraceparent() returns undefined for ${name}`, () => {
    assert.equal(readTraceparent(text), undefined);
  });
}

Deno.test("looksSampled() is false for a text that is too short", () => {
  assert.deepEqual(["", "1", `00-${TRACE}-${SPAN}-0`].map(looksSampled), [false, false, false]);
});
