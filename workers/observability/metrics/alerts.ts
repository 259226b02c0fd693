/**
 * Alerts: rules about values of the engine or about log records, evaluated each second. When an
 * alert starts to fire and when it ends, this logs it, calls the function of its rule and fires the
 * triggers of type `alert`.
 *
 * @module
 */
import type { Directory } from "../../../engine/ports/directory.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { TriggerInstance } from "../../../sdk/typescript/options.ts";
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../../sdk/typescript/wire/similar.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import * as v from "../../kit/schema.ts";
import { fireTriggers, fitTrigger } from "../../kit/triggers.ts";
import { type LogRecord, SEVERITIES } from "../logs/record.ts";
import { matcher } from "../logs/store.ts";
import { TriggerQuota } from "../trigger_quota.ts";
import { TRIGGER_TEXT_CHARS_MAX, WORKER_NAME } from "../triggers.ts";
import { ENGINE_VALUES, type EngineSample } from "./sampler.ts";

/** Rules for alerts. */
const ALERT_RULES_MAX = 100;
/** Longest name of a rule, in UTF-16 code units. */
const ALERT_NAME_CHARS_MAX = 100;
/** Longest time in which records are counted, in seconds. */
const WITHIN_S_MAX = 3_600;
/** Default time in which records are counted. */
const WITHIN_S = 60;
/** Default time that a rule about a value has to hold, in seconds. */
const FOR_S = 10;

/** Which log records count; all given members have to match. */
const LogPattern = v.strictObject({
  /** Exactly this severity. */
  level: v.optional(v.picklist(SEVERITIES)),
  /** This severity and more severe ones. */
  min_level: v.optional(v.picklist(SEVERITIES)),
  worker: v.optional(v.text(1)),
  function_id: v.optional(v.text(1)),
  /** In the text or an attribute, in any case. */
  text: v.optional(v.text(1, TRIGGER_TEXT_CHARS_MAX)),
});

const Rule = v.pipe(
  v.strictObject({
    /** Unique among the rules. */
    name: v.text(1, ALERT_NAME_CHARS_MAX),
    /** A value of the engine; instead of `log`. */
    metric: v.optional(v.picklist(ENGINE_VALUES)),
    /** The value is the number of these records within `within_s`. */
    log: v.optional(LogPattern),
    operator: v.optional(v.picklist([">", ">=", "<", "<="]), ">"),
    /** Required with `metric`; default with `log`: 0. */
    threshold: v.optional(v.number()),
    /** For `log`, in seconds. */
    within_s: v.optional(v.int(1, WITHIN_S_MAX)),
    /** Seconds that the rule has to hold before the alert fires; default: 10, with `log` 0. */
    for_s: v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(86_400))),
    /** Called with the alert when it starts to fire and when it ends. */
    function_id: v.optional(v.text(1)),
  }),
  v.check(
    ({ metric, log }) => (metric === undefined) !== (log === undefined),
    "a rule has either metric or log",
  ),
  v.check(
    ({ metric, threshold }) => metric === undefined || threshold !== undefined,
    "a rule about a metric needs a threshold",
  ),
  v.check(
    ({ log, within_s }) => log !== undefined || within_s === undefined,
    "within_s belongs to a rule about log records",
  ),
  v.transform(({ threshold = 0, for_s, within_s = WITHIN_S, ...rule }) => {
    return { ...rule, threshold, within_s, for_s: for_s ?? (rule.log ? 0 : FOR_S) };
  }),
);

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
  /** What is compared; `null`: log records are counted. */
  readonly metric: string | null;
  /** The records that are counted, with `within_s`. */
  readonly log?: AlertRule["log"] & { readonly within_s: number };
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
  readonly records: RecordCount | undefined;
  value: number | null;
  state: Alert["state"];
  sinceMs: number;
}

/** Evaluates rules. */
export class Alerts {
  readonly #watched: readonly Watched[];
  readonly #log: Log;
  readonly #notify: (alert: Alert, function_id: string | undefined) => void;

  /**
   * `notify` is called with each alert that starts to fire or ends, and the function of its rule;
   * times are milliseconds since 1970.
   */
  constructor(
    rules: readonly AlertRule[],
    nowMs: number,
    log: Log,
    notify: (alert: Alert, function_id: string | undefined) => void,
  ) {
    this.#watched = rules.map((rule) => {
      const records = rule.log && new RecordCount(rule.log, rule.within_s);
      return { rule, records, value: null, state: "ok", sinceMs: nowMs };
    });
    this.#log = log;
    this.#notify = notify;
  }

  /** Counts a log record, unless this worker wrote it: no alert keeps itself firing. */
  count(record: LogRecord, nowMs: number): void {
    if (record.source === "engine" && record.attributes.by === WORKER_NAME) return;
    for (const { records } of this.#watched) records?.add(record, nowMs);
  }

  /** Evaluates all rules and returns the alerts that started to fire or ended. */
  evaluate(engine: EngineSample, nowMs: number): Alert[] {
    return this.#watched.flatMap((watched) => {
      const { rule, records, state: before } = watched;
      watched.value = records ? records.total(nowMs) : engine[rule.metric!];
      this.#set(watched, nextState(watched, nowMs), nowMs);
      const { state } = watched;
      if ((before === "firing") === (state === "firing")) return [];
      const alert = alertOf(watched);
      this.#report(rule, alert);
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
    const fields = { alert: name, metric: metric ?? "log", operator, threshold, value };
    if (alert.state === "firing") this.#log.warn("an alert began", fields);
    else this.#log.info("an alert ended", fields);
    this.#notify(alert, function_id);
  }
}

