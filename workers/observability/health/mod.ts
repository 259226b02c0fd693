/**
 * Liveness and readiness: `/healthz`, `/readyz`, `engine::health::check`,
 * `engine::health::measure`.
 *
 * Live means that the process answers. Ready means that calls should succeed: the store answers,
 * its disk has room and takes writes, the built-in workers run, no supervised worker has failed
 * for good, and the engine is not stopping. Both pages need no token,
 * so their answers are cached for a moment and name workers without details.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Engines } from "../../../engine/ports/directory.ts";
import type { Store } from "../../../engine/ports/store.ts";
import type { Supervision } from "../../../engine/ports/supervision.ts";
import type { Worker } from "../../../sdk/typescript/worker.ts";
import type { EngineHost } from "../../kit/define.ts";
import { fit } from "../../kit/fit.ts";
import * as v from "../../kit/schema.ts";
import type { Alert } from "../metrics/alerts.ts";
import type { MetricsHistory } from "../retained.ts";
import type { HealthCheck, HealthParts } from "./checks.ts";
import { DataDisk } from "./data_disk.ts";

/** Results of `engine::health::measure` are reused for this long, in milliseconds. */
const HEALTH_MEASURE_MS = 2_000;
/** An answer of `/readyz` is reused for this long, in milliseconds. */
export const READY_CHECK_MS = 1_000;
/** Deadline of the store for `/readyz`, in milliseconds. */
export const READY_STORE_MS = 2_000;

/** One component of `engine::health::check`. */
export interface Component {
  readonly status: "healthy" | "unhealthy" | "disabled";
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}

/** What the health functions report. */
export interface HealthSources {
  readonly history: MetricsHistory;
  /** The current components by name. */
  components(): Readonly<Record<string, Component>>;
  /** The rules of alerts and their state. */
  alerts(): readonly Alert[];
}

const Nothing = v.object({});

/** Serves the pages and registers the functions; the result removes the pages. */
export function startHealth(
  worker: Pick<Worker, "registerFunction">,
  host: EngineHost,
  { history, components, alerts }: HealthSources,
): Disposable {
  const { clock, supervision, store } = host;
  const disk = new DataDisk({ clock, store });
  worker.registerFunction("engine::health::check", async (payload) => {
    fit("engine::health::check", Nothing, payload ?? {});
    const { version } = supervision.info();
    const { free_bytes, problem } = await disk.read();
    const status = problem === null ? "healthy" : "unhealthy";
    const details = { free_bytes, failed_commits: store.stats.failed, problem };
    const all = { ...components(), data_directory: { status, details } };
    return { status, components: all, timestamp: clock.wall(), version };
  }, { description: "Whether data can be written, and which parts of observability are on" });
  const measure = measurements(host, history, disk, alerts);
  worker.registerFunction("engine::health::measure", async (payload) => {
    fit("engine::health::measure", Nothing, payload ?? {});
    return { checks: await measure(), timestamp: clock.wall() };
  }, { description: "Runs the health checks and suggests remedies" });
  return servePages(host, disk);
}

/** Measures at most every {@linkcode HEALTH_MEASURE_MS}; calls in between share the result. */
function measurements(
  { clock, directory, store, meters }: EngineHost,
  { workers, series, recent }: MetricsHistory,
  disk: DataDisk,
  alerts: HealthSources["alerts"],
): () => Promise<HealthCheck[]> {
  const parts: HealthParts = {
    clock,
    directory,
    store,
    disk,
    workers,
    alerts,
    bounds_ms: meters.bounds_ms,
    engine: (seconds) => series.engine(seconds),
    recent: () => recent.read(),
  };
  let last: Promise<HealthCheck[]> | undefined;
  let lastMs = -Infinity;
  return () => {
    if (!last || clock.now() - lastMs >= HEALTH_MEASURE_MS) {
      lastMs = clock.now();
      last = import("./checks.ts").then(({ measureHealth }) => measureHealth(parts));
    }
    return last;
  };
}

