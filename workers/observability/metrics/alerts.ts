/**
 * Alerts: rules about engine values, evaluated each second. Logs and calls a function when an alert
 * starts to fire and when it ends.
 *
 * @module
 */
import type { Log } from "../../../engine/ports/log.ts";
import * as v from "../../kit/schema.ts";
import { ENGINE_VALUES, type EngineSample } from "./sampler.ts";

/** Rules for alerts. */
const ALERT_RULES_MAX = 100;

const Rule = v.strictObject({
  /** Unique among the rules. */
  name: v.text(1, 100),
  metric: v.picklist(ENGINE_VALUES),
  operator: v.optional(v.picklist([">", ">=", "<", "<="]), ">"),
  threshold: v.number(),
  /** Seconds that the rule has to hold before the alert fires. */
  for_s: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(86_400)), 10),
  /** Called with the alert when it starts to fire and when it ends. */
  function_id: v.optional(v.text(1)),
});

/** Rules in config.yaml. */
export const AlertRules = v.pipe(
  v.optional(v.list(Rule, ALERT_RULES_MAX), []),
  v.check(
    (rules) => new Set(rules.map(({ name }) => name)).size === rules.length,
    "two rules have the same name",
  ),
);

/** A parsed rule. */
export type AlertRule = v.InferOutput<typeof Rule>;

/** A rule and its state. */
export interface Alert {
  readonly name: string;
  readonly metric: string;
  readonly operator: string;
  readonly threshold: number;
  /** The latest value; `null`: unknown. */
  readonly value: number | null;
  /** `pending`: the rule holds, but not yet for `for_s`. */
  readonly state: "ok" | "pending" | "firing";
  /** Start of that state, in milliseconds since 1970. */
  readonly since_ms: number;
}

interface Watched {
  readonly rule: AlertRule;
  value: number | null;
  state: Alert["state"];
  sinceMs: number;
}

/** Evaluates rules. */
export class Alerts {
  readonly #watched: readonly Watched[];
  readonly #log: Log;
  readonly #notify: (function_id: string, alert: Alert) => void;

  /** `notify` calls the function of a rule; times are milliseconds since 1970. */
  constructor(
    rules: readonly AlertRule[],
    nowMs: number,
    log: Log,
    notify: (function_id: string, alert: Alert) => void,
  ) {
    this.#watched = rules.map((rule) => ({ rule, value: null, state: "ok", sinceMs: nowMs }));
    this.#log = log;
    this.#notify = notify;
  }

  /** Evaluates all rules and returns the alerts that started to fire or ended. */
  evaluate(engine: EngineSample, nowMs: number): Alert[] {
    return this.#watched.flatMap((watched) => {
      const before = watched.state;
      watched.value = engine[watched.rule.metric];
      this.#set(watched, nextState(watched, nowMs), nowMs);
      const { state } = watched;
      if ((before === "firing") === (state === "firing")) return [];
      const alert = alertOf(watched);
      this.#report(watched.rule, alert);
      return [alert];
    });
  }

  /** All rules and their state. */
  list(): Alert[] {
    return this.#watched.map(alertOf);
  }

  #set(watched: Watched, state: Alert["state"], nowMs: number): void {
    if (state === watched.state) return;
    watched.state = state;
    watched.sinceMs = nowMs;
  }

  #report({ name, function_id }: AlertRule, alert: Alert): void {
    const { metric, operator, threshold, value } = alert;
    const fields = { alert: name, metric, operator, threshold, value };
    if (alert.state === "firing") this.#log.warn("an alert began", fields);
    else this.#log.info("an alert ended", fields);
    if (function_id !== undefined) this.#notify(function_id, alert);
  }
}

/** An unknown value does not alert: without calls there is no p99. */
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
