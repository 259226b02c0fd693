/**
 * The checks of `engine::health::measure`: each measures one aspect and suggests a remedy.
 *
 * A check always describes its result in one sentence. `warn` deserves attention; `fail` means that
 * calls are affected or soon will be.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Directory, FunctionView } from "../../../engine/ports/directory.ts";
import type { Store, StoreKey } from "../../../engine/ports/store.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { DataDisk } from "./data_disk.ts";
import { type Alert, describeAlert } from "../metrics/alerts.ts";
import { type FunctionDelta, quantile, round, totalOf } from "../metrics/meters.ts";
import type { EngineSample } from "../metrics/sampler.ts";
import type { WorkerMonitor, WorkerSample } from "../metrics/workers.ts";

/** Result of a check. */
export interface HealthCheck {
  /** Such as `event loop`. */
  readonly name: string;
  readonly status: "ok" | "warn" | "fail";
  /** The decisive value, in the unit of the message; `null`: nothing was measured. */
  readonly measured: number | null;
  /** One sentence. */
  readonly message: string;
  /** What to do; `null` if `status` is `ok`. */
  readonly remedy: string | null;
}

/** Sources of the checks. */
export interface HealthParts {
  readonly clock: Clock;
  readonly directory: Pick<Directory, "functionsAfter" | "workers" | "triggers">;
  readonly store: Store;
  readonly disk: Pick<DataDisk, "read">;
  readonly workers: WorkerMonitor;
  readonly bounds_ms: readonly number[];
  /** The rules of alerts and their state. */
  alerts(): readonly Alert[];
  /** The engine's values of the last seconds, the oldest first. */
  engine(seconds: number): Readonly<Record<keyof EngineSample, (number | null)[]>>;
  /** Calls of the last minutes. */
  recent(): readonly FunctionDelta[];
}

/** Thresholds of `warn` and `fail`. */
interface Limits {
  readonly warn: number;
  readonly fail: number;
}

const LAG_MS: Limits = { warn: 100, fail: 1_000 };
const WORKER_LAG_MS: Limits = { warn: 250, fail: 5_000 };
const QUEUED_BYTES: Limits = { warn: 1024 * 1024, fail: 64 * 1024 * 1024 };
const SLOW_P99_MS: Limits = { warn: 1_000, fail: Infinity };
const SKEW_MS: Limits = { warn: 2_000, fail: 60_000 };
const OVERDUE_S: Limits = { warn: 0, fail: Infinity };
const SYNC_MS: Limits = { warn: 100, fail: 2_000 };
/** A p99 of fewer calls is meaningless. */
const CALLS_MIN = 20;
const LAG_SECONDS = 60;
/** Functions that a check reads, the first by id: anyone may ask, again and again. */
export const FUNCTIONS_CHECKED_MAX = 2_000;
const DISK_LOW_BYTES = 256 * 1024 * 1024;
const NAMES_SHOWN = 3;
const REASONS_SHOWN = 5;
const KEY_CHARS_SHOWN = 100;
const SYNC_WRITES = 3;
const MIB = 1_024 * 1_024;
const SYNC_KEY: StoreKey = ["health", "sync"];

/** Runs all checks, in display order. */
export async function measureHealth(parts: HealthParts): Promise<HealthCheck[]> {
  await parts.workers.refresh(0);
  const samples = parts.workers.samples();
  return [
    engineLag(parts),
    workerLag(samples),
    overdueHandlers(parts),
    busyThreads(parts),
    stalledWrites(samples),
    slowFunctions(parts),
    missingSchemas(parts),
    contendedFunctions(parts),
    inactiveTriggers(parts),
    takenRoutes(parts),
    clockSkew(parts),
    await diskSync(parts),
    await diskSpace(parts),
    storeFailures(parts.store),
    damagedRecords(parts.store),
    suspects(parts),
    failedWorkers(parts.workers),
    restarts(parts.workers),
    firingAlerts(parts),
  ];
}

