/**
 * Registers `engine::traces::*`, `engine::sampling::rules` and `engine::baggage::*`.
 *
 * Any worker may read; only operators receive payloads and remove spans, see
 * {@linkcode TraceFunctionsSetup.isOperator}.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory } from "../../../engine/ports/directory.ts";
import type { CallTraces } from "../../../engine/ports/telemetry.ts";
import type { Handler } from "../../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineAnswer } from "../../kit/engines.ts";
import { fit } from "../../kit/fit.ts";
import * as v from "../../kit/schema.ts";
import type { LogRing } from "../logs/store.ts";
import { checkOperator } from "../retained.ts";
import type { SearchTurns } from "../turns.ts";
import {
  histogramOf,
  HistogramRequest,
  SummariesRequest,
  summarize,
  type TraceIndex,
} from "./index.ts";
import { joinLists, joinTrees } from "./joined.ts";
import {
  GroupRequest,
  groupSpans,
  ListRequest,
  listSpans,
  mapOf,
  MapRequest,
  treeOf,
  TreeRequest,
} from "./query.ts";
import type { SpanStore } from "./store.ts";

/** Members of one baggage that are read, as W3C allows. */
const BAGGAGE_ENTRIES_MAX = 180;
/** A map of calls is reused for this long, in milliseconds. */
const TRACE_MAP_CACHE_MS = 1_000;

/** Dependencies of the functions. */
export interface TraceFunctionsSetup {
  readonly clock: Clock;
  readonly traces: CallTraces;
  readonly store: SpanStore;
  readonly index: TraceIndex;
  readonly logs: LogRing;
  readonly turns: SearchTurns;
  /** Whether the caller, given by its connection, may see payloads and remove spans. */
  isOperator(caller: string | undefined): boolean;
  /** Says which connections are of built-in workers or lead to other engines. */
  readonly directory: Pick<Directory, "worker">;
  /** Asks the other engines of the cluster; `undefined`: there are none. */
  readonly ask?: ((function_id: string, payload: Json) => Promise<EngineAnswer[]>) | undefined;
}

/** Registers `engine::traces::*` and `engine::sampling::rules`. */
export function registerTraceFunctions(
  worker: Pick<Worker, "registerFunction">,
  setup: TraceFunctionsSetup,
): void {
  const { clock, store, index, traces, turns, ask } = setup;
  const register = (name: string, description: string, handler: Handler): void => {
    worker.registerFunction(`engine::${name}`, handler, { description });
  };
  register("traces::list", "Spans that match a filter", async (payload, _, context) => {
    const { caller, function_id } = context;
    const query = fit(function_id, ListRequest, payload);
    const own = await turns.take(caller, (turn) => {
      return listSpans(store, query, setup.isOperator(caller), clock.wall(), turn);
    });
    const isOfTraces = query.trace_id !== undefined || query.trace_ids !== undefined;
    if (!ask || query.local || !isOfTraces) return own;
    return joinLists(own, await ask(function_id, payload!));
  });
  register("traces::tree", "The spans of one trace, as a tree", async (payload, _, context) => {
    const { caller, function_id } = context;
    const { trace_id, local } = fit(function_id, TreeRequest, payload);
    const own = await turns.take(caller, (turn) => {
      return treeOf(store, trace_id, setup.isOperator(caller), turn);
    });
    return !ask || local ? own : joinTrees(own, await ask(function_id, { trace_id }));
  });
  register("traces::group_by", "Spans with equal values of an attribute", (payload, _, context) => {
    const query = fit(context.function_id, GroupRequest, payload);
    return turns.take(context.caller, (turn) => groupSpans(store, query, clock.wall(), turn));
  });
  register("traces::clear", "Removes all spans but those of running calls", (_p, _m, context) => {
    checkOperator(setup.isOperator(context.caller), context.function_id);
    store.clear();
    index.clear();
    return { success: true };
  });
  register(
    "traces::summaries",
    "A summary of each trace, the newest first",
    async (payload, _, context) => {
      const query = fit(context.function_id, SummariesRequest, payload);
      await index.read();
      return await turns.take(context.caller, (turn) => summarize(index.newest(), query, turn));
    },
  );
  register(
    "traces::histogram",
    "How many traces began in each part of a time range",
    async (payload, _, { function_id, caller }) => {
      const query = fit(function_id, HistogramRequest, payload);
      await index.read();
      return await turns.take(caller, (turn) => {
        return histogramOf(index.newest(), query, clock.wall(), turn);
      });
    },
  );
  register("traces::map", "Callers and callees of recent calls, as a graph", mapHandler(setup));
  register("traces::explain", "Explains the outcome of a call", explainHandler(setup));
  register("sampling::rules", "The share of traces that is recorded", () => rulesOf(traces, clock));
}