/** Counts matching records of the last seconds, one number for each second. */
class RecordCount {
  readonly #fits: (record: LogRecord) => boolean;
  readonly #counts: number[];
  #total = 0;
  /** The latest second that is counted. */
  #second = 0;

  constructor({ level, min_level, ...rest }: NonNullable<AlertRule["log"]>, withinS: number) {
    this.#fits = matcher({ ...rest, severity: level, least: min_level });
    this.#counts = Array(withinS).fill(0);
  }

  add(record: LogRecord, nowMs: number): void {
    if (!this.#fits(record)) return;
    this.#forget(nowMs);
    this.#counts[this.#second % this.#counts.length]!++;
    this.#total++;
  }

  total(nowMs: number): number {
    this.#forget(nowMs);
    return this.#total;
  }

  /** Leaves out the seconds that are over; a clock that is set back keeps the latest. */
  #forget(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000);
    const { length } = this.#counts;
    for (let i = Math.max(this.#second, second - length) + 1; i <= second; i++) {
      this.#total -= this.#counts[i % length]!;
      this.#counts[i % length] = 0;
    }
    this.#second = Math.max(this.#second, second);
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
  const { name, metric = null, log, within_s, operator, threshold } = rule;
  const counted = log && { log: { ...log, within_s } };
  return { name, metric, ...counted, operator, threshold, value, state, since_ms: sinceMs };
}

/** An alert in one sentence, such as `p99_ms is 812, more than 500`. */
export function describeAlert({ metric, log, operator, threshold, value }: Alert): string {
  const subject = log ? `${value} log records in ${log.within_s} s` : `${metric} is ${value}`;
  return `${subject} (${operator} ${threshold})`;
}

const TriggerConfig = v.object({
  /** A rule; left out: every rule. */
  name: v.opt(v.text(1, ALERT_NAME_CHARS_MAX)),
  /** Left out: when the alert starts to fire and when it ends. */
  state: v.opt(v.picklist(["firing", "ok"])),
});

interface AlertTrigger {
  readonly trigger: TriggerInstance;
  readonly name: string | undefined;
  readonly state: "firing" | "ok" | undefined;
}

/** Provider of the trigger type `alert`. */
export class AlertTriggers {
  readonly #worker: Pick<Worker, "trigger">;
  readonly #names: readonly string[];
  readonly #quota: TriggerQuota;
  readonly #triggers = new Map<string, AlertTrigger>();

  constructor(
    worker: Pick<Worker, "trigger">,
    rules: readonly AlertRule[],
    directory: Pick<Directory, "trigger" | "worker">,
  ) {
    this.#worker = worker;
    this.#names = rules.map(({ name }) => name);
    this.#quota = new TriggerQuota(directory);
  }

  /** Registers the trigger type. */
  register(worker: Pick<Worker, "registerTriggerType">): void {
    worker.registerTriggerType({
      id: "alert",
      description: "Runs a function when an alert rule of config.yaml starts to fire and ends",
      trigger_request_format: v.jsonSchema(TriggerConfig),
      call_request_format: { type: "object" },
    }, {
      registerTrigger: (trigger) => this.add(trigger),
      unregisterTrigger: ({ id }) => this.remove(id),
    });
  }

  /** @throws {EngineError} `trigger_registration_failed` for a rule that there is not. */
  add(trigger: TriggerInstance): void {
    const { name, state } = fitTrigger(TriggerConfig, trigger);
    if (name !== undefined && !this.#names.includes(name)) throw this.#unknown(name);
    this.#quota.take(trigger);
    this.#triggers.set(trigger.id, { trigger, name, state });
  }

  remove(id: string): void {
    this.#quota.give(id);
    this.#triggers.delete(id);
  }

  /** Fires the triggers for an alert that started to fire or ended. */
  fire(alert: Alert): void {
    const fitting = [...this.#triggers.values()].filter(({ name, state }) =>
      (name ?? alert.name) === alert.name && (state ?? alert.state) === alert.state
    );
    fireTriggers(this.#worker, fitting.map(({ trigger }) => trigger), alert as unknown as Json);
  }

  #unknown(name: string): EngineError {
    const [near] = similarNames(name, this.#names);
    const hint = near === undefined
      ? "add it under metrics.alerts of engine-observability"
      : `did you mean ${near}?`;
    return new EngineError(
      "trigger_registration_failed",
      `There is no alert rule ${JSON.stringify(name)}; ${hint}`,
    );
  }
}