function firingAlerts({ alerts }: HealthParts): HealthCheck {
  const all = alerts();
  const firing = all.filter(({ state }) => state === "firing");
  const status = firing.length === 0 ? "ok" : "warn";
  const texts = firing.map((alert) => `${alert.name}: ${describeAlert(alert)}`);
  return {
    name: "alerts",
    status,
    measured: firing.length,
    message: firing.length === 0
      ? `None of ${all.length} alert rules fires`
      : `${firing.length} of ${all.length} alert rules fire: ${named(texts)}`,
    remedy: remedyFor(
      status,
      "See the metrics and logs that the rule is about; rules are under metrics.alerts of " +
        "engine-observability",
    ),
  };
}

/**
 * A single late second, as at start-up, warns only if it is very late; repeated ones always count.
 */
function engineLag({ engine }: HealthParts): HealthCheck {
  const lags = engine(LAG_SECONDS).event_loop_lag_ms.filter((lag) => lag !== null)
    .sort((a, b) => b - a);
  const [worst = 0, second = 0] = lags;
  const repeated = statusOf(second, LAG_MS);
  const status = repeated === "ok" && worst >= LAG_MS.fail ? "warn" : repeated;
  return {
    name: "event loop",
    status,
    measured: worst,
    message: `The event loop was at most ${Math.round(worst)} ms late in the last ` +
      `${Math.max(1, lags.length)} s`,
    remedy: remedyFor(
      status,
      "Find out what uses the CPU: other programs on this machine, or payloads of many megabytes",
    ),
  };
}

function workerLag(samples: readonly WorkerSample[]): HealthCheck {
  const known = samples.flatMap(({ name, event_loop_lag_ms: lag }) =>
    lag === null ? [] : [{ name, value: lag }]
  );
  return ofWorst("event loops of workers", known, WORKER_LAG_MS, {
    none: "No worker's SDK reports its event-loop lag",
    found: ({ name, value }) =>
      `The event loop of ${name} was ${shown(value)} ms late, the most of ${known.length} workers`,
    remedy: ({ name }) =>
      `A handler of ${name} computes without a pause; split the work or add replicas`,
  });
}

function overdueHandlers({ workers }: HealthParts): HealthCheck {
  const late = workers.loads().flatMap(({ name, overdue }) =>
    overdue.map(({ function_id, seconds }) => ({
      name: `${function_id} of ${name}`,
      value: seconds,
    }))
  );
  return ofWorst("deadlines", late, OVERDUE_S, {
    none: "No handler is known to run past its deadline",
    found: ({ name, value }) =>
      `${late.length} functions run past their deadline: ` +
      `${named(late.map((each) => each.name))}; ${name} for ${Math.round(value)} s, the longest`,
    remedy: ({ name }) =>
      `The caller of ${name} has its error already: give what it waits for a timeout, or ` +
      "return when context.cancelled is set (context.signal in TypeScript); until then its work " +
      "continues, in Python perhaps in a thread that other calls wait for",
  });
}

function busyThreads({ workers }: HealthParts): HealthCheck {
  const full = workers.loads().filter(({ threads_busy, threads_max, calls_waiting }) =>
    calls_waiting > 0 && threads_max !== null && (threads_busy ?? 0) >= threads_max
  );
  const found = full.map(({ name, calls_waiting }) => ({ name, value: calls_waiting }));
  return ofWorst("threads", found, { warn: 1, fail: Infinity }, {
    none: "No worker is known to have calls that wait for a thread",
    found: ({ name, value }) =>
      `All threads of ${name} are busy and ${value} calls wait, the most of ${full.length} workers`,
    remedy: ({ name }) =>
      `See engine worker status ${name}; raise max_threads, add replicas, or make handlers async`,
  });
}

function stalledWrites(samples: readonly WorkerSample[]): HealthCheck {
  const queues = samples.map(({ name, queued_bytes }) => ({ name, value: queued_bytes }));
  return ofWorst("writes", queues, QUEUED_BYTES, {
    none: "No worker is connected",
    found: ({ name, value }) =>
      value === 0
        ? `None of ${queues.length} connections has a backlog`
        : `${bytesOf(value)} are queued to ${name}, the most of ${queues.length} connections`,
    remedy: ({ name }) => `${name} reads too slowly or hangs; check its log, or restart it`,
  });
}

