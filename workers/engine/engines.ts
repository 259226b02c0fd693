/**
 * The engines of the cluster: a list of them, and answers to what other engines ask.
 *
 * Only connections of other engines may ask, and only for what every worker may read: the rights of
 * the command line never travel from one engine to another.
 *
 * @module
 */
import type {
  ClusterView,
  Directory,
  EngineRow,
  Engines,
  EngineView,
} from "../../engine/ports/directory.ts";
import type { Supervision } from "../../engine/ports/supervision.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { ASK_FUNCTION, ASK_TIMEOUT_MS, askEngines, registerForEngines } from "../kit/engines.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import type { CheckedFunctions } from "./functions.ts";

/** Functions that other engines may have called, each for what this engine alone knows. */
const ASKED = [
  "engine::workers::list",
  "engine::logs::list",
  "engine::traces::list",
  "engine::traces::tree",
  "engine::traces::explain",
  "engine::cluster::engines",
] as const;
/** Workers of one other engine in a list. */
const WORKERS_MAX = 1_000;

const Query = v.object({
  logs: v.described(
    "Also the log of the state as each engine sees it, and its built-in workers. Default: false",
    v.nullish(v.boolean()),
  ),
  local: v.described(
    "What this engine knows, without asking the others. Default: false",
    v.nullish(v.boolean()),
  ),
});
const Ask = v.object({ function_id: v.picklist(ASKED), payload: v.looseObject({}) });

/** The answer of an engine that is alone. */
const ALONE: ClusterView = {
  cluster: null,
  connected: false,
  problem: null,
  keeper: null,
  takeovers: 0,
  log: null,
  engines: [],
};

/** What the functions use. */
export interface EnginesSetup {
  readonly worker: Pick<Worker, "registerFunction" | "trigger">;
  readonly registry: CheckedFunctions;
  readonly directory: Pick<Directory, "worker">;
  readonly engines: Engines | undefined;
  readonly supervision: Pick<Supervision, "list">;
}

/** Registers `engine::cluster::engines`, and in a cluster the function that answers others. */
export function registerEngines(setup: EnginesSetup): void {
  const { worker, registry, directory, engines, supervision } = setup;
  const list = "The engines of the cluster and the links to them";
  registry.add("engine::cluster::engines", list, Query, async ({ logs, local }) => {
    if (!engines) return ALONE as unknown as JsonObject;
    const { cluster, isConnected: connected, problem, keeper, takeovers, log } = engines;
    const link_ends = Object.fromEntries(engines.ends());
    const listed = engines.list();
    const about = { cluster, connected, problem, keeper, takeovers, log, link_ends };
    const all: ClusterView = { ...about, engines: listed };
    if (!logs && !local) return all as unknown as JsonObject;
    const builtins = (await supervision.list()).filter(({ kind }) => kind === "builtin")
      .map(({ name }) => name).sort();
    if (local) return { ...all, builtins } as unknown as JsonObject;
    const theirs = await askEngines(worker, engines, "engine::cluster::engines", {});
    const saidBy = ({ life, link }: EngineView): Pick<EngineRow, "log" | "builtins"> => {
      if (link === null) return { log, builtins };
      const answer = theirs.find((one) => one.life === life)?.result;
      const said = (answer ?? {}) as Partial<ClusterView>;
      return { log: said.log ?? null, builtins: said.builtins ?? null };
    };
    const withLogs: ClusterView = {
      ...all,
      engines: listed.map((one) => ({ ...one, ...saidBy(one) })),
    };
    return withLogs as unknown as JsonObject;
  });
  if (!engines) return;
  const about = {
    function_id: ASK_FUNCTION,
    description: "Answers what another engine asks of this one",
  };
  registerForEngines({ worker, directory, life: engines.life }, about, (payload) => {
    const asked = fit(ASK_FUNCTION, Ask, payload);
    const own = { ...asked.payload as JsonObject, local: true };
    return worker.trigger<Json, Json>({
      function_id: asked.function_id,
      payload: own,
      timeoutMs: ASK_TIMEOUT_MS,
    });
  });
}

/** The workers of other engines that match a query, each with the name of its engine. */
export async function workersElsewhere(
  worker: Pick<Worker, "trigger">,
  engines: Engines | undefined,
  query: JsonObject,
): Promise<JsonObject[]> {
  const asked = { ...query, limit: WORKERS_MAX };
  const answers = await askEngines(worker, engines, "engine::workers::list", asked);
  return answers.flatMap(({ engine, result }) => {
    const { workers } = result as { workers?: JsonObject[] };
    return Array.isArray(workers) ? workers.map((one) => ({ ...one, engine })) : [];
  });
}
