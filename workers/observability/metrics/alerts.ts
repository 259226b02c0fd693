/**
 * Alerts: rules about engine values, watched each second, said once when they begin and once when
 * they end.
 *
 * @module
 */
import * as v from "../../kit/schema.ts";
import type { Log } from "../../../engine/ports/log.ts";
import { ALERT_RULES_MAX } from "../../limits.ts";
import type { EngineSample } from "./sampler.ts";

const METRICS = [
  "calls_per_s",
  "errors_per_s",
  "p50_ms",
  "p99_ms",
  "in_flight",
  "held",
  "lines",
  "queued_bytes",
  "event_loop_lag_ms",
  "memory_bytes",
  "heap_bytes",
  "cpu_percent",
  "state_commits_per_s",
  "restarts",
] as const satisfies readonly (keyof EngineSample)[];

const Rule = v.strictObject({
  /** Unique among the rules. */
  name: v.text(1, 100),
  metric: v.picklist(METRICS),
  operator: v.optional(v.picklist([">", ">=", "<", "<="]), ">"),
  threshold: v.number(),
  /** It has to hold for so long, in seconds, before the alert begins. */
  for_s: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(86_400)), 10),
  /** Called with the alert when it begins and when it ends. */
  function_id: v.optional(v.text(1)),
});

/** Rules as config.yaml has them. */
export const AlertRules = v.pipe(
  v.optional(v.list(Rule, ALERT_RULES_MAX), []),
  v.check(
    (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
    "two rules have the same name",
  ),
);

/** When an alert is to begin. */
export type AlertRule = v.InferOutput<typeof Rule>;

/** A rule and how it stands. */
export interface Alert {
  readonly name: string;
  readonly metric: string;
  readonly operator: string;
  readonly threshold: number;
  /** The last value; `null`: unknown. */
  readonly value: number | null;
  /** `pending`: it holds, not yet for long enough. */
  readonly state: "ok" | "pending" | "firing";
  /** When that state began, in milliseconds since 1970. */
  readonly since_ms: number;
}

interface Watched {
  readonly rule: AlertRule;
  value: number | null;
  state: Alert["state"];
  sinceMs: number;
}

/** Watches rules. */
export class Alerts {
  readonly #watched: readonly Watched[];
  readonly #log: Log;
  readonly #tell: (function_id: string, alert: Alert) => void;

  /** `tell` calls the function of a rule; times are milliseconds since 1970. */
  constructor(
    rules: readonly AlertRule[],
    nowMs: number,
    log: Log,
    tell: (function_id: string, alert: Alert) => void,
  ) {
    this.#watched = rules.map((rule) => ({ rule, value: null, state: "ok", sinceMs: nowMs }));
    this.#log = log;
    this.#tell = tell;
  }

  /** Looks at values; the alerts that began or ended by that. */
  evaluate(engine: EngineSample, nowMs: number): Alert[] {
    return this.#watched.flatMap((watched) => {
      const before = watched.state;
      watched.value = engine[watched.rule.metric];
      this.#set(watched, nextState(watched, nowMs), nowMs);
      const { state } = watched;
      if ((before === "firing") === (state === "firing")) return [];
      const alert = alertOf(watched);
      this.#say(watched.rule, alert);
      return [alert];
    });
  }

  /** Every rule as it stands. */
  list(): Alert[] {
    return this.#watched.map(alertOf);
  }

  #set(watched: Watched, state: Alert["state"], nowMs: number): void {
    if (state === watched.state) return;
    watched.state = state;
    watched.sinceMs = nowMs;
  }

  #say({ name, function_id }: AlertRule, alert: Alert): void {
    const { metric, operator, threshold, value } = alert;
    const fields = { alert: name, metric, operator, threshold, value };
    if (alert.state === "firing") this.#log.warn("an alert began", fields);
    else this.#log.info("an alert ended", fields);
    if (function_id !== undefined) this.#tell(function_id, alert);
  }
}

/** What is unknown is no reason to alert: without calls there is no p99. */
function nextState({ rule, value, state, sinceMs }: Watched, nowMs: number): Alert["state"] {
  if (value === null || !holds(rule, value)) return "ok";
  if (state === "firing") return state;
  const heldMs = state === "pending" ? nowMs - sinceMs : 0;
  return heldMs >= rule.for_s * 1_000 ? "firing" : "pending";
}

function holds({ operator, threshold }: AlertRule, value: number): boolean {
  switch (operator) {
    case ">":
      return value > threshold;
    case ">=":
      return value >= threshold;
    case "<":
      return value < threshold;
    case "<=":
      return value <= threshold;
  }
}

function alertOf({ rule, value, state, sinceMs }: Watched): Alert {
  const { name, metric, operator, threshold } = rule;
  return { name, metric, operator, threshold, value, state, since_ms: sinceMs };
}
