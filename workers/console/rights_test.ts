/**
 * @module
 */
import assert from "node:assert/strict";
import { checkCall, holdsPayloads, withoutPayloads } from "./rights.ts";

const CHANGES = ["start", "stop", "restart", "add", "remove", "exec"];

Deno.test("checkCall() keeps a guest from managing workers, and says how to", () => {
  for (const name of [...CHANGES, "something_new", ""]) {
    assert.throws(() => checkCall("guest", `engine::supervisor::${name}`), {
      code: "FORBIDDEN",
      message: /engine console --open$/,
    });
  }
});

Deno.test("checkCall() keeps a guest from changing the console's own connection", () => {
  for (const name of ["workers::register", "register_trigger", "unregister_trigger"]) {
    assert.throws(() => checkCall("guest", `engine::${name}`), { code: "FORBIDDEN" });
    checkCall("operator", `engine::${name}`);
  }
});

Deno.test("checkCall() lets a guest look, and call what any worker may", () => {
  for (const name of ["list", "status", "logs", "info"]) {
    checkCall("guest", `engine::supervisor::${name}`);
  }
  for (const id of ["math::add", "state::set", "engine::workers::list", "supervisor::stop"]) {
    checkCall("guest", id);
  }
});

Deno.test("checkCall() lets the operator do everything", () => {
  for (const name of CHANGES) checkCall("operator", `engine::supervisor::${name}`);
});

Deno.test("withoutPayloads() takes out payloads wherever they are, and nothing else", () => {
  const span = {
    name: "math::add",
    attributes: [["engine.worker", "math"], ["engine.request", "{}"], ["engine.response", "3"]],
    "engine.request": "{}",
    children: [{ attributes: [["engine.request", "deep"]], n: null }],
  };

  assert.deepEqual(withoutPayloads({ spans: [span], total: 1 }), {
    spans: [{
      name: "math::add",
      attributes: [["engine.worker", "math"]],
      children: [{ attributes: [], n: null }],
    }],
    total: 1,
  });
  for (const plain of [undefined, null, 1, "engine.request", true]) {
    assert.equal(withoutPayloads(plain), plain);
  }
});

Deno.test("holdsPayloads() is about traces only", () => {
  assert.deepEqual(
    ["engine::traces::list", "engine::traces::explain", "engine::logs::list", "a::b"]
      .map(holdsPayloads),
    [true, true, false, false],
  );
});
