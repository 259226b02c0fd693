/**
 * What a built-in worker is, and what the engine lends it.
 *
 * A built-in is a worker like any other: it gets a {@linkcode Worker} on a local line. It has no
 * private door; what it needs beyond that is a field of {@linkcode EngineHost}, visible to all.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { ConfigValue, KnownWorker } from "../../engine/ports/config.ts";
import type { PageAnswer, PageRequest } from "../../engine/ports/connection.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { EventListener } from "../../engine/ports/events.ts";
import type { EngineLogListener, Log } from "../../engine/ports/log.ts";
import type { Store } from "../../engine/ports/store.ts";
import type { Endpoint, Supervision } from "../../engine/ports/supervision.ts";
import type {
  CallTraces,
  Meters,
  PrintListener,
  TelemetryListener,
} from "../../engine/ports/telemetry.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";

/** What any worker in the engine's or the CLI's process is lent. */
export interface Host {
  readonly clock: Clock;
  readonly log: Log;
  /** Says that the worker serves an address now; withdrawn when the worker ends. */
  serves(endpoint: Endpoint): void;
  /** Aborted when the worker is to end. */
  readonly signal: AbortSignal;
}

/** What a worker inside the engine is lent besides. */
export interface EngineHost extends Host {
  readonly store: Store;
  readonly directory: Directory;
  readonly supervision: Supervision;
  /** Hears of what happens from now on; call the result to stop. */
  onEvent(listener: EventListener): () => void;
  /** The calls that were recorded, and what to record. */
  readonly traces: CallTraces;
  /** Counts of all calls. */
  readonly meters: Meters;
  /** Hears of telemetry that workers send; call the result to stop. */
  onTelemetry(listener: TelemetryListener): () => void;
  /** Hears of what supervised workers print; call the result to stop. */
  onPrint(listener: PrintListener): () => void;
  /** Hears of the engine's own log; call the result to stop. */
  onEngineLog(listener: EngineLogListener): () => void;
  /**
   * Answers GET requests to a path of the worker port, such as `/metrics`; call the result to stop.
   * `open` ones need no token.
   *
   * @throws {Error} When the path is taken.
   */
  servePage(
    path: string,
    answer: (request: PageRequest) => PageAnswer | Promise<PageAnswer>,
    options?: { readonly open?: boolean },
  ): () => void;
  /** The effective configuration. */
  configuration(): readonly ConfigValue[];
}

/** A worker that comes with the engine. */
export interface BuiltinWorker<Config = unknown> extends KnownWorker {
  /** One line for listings. */
  readonly summary: string;
  /** @throws {SchemaError} With every problem. */
  parse(raw: unknown): Config;
  /** Its line may manage workers, as the user's own command line may; default: no. */
  readonly operator?: boolean;
  /** Registers what it offers; the result undoes what the line's end does not undo by itself. */
  start(worker: Worker, config: Config, host: EngineHost): Promise<AsyncDisposable>;
}
