import assert from "node:assert/strict";
import type { EngineLinkView, Engines, EngineView } from "../../engine/ports/directory.ts";
import type { WorkerStatus } from "../../engine/ports/supervision.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { RecordingWorker } from "../../tests/fakes/recording_worker.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { registerEngines, workersElsewhere } from "./engines.ts";
import { CheckedFunctions } from "./functions.ts";

const ENGINES: Engines = {
  cluster: "shop",
  life: "aaaa",
  isConnected: true,
  keeper: "aaaa",
  takeovers: 0,
  log: null,
  appends: null,
  problem: null,
  ends: () => new Map([["gone", 1]]),
  orderOf: (id) => ({ at: 0, id }),
  list: () => [
    { life: "aaaa", name: "a", version: "1", state: "here", keeper: false, link: null },
  ],
};

const supervision = {
  list: () =>
    Promise.resolve([
      { name: "engine-http", kind: "builtin" },
      { name: "shop", kind: "directory" },
    ] as WorkerStatus[]),
};

function setup(
  engines: Engines | undefined = ENGINES,
  answer: (request: JsonObject) => JsonObject | undefined = () => ({ workers: [] }),
) {
  const offers = new RecordingWorker();
  const called: JsonObject[] = [];
  const worker = Object.assign(offers, {
    trigger: (request: JsonObject) => {
      called.push(request);
      return Promise.resolve(answer(request) ?? Promise.reject(new Error("gone")));
    },
  }) as unknown as Worker & RecordingWorker;
  const registry = new CheckedFunctions(worker);
  const directory = {
    worker: (id: string) => (id === "link" ? { engine: "b" } : {}) as never,
  };
  registerEngines({ worker, registry, directory, engines, supervision });
  const call = (id: string, payload: Json, caller = "someone"): unknown =>
    offers.call(id, payload, { caller });
  return { call, called };
}

Deno.test("engine::cluster::engines lists them, and says when an engine is alone", async () => {
  const { call } = setup();
  assert.deepEqual(await call("engine::cluster::engines", null), {
    cluster: "shop",
    connected: true,
    problem: null,
    keeper: "aaaa",
    takeovers: 0,
    log: null,
    link_ends: { gone: 1 },
    engines: ENGINES.list(),
  });
});

Deno.test("engine::cluster::engines has what each engine has of the log, if asked for it", async () => {
  const log = { kind: "postgres", applied: 7 } as unknown as Engines["log"];
  const here = ENGINES.list()[0]!;
  const link = { rtt_ms: 1 } as EngineLinkView;
  const linked = (life: string): EngineView => ({ ...here, life, state: "linked", link });
  const engines = { ...ENGINES, log, list: () => [here, linked("b"), linked("gone")] };
  const answers = { "engine@b": { log: { kind: "postgres", applied: 5 }, builtins: ["x"] } };
  const { call } = setup(engines, ({ namespace }) => answers[namespace as "engine@b"]);

  const shown = await call("engine::cluster::engines", { logs: true }) as { engines: JsonObject[] };

  assert.deepEqual(shown.engines.map(({ log }) => log), [log, answers["engine@b"].log, null]);
  assert.deepEqual(shown.engines.map(({ builtins }) => builtins), [["engine-http"], ["x"], null]);
  const own = await call("engine::cluster::engines", { logs: true, local: true }) as typeof shown;
  assert.ok(own.engines.every((one) => !("log" in one)));
});

Deno.test("an engine that is alone answers no others", async () => {
  const offers = new RecordingWorker();
  const registry = new CheckedFunctions(offers);
  const directory = { worker: () => undefined };
  const worker = offers as unknown as Worker;
  registerEngines({ worker, registry, directory, engines: undefined, supervision });

  assert.deepEqual(await offers.call("engine::cluster::engines", null, {}), {
    cluster: null,
    connected: false,
    problem: null,
    keeper: null,
    takeovers: 0,
    log: null,
    engines: [],
  });
  await assert.rejects(async () => await offers.call("cluster::ask", {}, {}));
});

Deno.test("other engines have a few functions called, for what this one alone knows", async () => {
  const { call, called } = setup();
  const function_id = "engine::workers::list";

  await call("cluster::ask", { function_id, payload: { search: "x", local: false } }, "link");

  assert.deepEqual(called, [
    { function_id, payload: { search: "x", local: true }, timeoutMs: 1_000 },
  ]);
});

Deno.test("workers may not ask, and engines not for anything else", async () => {
  const { call, called } = setup();
  const ask = async (function_id: string, caller: string): Promise<unknown> =>
    await call("cluster::ask", { function_id, payload: {} }, caller);

  await assert.rejects(ask("engine::workers::list", "someone"), { code: "FORBIDDEN" });
  for (const id of ["engine::supervisor::stop", "shop::buy", "engine::traces::clear"]) {
    await assert.rejects(ask(id, "link"), { code: "deserialization_error" });
  }
  assert.deepEqual(called, []);
});

Deno.test("workers elsewhere have the name of their engine", async () => {
  const link = {
    age_ms: 1,
    rtt_ms: 1,
    calls_out: 0,
    calls_in: 0,
    bytes_out: 0,
    bytes_in: 0,
    queued_bytes: 0,
  };
  const engines: Engines = {
    ...ENGINES,
    list: () => [{ life: "b", name: "b", version: "1", state: "linked", keeper: false, link }],
  };
  const worker = { trigger: () => Promise.resolve({ workers: [{ name: "shop" }] }) };

  const found = await workersElsewhere(worker as unknown as Worker, engines, {});

  assert.deepEqual(found, [{ name: "shop", engine: "b" }]);
});
