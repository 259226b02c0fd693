import assert from "node:assert/strict";
import type { EngineView } from "../../engine/ports/directory.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { askEngines } from "./engines.ts";

const link = {
  age_ms: 1,
  rtt_ms: 1,
  calls_out: 0,
  calls_in: 0,
  bytes_out: 0,
  bytes_in: 0,
  queued_bytes: 0,
};
const view = (life: string, isHere = false): EngineView => ({
  life,
  name: `engine-${life}`,
  version: "1.0.0",
  state: isHere ? "here" : "linked",
  keeper: false,
  link: isHere ? null : link,
});

Deno.test("all other engines are asked, and those that fail are left out", async () => {
  const asked: unknown[] = [];
  const worker = {
    trigger(request: { namespace?: string }) {
      asked.push(request);
      if (request.namespace === "engine@c") return Promise.reject(new Error("gone"));
      return Promise.resolve({ of: request.namespace });
    },
  } as unknown as Worker;
  const engines = { list: () => [view("a", true), view("b"), view("c")] };

  const answers = await askEngines(worker, engines, "f", { n: 1 });

  assert.deepEqual(answers, [{ engine: "engine-b", life: "b", result: { of: "engine@b" } }]);
  assert.equal(asked.length, 2);
  assert.deepEqual(asked[0], {
    function_id: "cluster::ask",
    namespace: "engine@b",
    payload: { function_id: "f", payload: { n: 1 } },
    timeoutMs: 1_000,
  });
  assert.deepEqual(await askEngines(worker, undefined, "f", null), []);
});
