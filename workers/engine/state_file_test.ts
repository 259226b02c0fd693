import assert from "node:assert/strict";
import type { EngineHost } from "../kit/define.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { StateCheck } from "../../engine/ports/store.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { CheckedFunctions } from "./functions.ts";
import { registerStateFile } from "./state_file.ts";

type Run = (payload: Json, context: CallContext) => Promise<Json>;

Deno.test("engine::state::check and backup are for operators, one at a time, to absolute paths", async () => {
  const functions = new Map<string, Run>();
  const registry = {
    add: (id: string, _description: string, _of: unknown, run: Run) => functions.set(id, run),
  } as unknown as CheckedFunctions;
  const ended = Promise.withResolvers<StateCheck>();
  const host = {
    directory: { worker: (id: string) => ({ operator: id === "operator" }) },
    store: { file: { check: () => ended.promise, backup: () => ended.promise } },
    supervision: { info: () => ({ control_key: { path: "key", problem: null } }) },
  } as unknown as EngineHost;
  registerStateFile(registry, host);
  const call = async (name: string, caller: string, payload: Json = {}) =>
    await functions.get(`engine::state::${name}`)!(payload, { caller } as CallContext);

  await assert.rejects(call("check", "other"), { code: "FORBIDDEN" });
  await assert.rejects(call("backup", "other", { path: "/a" }), { code: "FORBIDDEN" });
  await assert.rejects(call("backup", "operator", { path: "a" }), { code: "INVALID_ARGUMENTS" });
  const running = call("backup", "operator", { path: "/a" });
  await assert.rejects(call("check", "operator"), { code: "overloaded" });
  ended.resolve({ records: 1, bytes: 2, damaged_count: 0, damaged: [], problems: [] });
  assert.equal((await running as { records: number }).records, 1);
  await call("check", "operator");
});
