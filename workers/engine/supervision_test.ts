/**
 * `engine::supervisor::*`: what reaches the supervisor, and what does not get that far.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { AddRequest, Supervision, WorkerStatus } from "../../engine/ports/supervision.ts";
import { EngineError } from "../../sdk/typescript/errors.ts";
import type { Json } from "../../sdk/typescript/protocol.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { engine } from "./mod.ts";

const STATUS: WorkerStatus = {
  name: "math",
  kind: "directory",
  state: "ready",
  reason: null,
  path: "/project/workers/math",
  isolation: "process",
  pid: 7,
  functions: ["math::add"],
  restarts: 0,
  started_at_ms: 1,
  ready_after_ms: 2,
  last_exit: null,
  dependencies: "cached",
  launch: 1,
  tail: [],
  log_path: "/project/.engine/logs/math.log",
};

const INFO = {
  version: "0.1.0",
  pid: 1,
  config_path: null,
  data_directory: "/project/.engine",
  endpoints: [{ name: "http", url: "http://127.0.0.1:3111" }],
  started_at_ms: 5,
};

/** A supervisor that notes what it is asked, and knows one worker. */
function recordingSupervision(asked: unknown[]): Supervision {
  const known = (name: string): WorkerStatus => {
    if (name === "math") return STATUS;
    throw new EngineError("NOT_FOUND", `There is no worker ${name}; known: math`);
  };
  return {
    list: () => [STATUS],
    status: known,
    start: (name) => (asked.push(["start", name]), known(name)),
    stop: (name) => (asked.push(["stop", name]), known(name)),
    restart: (name, options) => (asked.push(["restart", name, options]), known(name)),
    add: (request: AddRequest) => {
      asked.push(["add", request]);
      return Promise.resolve({
        added: true,
        changed: false,
        config_path: "/project/config.yaml",
        worker: STATUS,
      });
    },
    remove: (name) => {
      asked.push(["remove", name]);
      return Promise.resolve({ config_path: `/project/${known(name) && "config.yaml"}` });
    },
    logs: (name, tail) => Promise.resolve([`${known(name).name} ${tail}`]),
    info: () => INFO,
  };
}

/** Somebody who asks, over a real router. */
async function setup() {
  const asked: unknown[] = [];
  const local = new LocalEngine({ supervision: recordingSupervision(asked) });
  await local.start(engine);
  const worker = await local.connect("cli");
  const ask = (name: string, payload?: Json) =>
    worker.trigger({ function_id: `engine::supervisor::${name}`, payload });
  return { asked, ask, [Symbol.asyncDispose]: () => local[Symbol.asyncDispose]() };
}

for (
  const [name, payload, result, heard] of [
    ["list", undefined, { workers: [STATUS] }, []],
    ["status", { name: "math" }, STATUS, []],
    ["start", { name: "math" }, STATUS, [["start", "math"]]],
    ["stop", { name: "math" }, STATUS, [["stop", "math"]]],
    ["restart", { name: "math" }, STATUS, [["restart", "math", { reinstall: false }]]],
    [
      "restart",
      { name: "math", reinstall: true },
      STATUS,
      [["restart", "math", { reinstall: true }]],
    ],
    [
      "add",
      { path: "/project/workers/math", isolation: "process", reinstall: true, name: null },
      { added: true, changed: false, config_path: "/project/config.yaml", worker: STATUS },
      [["add", { path: "/project/workers/math", isolation: "process", reinstall: true }]],
    ],
    [
      "add",
      { name: "engine-http", config: { port: 0, cors: { origins: ["*"] } } },
      { added: true, changed: false, config_path: "/project/config.yaml", worker: STATUS },
      [["add", { name: "engine-http", config: { port: 0, cors: { origins: ["*"] } } }]],
    ],
    ["remove", { name: "math" }, { config_path: "/project/config.yaml" }, [["remove", "math"]]],
    ["logs", { name: "math" }, { lines: ["math 100"] }, []],
    ["logs", { name: "math", tail: 0 }, { lines: ["math 0"] }, []],
    ["info", undefined, INFO, []],
  ] as [string, Json | undefined, unknown, unknown[]][]
) {
  Deno.test(`engine::supervisor::${name} hands on ${JSON.stringify(payload)}`, async () => {
    await using it = await setup();

    assert.deepEqual(await it.ask(name, payload), result);
    assert.deepEqual(it.asked, heard);
  });
}

for (
  const [name, payload, code] of [
    ["status", { name: "moth" }, "NOT_FOUND"],
    ["start", { name: "moth" }, "NOT_FOUND"],
    ["remove", { name: "moth" }, "NOT_FOUND"],
    ["logs", { name: "moth" }, "NOT_FOUND"],
    ["status", {}, "deserialization_error"],
    ["status", { name: "" }, "deserialization_error"],
    ["restart", { name: "math", reinstall: "yes" }, "deserialization_error"],
    ["logs", { name: "math", tail: -1 }, "deserialization_error"],
    ["logs", { name: "math", tail: 1.5 }, "deserialization_error"],
    ["logs", { name: "math", tail: 10_001 }, "deserialization_error"],
    ["add", {}, "INVALID_ARGUMENTS"],
    ["add", { name: null, path: null }, "INVALID_ARGUMENTS"],
    ["add", { name: "engine-http", path: "/x" }, "INVALID_ARGUMENTS"],
    ["add", { path: "/x", isolation: "jail" }, "deserialization_error"],
    ["add", { name: "engine-http", config: [] }, "deserialization_error"],
    ["list", "text", "deserialization_error"],
  ] as [string, Json, string][]
) {
  Deno.test(`engine::supervisor::${name} answers ${JSON.stringify(payload)} with ${code}`, async () => {
    await using it = await setup();

    await assert.rejects(it.ask(name, payload), { code });
  });
}

Deno.test("engine::supervisor::add says in its schema that it needs a name or a path", async () => {
  await using local = new LocalEngine({ supervision: recordingSupervision([]) });
  await local.start(engine);
  const worker = await local.connect("cli");
  const payload = { function_id: "engine::supervisor::add" };

  const info = await worker.trigger({ function_id: "engine::functions::info", payload });

  const { request_schema } = info as { request_schema: { anyOf: Json } };
  assert.deepEqual(request_schema.anyOf, [{ required: ["name"] }, { required: ["path"] }]);
});