/** Explains a call, with the other engines of the cluster where they had a part in it. */
function explainHandler(setup: TraceFunctionsSetup): Handler {
  const { clock, store, traces, ask } = setup;
  return async (payload, _metadata, context) => {
    const { explain, ExplainRequest } = await import("../health/explain.ts");
    const { explainElsewhere, explainThere } = await import("../health/explain_far.ts");
    const query = fit(context.function_id, ExplainRequest, payload);
    const { logs, directory } = setup;
    const sources = {
      spans: store,
      logs,
      recording: recordingOf(traces),
      isInEngine: (id: string) => directory.worker(id)?.builtin === true,
      engineOf: (id: string) => directory.worker(id)?.engine,
    };
    const isOperator = setup.isOperator(context.caller);
    const { invocation_id: id, trace_id, local } = query;
    const [asked, within] = [local ? undefined : ask, trace_id ?? undefined];
    try {
      const own = explain(sources, id, isOperator, clock.wall(), within);
      return asked ? await explainThere(own, asked) : own;
    } catch (thrown) {
      const other = asked && (thrown as { code?: unknown }).code === "NOT_FOUND"
        ? await explainElsewhere(id, asked)
        : undefined;
      if (!other) throw thrown;
      return other;
    }
  };
}

/** Caches the last map for a moment, since it scans many spans. */
function mapHandler({ clock, store, traces, turns }: TraceFunctionsSetup): Handler {
  let cached: { key: string; until: number; map: JsonObject } | undefined;
  return async (payload, _metadata, { function_id, caller }) => {
    const query = fit(function_id, MapRequest, payload);
    const key = JSON.stringify(query);
    if (cached?.key === key && clock.now() < cached.until) return cached.map;
    const map = await turns.take(caller, (turn) => {
      return mapOf(store, query, clock.wall(), recordingOf(traces) !== "all", turn);
    });
    cached = { key, until: clock.now() + TRACE_MAP_CACHE_MS, map };
    return map;
  };
}

function recordingOf({ settings }: CallTraces): "all" | "some" | "none" {
  if (!settings.enabled) return "none";
  return settings.ratio < 1 || settings.rules.some(({ rate }) => rate < 1) ? "some" : "all";
}

function rulesOf({ settings }: CallTraces, clock: Clock): JsonObject {
  return {
    traces: {
      default_ratio: settings.enabled ? settings.ratio : 0,
      rules: settings.rules.map(({ operation, rate }) => ({ operation, service: null, rate })),
      parent_based: true,
    },
    logs: { sampling_ratio: 1 },
    timestamp: clock.wall(),
  };
}

const GetRequest = v.object({ key: v.string() });
const SetRequest = v.object({ key: v.text(1), value: v.string() });

const NOTE = "Baggage travels to callees, never back to the caller: nothing was changed. " +
  "Send the baggage with the calls that need it";

/** Registers `engine::baggage::{get,set,get_all}`. */
export function registerBaggageFunctions(worker: Pick<Worker, "registerFunction">): void {
  worker.registerFunction("engine::baggage::get", (payload, _metadata, { baggage }) => {
    const { key } = fit("engine::baggage::get", GetRequest, payload);
    return { value: readBaggage(baggage).get(key) ?? null };
  }, { description: "A value of the call's baggage" });
  worker.registerFunction("engine::baggage::set", (payload) => {
    fit("engine::baggage::set", SetRequest, payload);
    return { success: false, note: NOTE };
  }, {
    description: "Changes nothing: says that a callee cannot change the baggage of its caller",
  });
  worker.registerFunction("engine::baggage::get_all", (_payload, _metadata, { baggage }) => ({
    baggage: Object.fromEntries(readBaggage(baggage)),
  }), { description: "The call's baggage" });
}

/**
 * Parses a W3C baggage header: values by key, percent-decoded, without properties.
 *
 * Invalid members are skipped; the last of several equal keys wins.
 */
export function readBaggage(header: string | undefined): Map<string, string> {
  const members = new Map<string, string>();
  if (header === undefined) return members;
  for (const part of header.split(",", BAGGAGE_ENTRIES_MAX)) {
    const [member = ""] = part.split(";", 1);
    const at = member.indexOf("=");
    const key = member.slice(0, Math.max(0, at)).trim();
    if (key !== "") members.set(key, decode(member.slice(at + 1).trim()));
  }
  return members;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Not percent-encoded.
  }
}
