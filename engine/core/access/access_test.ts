import assert from "node:assert/strict";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { Access, DEFAULT_GRANT, nameKey, namesOf, Renames } from "./access.ts";
import { Pattern } from "./patterns.ts";

const NO_HOOKS = { function: undefined, trigger: undefined, triggerType: undefined };

function ask(function_id: string, namespace = "default", ...metadata: Json[]) {
  return { function_id, namespace, metadata };
}

Deno.test("an Access without an rbac block allows everything, also to register", () => {
  const listener = { expose: undefined, middleware: "mw", hooks: NO_HOOKS };
  const access = new Access({ rules: { listener, grant: DEFAULT_GRANT } });

  assert.equal(access.mayCallAll, true);
  assert.equal(access.mayCall(ask("engine::anything", "other")), true);
  assert.equal(access.functionProblem("f", "default"), undefined);
  assert.equal(access.triggerTypeProblem("t", "default"), undefined);
  assert.equal(access.triggerProblem("t"), undefined);
});

Deno.test("both the token and the listener have to allow a call", () => {
  const token = { name: "ci", allow: [Pattern.glob("a::*"), Pattern.glob("b::*")] };
  const expose = [{ id: Pattern.glob("b::*"), namespace: "default" }, {
    id: Pattern.glob("c::*"),
    namespace: "default",
  }];
  const listener = { expose, middleware: undefined, hooks: NO_HOOKS };
  const access = new Access({ rules: { listener, grant: DEFAULT_GRANT }, token });

  const may = ["a::x", "b::x", "c::x"].map((id) => access.mayCall(ask(id)));

  assert.deepEqual(may, [false, true, false]);
  assert.equal(access.mayCall(ask("b::x", "other")), false);
  assert.equal(access.mayCall(ask("engine::log::info")), true);
  assert.equal(access.mayCall(ask("engine::log::info", "other")), false);
});

Deno.test("Renames finds both ways, and forgets a name whose target another one takes", () => {
  const names = new Renames();
  names.add("a", "x::a");
  names.add("same", "same");
  names.add("b", "x::a");

  assert.deepEqual([names.registered("b"), names.own("x::a")], ["x::a", "b"]);
  assert.deepEqual([names.has("a"), names.has("same"), names.size], [false, false, 1]);
  assert.equal(names.remove("b"), "x::a");
  assert.equal(names.remove("never"), "never");
  assert.equal(names.size, 0);
});

Deno.test("a name key keeps namespace and id apart, whatever is in them", () => {
  for (const [namespace, id] of [["a", "b"], ["a\n", "\nb"], ['"', ","], ["", ""]] as const) {
    assert.deepEqual(namesOf(nameKey(namespace, id)), { namespace, id });
  }
  assert.notEqual(nameKey("a", "b,c"), nameKey("a,b", "c"));
});