function slowFunctions({ recent, bounds_ms }: HealthParts): HealthCheck {
  const known = recent()
    .filter(({ kind, durations }) => kind === "user" && totalOf(durations) >= CALLS_MIN)
    .map(({ function_id, durations }) => ({
      name: function_id,
      value: quantile(bounds_ms, durations, 0.99) ?? 0,
    }));
  return ofWorst("slow functions", known, SLOW_P99_MS, {
    none: `No function was called ${CALLS_MIN} times in the last minutes`,
    found: ({ name, value }) =>
      `The p99 of ${name} is ${shown(value)} ms, the most of ${known.length}`,
    remedy: ({ name }) => `See where its time goes in the traces of ${name}`,
  });
}

/** Each is to be read before the next one is taken. */
function someFunctions({ directory }: HealthParts): IteratorObject<FunctionView> {
  return Iterator.from(directory.functionsAfter("", "")).take(FUNCTIONS_CHECKED_MAX);
}

function missingSchemas(parts: HealthParts): HealthCheck {
  const bare: string[] = [];
  let own = 0;
  for (const { builtin, internal, request_schema, function_id } of someFunctions(parts)) {
    if (builtin || internal) continue;
    own++;
    if (request_schema === undefined) bare.push(function_id);
  }
  const status = bare.length === 0 ? "ok" : "warn";
  return {
    name: "schemas",
    status,
    measured: bare.length,
    message: bare.length === 0
      ? `All ${own} functions have a payload schema`
      : `${bare.length} of ${own} functions have no payload schema: ` +
        named(bare),
    remedy: remedyFor(status, "Give them a request_format; invalid payloads are then rejected"),
  };
}

function contendedFunctions(parts: HealthParts): HealthCheck {
  const contended: string[] = [];
  let all = 0;
  for (const { function_id, contenders } of someFunctions(parts)) {
    all++;
    if (contenders?.length) contended.push(`${function_id} (${contenders.join(", ")})`);
  }
  const status = contended.length === 0 ? "ok" : "warn";
  return {
    name: "function names",
    status,
    measured: contended.length,
    message: contended.length === 0
      ? `None of ${all} functions is offered by workers of different names`
      : `${contended.length} of ${all} functions are offered by workers of different ` +
        `names, which share their calls: ${named(contended)}`,
    remedy: remedyFor(
      status,
      "Give one of them another id, or both workers the same name; engine.shared_functions lists " +
        "those that may be shared and forbids all others",
    ),
  };
}

function inactiveTriggers({ directory }: HealthParts): HealthCheck {
  const all = directory.triggers();
  const idle = all.filter(({ reason }) => reason !== null);
  const status = idle.length === 0 ? "ok" : "warn";
  const reasons = new Map(
    idle.map(({ trigger_type, function_id, reason }) => [
      reason,
      `${trigger_type} of ${function_id}: ${reason}`,
    ]),
  );
  const names = [
    ...new Set(
      idle.map(({ trigger_type, function_id, worker_name }) =>
        `${trigger_type} of ${function_id} (${worker_name})`
      ),
    ),
  ];
  return {
    name: "triggers",
    status,
    measured: idle.length,
    message: idle.length === 0
      ? `None of ${all.length} triggers is parked or refused`
      : `${idle.length} of ${all.length} triggers do not fire: ${named(names)}`,
    remedy: idle.length === 0 ? null : [...reasons.values()].slice(0, REASONS_SHOWN).join("; "),
  };
}

