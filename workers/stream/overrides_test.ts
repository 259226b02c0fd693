import assert from "node:assert/strict";
import type { FunctionView } from "../../engine/ports/directory.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { happeningIn, Overrides } from "./overrides.ts";

function overridesOf(functions: Record<string, (payload: Json) => Json | undefined>) {
  return new Overrides({
    worker: {
      trigger: ((request: CallRequest) =>
        Promise.resolve().then(() =>
          functions[request.function_id]!(request.payload as Json)
        )) as Worker["trigger"],
    },
    directory: {
      function: (namespace, id) =>
        namespace === "default" && id in functions ? {} as FunctionView : undefined,
    },
  });
}

Deno.test("only the stream and the operation of its name are overridden", async () => {
  const overrides = overridesOf({ "stream::get(chat)": (payload) => payload });

  assert.deepEqual(await overrides.call("get", "chat", { a: 1 }), { answer: { a: 1 } });
  assert.equal(await overrides.call("get", "other", {}), undefined);
  assert.equal(await overrides.call("set", "chat", {}), undefined);
});

Deno.test("an error of an override has the code of the operation, except that it is overloaded", async () => {
  const overrides = overridesOf({
    "stream::get(a)": () => {
      throw new EngineError("no_disk", "gone");
    },
    "stream::get(b)": () => {
      throw new EngineError("overloaded", "later");
    },
  });

  await assert.rejects(overrides.call("get", "a", {}), {
    code: "STREAM_GET_ERROR",
    details: { function_id: "stream::get(a)", code: "no_disk" },
  });
  await assert.rejects(overrides.call("get", "b", {}), { code: "overloaded" });
});

Deno.test("the answer of an override says what changed", () => {
  assert.deepEqual(happeningIn("set", "s", { new_value: 1 }), { type: "create", data: 1 });
  assert.deepEqual(happeningIn("set", "s", { old_value: null, new_value: 1 }), {
    type: "create",
    data: 1,
  });
  assert.deepEqual(happeningIn("update", "s", { old_value: 0, new_value: null }), {
    type: "update",
    data: null,
  });
  assert.deepEqual(happeningIn("delete", "s", { old_value: 5 }), { type: "delete", data: 5 });
  assert.equal(happeningIn("delete", "s", undefined), undefined);
  assert.throws(() => happeningIn("set", "s", [1]), { code: "STREAM_SET_ERROR" });
});