function servePages(
  { clock, store, supervision, servePage, engines, draining }: EngineHost,
  disk: DataDisk,
): Disposable {
  const ready = new ReadyCheck({ clock, store, supervision, disk, engines, draining });
  const json = (status: number, value: unknown) => ({
    status,
    contentType: "application/json; charset=utf-8",
    body: `${JSON.stringify(value)}\n`,
  });
  const pages = new DisposableStack();
  pages.defer(servePage("/healthz", () => json(200, { status: "ok" }), { open: true }));
  pages.defer(servePage("/readyz", async () => {
    const answer = await ready.read();
    return json(answer.ready ? 200 : 503, answer);
  }, { open: true }));
  return pages;
}

/** Dependencies of {@linkcode ReadyCheck}. */
export interface ReadyParts {
  readonly clock: Clock;
  readonly store: Pick<Store, "get">;
  readonly supervision: Pick<Supervision, "list">;
  readonly disk: Pick<DataDisk, "read">;
  readonly engines?: Pick<Engines, "isConnected"> | undefined;
  /** Aborts when the engine takes no new requests. */
  readonly draining: AbortSignal;
}

/** The body of `/readyz`. */
export interface Readiness {
  readonly ready: boolean;
  /** Why the engine is not ready, for people. */
  readonly reasons: readonly string[];
  /**
   * Whether other engines can be reached; absent in an engine that is alone. Without them an engine
   * is ready, since its own workers and routes go on.
   */
  readonly cluster?: "linked" | "away";
}

/** A balancer has to know before its requests get 503. */
const STOPPING: Readiness = { ready: false, reasons: ["the engine is stopping"] };
/** Need not exist: only whether the store answers counts. */
const PROBE_KEY = ["health", "probe"];

/** Checks readiness at most every {@linkcode READY_CHECK_MS}. */
export class ReadyCheck {
  readonly #parts: ReadyParts;
  #answer: Promise<Readiness> | undefined;
  #atMs = -Infinity;

  constructor(parts: ReadyParts) {
    this.#parts = parts;
  }

  /** The current or cached readiness; never rejects. */
  read(): Promise<Readiness> {
    if (this.#parts.draining.aborted) return Promise.resolve(STOPPING);
    const now = this.#parts.clock.now();
    if (this.#answer && now - this.#atMs < READY_CHECK_MS) return this.#answer;
    this.#atMs = now;
    this.#answer = this.#check();
    return this.#answer;
  }

  async #check(): Promise<Readiness> {
    const [store, workers, { problem }] = await Promise.all([
      this.#storeReason(),
      this.#workerReasons(),
      this.#parts.disk.read(),
    ]);
    const reasons = [...store, ...problem === null ? [] : [problem], ...workers];
    const { engines } = this.#parts;
    const cluster = engines && { cluster: engines.isConnected ? "linked" : "away" } as const;
    return { ready: reasons.length === 0, reasons, ...cluster };
  }

  async #storeReason(): Promise<string[]> {
    const { store, clock } = this.#parts;
    const late = Promise.withResolvers<string[]>();
    const cancel = clock.after(READY_STORE_MS, () => late.resolve(["the store does not answer"]));
    const read = store.get(PROBE_KEY).then(() => [], () => ["the store cannot be read"]);
    return await Promise.race([read, late.promise]).finally(cancel);
  }

  async #workerReasons(): Promise<string[]> {
    try {
      const list = await this.#parts.supervision.list();
      return list.flatMap(({ name, kind, state, required }) => {
        if (state === "failed") return [`worker ${name} has failed`];
        if (required && state !== "ready") return [`required worker ${name} is ${state}`];
        if (kind === "builtin" && state !== "ready" && state !== "stopped") {
          return [`built-in worker ${name} is ${state}`];
        }
        return [];
      });
    } catch {
      return ["the engine is starting or stopping"]; // Supervision rejects only then.
    }
  }
}