/** Routes that a worker took from one of another name; the last registration serves. */
function takenRoutes({ directory }: HealthParts): HealthCheck {
  const owners = new Map<string, string>();
  const taken = new Map<string, string>();
  for (const { trigger_type, config, function_id, worker_name, engine } of directory.triggers()) {
    if (trigger_type !== "http" || engine !== undefined) continue;
    const { api_path, http_method = "GET" } = (config ?? {}) as JsonObject;
    const route = `${String(http_method).toUpperCase()} /${String(api_path).replace(/^\//, "")}`;
    const shape = route.replaceAll(/\/:[^/]+/g, "/:"); // Names do not tell apart.
    const before = owners.get(shape);
    owners.set(shape, worker_name);
    if (before === undefined || before === worker_name) continue;
    taken.set(route, `${route}, of ${before}, by ${function_id} (${worker_name})`);
  }
  const status = taken.size === 0 ? "ok" : "warn";
  return {
    name: "routes",
    status,
    measured: taken.size,
    message: taken.size === 0
      ? `None of ${owners.size} HTTP routes was taken from another worker`
      : `${taken.size} of ${owners.size} HTTP routes were taken from other workers: ` +
        named([...taken.values()]),
    remedy: remedyFor(status, "Give one of both triggers another api_path; the last one serves"),
  };
}

function clockSkew({ workers }: HealthParts): HealthCheck {
  const names = new Map(workers.samples().map(({ worker_id, name }) => [worker_id, name]));
  const known = [...workers.skews()].map(([id, skew]) => ({
    name: names.get(id) ?? id,
    value: Math.abs(skew),
  }));
  return ofWorst("clocks", known, SKEW_MS, {
    none: "No worker's SDK reports its time",
    found: ({ name, value }) =>
      `The clock of ${name} differs by ${shown(value)} ms, the most of ${known.length} workers`,
    remedy: ({ name }) => `Synchronize the clock of the machine of ${name}, for example by NTP`,
  });
}

async function diskSync({ store, clock }: HealthParts): Promise<HealthCheck> {
  const times: number[] = [];
  try {
    for (let i = 0; i < SYNC_WRITES; i++) {
      const began = clock.now();
      await store.write([[SYNC_KEY, (): Json => clock.wall() + i]]);
      times.push(clock.now() - began);
    }
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return {
      name: "disk",
      status: "fail",
      measured: null,
      message: `A value could not be written: ${reason}`,
      remedy: "Check that the disk of the data directory has space and is writable",
    };
  }
  const median = round(times.sort((a, b) => a - b)[times.length >> 1]!);
  return {
    name: "disk",
    status: statusOf(median, SYNC_MS),
    measured: median,
    message: `Writing a small value to disk takes ${shown(median)} ms`,
    remedy: remedyFor(
      statusOf(median, SYNC_MS),
      "Move the data directory to a faster disk, or check what else writes to it",
    ),
  };
}

async function diskSpace({ disk }: HealthParts): Promise<HealthCheck> {
  const { free_bytes, problem } = await disk.read();
  const isLow = free_bytes !== null && free_bytes < DISK_LOW_BYTES;
  const status = problem !== null ? "fail" : isLow ? "warn" : "ok";
  const free = free_bytes === null
    ? "The free space of the data directory is unknown"
    : `The data directory has ${bytesOf(free_bytes)} of free space`;
  return {
    name: "disk space",
    status,
    measured: free_bytes,
    message: problem === null ? free : problem[0]!.toUpperCase() + problem.slice(1),
    remedy: remedyFor(
      status,
      "Free space on the disk of the data directory, .engine beside config.yaml",
    ),
  };
}

function damagedRecords({ status: { damaged } }: Store): HealthCheck {
  const status = damaged.length === 0 ? "ok" : "fail";
  const keys = damaged.map(({ key }) => key.join("/").slice(0, KEY_CHARS_SHOWN));
  return {
    name: "records",
    status,
    measured: damaged.length,
    message: damaged.length === 0
      ? "No damaged record was met in the state file"
      : `${damaged.length} records of the state file are damaged: ${named(keys)}`,
    remedy: remedyFor(status, "Write these keys again, or restore a backup of the state file"),
  };
}

