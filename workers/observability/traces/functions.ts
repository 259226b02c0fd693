/**
 * `engine::traces::*` and `engine::sampling::rules`, as any worker may call them.
 *
 * What was sent and what came back is shown to operators only; see
 * {@linkcode TraceFunctionsSetup.isOperator}.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { CallTraces } from "../../../engine/ports/telemetry.ts";
import { TRACE_MAP_KEPT_MS } from "../../limits.ts";
import type { Handler } from "../../../sdk/typescript/options.ts";
import type { JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import { fit } from "../../kit/payload.ts";
import type { LogRing } from "../logs/ring.ts";
import type { SpanStore } from "./spans_store.ts";
import type { TraceIndex } from "./index.ts";
import { mapOf, MapRequest } from "./map.ts";
import { GroupRequest, groupSpans, ListRequest, listSpans, treeOf, TreeRequest } from "./query.ts";
import { SummariesRequest, summarize } from "./summaries.ts";

/** What the functions work with. */
export interface TraceFunctionsSetup {
  readonly clock: Clock;
  readonly traces: CallTraces;
  readonly store: SpanStore;
  readonly index: TraceIndex;
  readonly logs: LogRing;
  /** Whether a connection belongs to somebody who may see payloads. */
  isOperator(caller: string | undefined): boolean;
  /** Whether a connection is that of a worker inside the engine. */
  isInEngine(worker_id: string): boolean;
}

/** Registers the functions. */
export function offerTraces(
  worker: Pick<Worker, "registerFunction">,
  setup: TraceFunctionsSetup,
): void {
  const { clock, store, index, traces } = setup;
  const offer = (name: string, description: string, handler: Handler): void => {
    worker.registerFunction(`engine::${name}`, handler, { description });
  };
  offer("traces::list", "Spans that fit", (payload, _, { caller, function_id }) => {
    const query = fit(function_id, ListRequest, payload);
    return listSpans(store, query, setup.isOperator(caller), clock.wall());
  });
  offer("traces::tree", "The spans of one trace, as a tree", (payload, _, context) => {
    const { trace_id } = fit(context.function_id, TreeRequest, payload);
    return treeOf(store, trace_id, setup.isOperator(context.caller));
  });
  offer("traces::group_by", "Spans with equal values of an attribute", (payload, _, context) => {
    return groupSpans(store, fit(context.function_id, GroupRequest, payload), clock.wall());
  });
  offer("traces::clear", "Forgets all spans but those of running calls", () => {
    store.clear();
    index.clear();
    return { success: true };
  });
  offer("traces::summaries", "A line per trace, the newest first", async (payload, _, context) => {
    const query = fit(context.function_id, SummariesRequest, payload);
    return summarize(await index.list(), query);
  });
  offer("traces::map", "Who called what and who ran it, as a graph", mapHandler(setup));
  offer("traces::explain", "What became of a call, and why", async (payload, _, context) => {
    const { explain, ExplainRequest } = await import("../health/explain.ts");
    const { invocation_id } = fit(context.function_id, ExplainRequest, payload);
    const recording = recordingOf(traces);
    const { logs, isInEngine } = setup;
    const about = { spans: store, logs, recording, isInEngine } as const;
    return await explain(about, invocation_id, setup.isOperator(context.caller), clock.wall());
  });
  offer("sampling::rules", "Which part of the traces is recorded", () => rulesOf(traces, clock));
}

/** A map costs a look at many spans, so equal questions close together get one answer. */
function mapHandler({ clock, store, traces }: TraceFunctionsSetup): Handler {
  let kept: { key: string; until: number; map: JsonObject } | undefined;
  return async (payload, _metadata, { function_id }) => {
    const query = fit(function_id, MapRequest, payload);
    const key = JSON.stringify(query);
    if (kept?.key === key && clock.now() < kept.until) return kept.map;
    const map = await mapOf(store, query, clock.wall(), recordingOf(traces) !== "all");
    kept = { key, until: clock.now() + TRACE_MAP_KEPT_MS, map };
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
