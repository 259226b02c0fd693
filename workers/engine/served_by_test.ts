import assert from "node:assert/strict";
import type { Directory, FunctionView, WorkerView } from "../../engine/ports/directory.ts";
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { invocationShown, isOperator, servedBy } from "./served_by.ts";

function view(invocation?: JsonObject): FunctionView {
  return {
    function_id: "f",
    namespace: "default",
    worker_id: "w",
    worker_name: "w",
    internal: false,
    builtin: false,
    worker_ids: ["w"],
    ...invocation && { invocation },
  };
}

/** A directory that knows some workers; `isLimited`: as access rules let it be seen. */
function directory(
  isLimited = false,
  workers: Record<string, Partial<WorkerView>> = {},
): Directory {
  return {
    visibleTo: () => isLimited ? () => true : undefined,
    worker: (id: string) => workers[id] as WorkerView | undefined,
  } as Partial<Directory> as Directory;
}

const SECRET = {
  url: "https://hooks.example.com:8443/services/T0/secret?key=secret#secret",
  method: "PUT",
  timeout_ms: 800,
  headers: { "X-Key": "secret", accept: "secret" },
  auth: { type: "bearer", token_key: "QUOTES_TOKEN" },
};

Deno.test("a list shows the origin of a function's URL, and of other functions nothing", () => {
  assert.deepEqual(servedBy(view(SECRET), directory()), {
    served_by: "https://hooks.example.com:8443",
  });
  assert.deepEqual(servedBy(view(), directory()), {});
});

Deno.test("what access rules limit sees no URL", () => {
  assert.deepEqual(servedBy(view(SECRET), directory(true)), {});
});

Deno.test("an operator sees how a function is requested, without values that may be secrets", () => {
  const { invocation } = invocationShown(view(SECRET)) as { invocation: JsonObject };

  assert.deepEqual(invocation, {
    url: "https://hooks.example.com:8443/services/T0/secret?…",
    method: "PUT",
    timeout_ms: 800,
    headers: { "X-Key": "…", accept: "…" },
    auth: { type: "bearer", token_key: "QUOTES_TOKEN" },
  });
  assert.deepEqual(invocationShown(view({ url: "https://api.example.com/a" })), {
    invocation: { url: "https://api.example.com/a", method: "POST" },
  });
  assert.deepEqual(invocationShown(view()), {});
});

Deno.test("only a command line of the engine's own user is an operator here", () => {
  const all = directory(false, {
    "command line": { operator: true, builtin: false },
    console: { operator: true, builtin: true },
    worker: { operator: false, builtin: false },
  });

  const operators = ["command line", "console", "worker", "gone", undefined]
    .filter((caller) => isOperator(all, caller));

  assert.deepEqual(operators, ["command line"]);
});