function suspects({ directory }: HealthParts): HealthCheck {
  const all = directory.workers();
  const suspect = all.filter((worker) => worker.suspect).map(({ name, id }) => name ?? id);
  const status = suspect.length === 0 ? "ok" : "warn";
  return {
    name: "suspect workers",
    status,
    measured: suspect.length,
    message: suspect.length === 0
      ? `All of ${all.length} connected workers answer`
      : `${suspect.length} of ${all.length} workers do not answer: ${named(suspect)}`,
    remedy: remedyFor(
      status,
      `${suspect[0]} is stopped, blocked or cut off; new calls go to other replicas meanwhile`,
    ),
  };
}

function storeFailures({ stats, status: { failure } }: Store): HealthCheck {
  const status = failure ? "fail" : stats.failed === 0 ? "ok" : "warn";
  const counts = `${stats.commits} commits are on disk, ${stats.failed} failed`;
  return {
    name: "store",
    status,
    measured: stats.failed,
    message: failure ? `${counts}; now: ${failure.message}` : counts,
    remedy: remedyFor(status, "Check the engine's log for the reason, and that the disk has space"),
  };
}

function failedWorkers({ supervised }: WorkerMonitor): HealthCheck {
  const failed = supervised.filter(({ state }) => state === "failed");
  const status = failed.length === 0 ? "ok" : "fail";
  const names = failed.map(({ name }) => name);
  return {
    name: "workers",
    status,
    measured: failed.length,
    message: failed.length === 0
      ? `None of ${supervised.length} workers has failed`
      : `${failed.length} of ${supervised.length} workers have failed: ${named(names)}`,
    remedy: remedyFor(status, `Check the reason: engine worker status ${names[0]}`),
  };
}

function restarts({ restartsByName }: WorkerMonitor): HealthCheck {
  const known = [...restartsByName].map(([name, value]) => ({ name, value }));
  return ofWorst("restarts", known, { warn: 1, fail: Infinity }, {
    none: "The engine runs no workers",
    found: ({ name, value }) =>
      value === 0
        ? `None of ${known.length} workers exited unexpectedly`
        : `${name} exited unexpectedly ${
          value === 1 ? "once" : `${value} times`
        }, the most of ${known.length} workers`,
    remedy: ({ name }) => `Check its output before the exit: engine worker logs ${name}`,
  });
}

interface Found {
  readonly name: string;
  readonly value: number;
}

/** A check rated by the largest of several values. */
function ofWorst(name: string, found: readonly Found[], limits: Limits, texts: {
  readonly none: string;
  found(worst: Found): string;
  remedy(worst: Found): string;
}): HealthCheck {
  const worst = found.reduce<Found | undefined>(
    (a, b) => a === undefined || b.value > a.value ? b : a,
    undefined,
  );
  if (!worst) return { name, status: "ok", measured: null, message: texts.none, remedy: null };
  const status = statusOf(worst.value, limits);
  return {
    name,
    status,
    measured: worst.value,
    message: texts.found(worst),
    remedy: remedyFor(status, texts.remedy(worst)),
  };
}

function statusOf(value: number, { warn, fail }: Limits): HealthCheck["status"] {
  if (value >= fail) return "fail";
  return value >= warn ? "warn" : "ok";
}

function remedyFor(status: HealthCheck["status"], remedy: string): string | null {
  return status === "ok" ? null : remedy;
}

/** Rounded milliseconds for the message; `measured` is exact. */
function shown(ms: number): number {
  return ms < 10 ? Number(ms.toFixed(1)) : Math.round(ms);
}

function bytesOf(count: number): string {
  if (count < 1_024) return `${count} bytes`;
  return count < MIB ? `${Math.round(count / 1_024)} KiB` : `${Math.round(count / MIB)} MiB`;
}

function named(names: readonly string[]): string {
  const shown = names.slice(0, NAMES_SHOWN).join(", ");
  return names.length > NAMES_SHOWN ? `${shown} and ${names.length - NAMES_SHOWN} more` : shown;
}
