import assert from "node:assert/strict";
import type { WorkerState } from "./ports/supervision.ts";
import { builtinWorkers } from "../workers/mod.ts";
import { EngineAbsences } from "./absences.ts";
import { startEngine } from "./engine.ts";
import { registerWorker } from "../sdk/typescript/register_worker.ts";

const KNOWN = [
  { name: "engine-state", parse: () => ({}), offers: { functions: ["state::*", "keep"] } },
  { name: "engine-cron", parse: () => ({}), offers: { triggerTypes: ["cron"] } },
  { name: "engine", parse: () => ({}) },
];

function absences(state?: WorkerState, reason: string | null = null): EngineAbsences {
  return new EngineAbsences({
    known: KNOWN,
    builtin: () => state && { state, reason },
    isOffered: () => false,
    isKeeperExpected: () => false,
    directoryWorker: (id) =>
      id === "py::add" ? { reason: "worker py is down", worker: "py" } : undefined,
  });
}

Deno.test("a function of a built-in worker that was never added names the command that adds it", () => {
  const it = absences();

  for (const id of ["state::get", "keep"]) {
    assert.deepEqual(it.ofFunction(id, "default"), {
      reason: "engine-state provides it, which is not in config.yaml",
      worker: "engine-state",
      command: "engine worker add engine-state",
    });
  }
  for (const [id, namespace] of [["keeper", "default"], ["states", "default"], ["keep", "eu"]]) {
    assert.equal(it.ofFunction(id!, namespace!), undefined);
  }
});

Deno.test("a function of what no engine of a cluster keeps now names the command that says why", () => {
  const of = (state: WorkerState, isOffered = false, keeper?: string) =>
    new EngineAbsences({
      keeperName: () => keeper,
      known: [{ ...KNOWN[0]!, kept: "state::get" }],
      builtin: () => ({ state, reason: null }),
      isOffered: () => isOffered,
      isKeeperExpected: () => false,
      isKeptTogether: () => true,
      directoryWorker: () => undefined,
    }).ofFunction("state::set", "default");

  for (const state of ["queued", "ready"] as const) {
    assert.deepEqual(of(state), {
      reason: "no engine of the cluster keeps the state of engine-state now",
      worker: "engine-state",
      command: "engine cluster status",
    });
  }
  assert.match(
    of("queued", false, "b")!.reason,
    /^engine b keeps the state and does not run engine-/,
  );
  assert.equal(of("stopped")?.command, "engine worker start engine-state");
  assert.equal(of("ready", true), undefined);
});

Deno.test("a trigger type of a built-in worker names it, and all such types are known", () => {
  const it = absences();

  assert.equal(it.ofTriggerType("cron", "default")?.command, "engine worker add engine-cron");
  assert.equal(it.ofTriggerType("cron", "eu"), undefined);
  assert.equal(it.ofTriggerType("corn", "default"), undefined);
  assert.deepEqual(it.triggerTypes, ["cron"]);
});

Deno.test("a built-in worker that does not run says so, and one that is ready says nothing", () => {
  const of = (state: WorkerState, reason: string | null = null) =>
    absences(state, reason).ofFunction("state::get", "default");
  const command = "engine worker start engine-state";

  assert.equal(of("ready"), undefined);
  assert.deepEqual(of("stopped"), {
    reason: "worker engine-state is stopped",
    worker: "engine-state",
    command,
  });
  assert.deepEqual(of("failed", "Port 1 is taken"), {
    reason: "worker engine-state has failed: Port 1 is taken",
    worker: "engine-state",
    command,
  });
  assert.deepEqual(of("starting"), {
    reason: "worker engine-state is starting",
    worker: "engine-state",
  });
});

Deno.test("what a worker with a directory offered before comes first", () => {
  assert.equal(absences().ofFunction("py::add", "default")?.worker, "py");
});

Deno.test("every built-in worker offers what it says, and says what it offers", async () => {
  const directory = await Deno.makeTempDir({ prefix: "offers-" });
  const optional = builtinWorkers.filter(({ runsAlways }) => !runsAlways);
  const entries = optional.map(({ name, parse }) => {
    try {
      parse({ port: 0 });
      return `  - { name: ${name}, config: { port: 0 } }`;
    } catch {
      return `  - { name: ${name} }`; // It has no port.
    }
  });
  await Deno.writeTextFile(`${directory}/config.yaml`, ["workers:", ...entries].join("\n"));
  try {
    await using engine = await startEngine({ directory, port: 0, logLevel: "error" });
    const url = engine.endpoints.find(({ name }) => name === "workers")!.url;
    await using worker = registerWorker(url, { workerName: "asks", telemetry: false });
    const ask = (function_id: string) =>
      worker.trigger<
        unknown,
        Record<string, { id: string; function_id: string; worker_name: string }[]>
      >(
        { function_id, payload: { include_internal: true } },
      );
    const { functions } = await ask("engine::functions::list");
    const { triggers } = await ask("engine::triggers::list");

    for (const { name, offers } of optional) {
      const ids = functions!.filter((view) => view.worker_name === name)
        .map(({ function_id }) => function_id)
        .filter((id) => !id.startsWith(`${name}::`)); // For itself.
      const patterns = offers?.functions ?? [];
      const fits = (id: string, pattern: string) =>
        pattern.endsWith("*") ? id.startsWith(pattern.slice(0, -1)) : id === pattern;
      const unsaid = ids.filter((id) => !patterns.some((pattern) => fits(id, pattern)));
      const empty = patterns.filter((pattern) => !ids.some((id) => fits(id, pattern)));
      const types = triggers!.filter((view) => view.worker_name === name).map(({ id }) => id);
      assert.deepEqual({ name, unsaid, empty }, { name, unsaid: [], empty: [] });
      assert.deepEqual({ name, types }, { name, types: [...offers?.triggerTypes ?? []].sort() });
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
