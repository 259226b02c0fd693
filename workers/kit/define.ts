/**
 * What a built-in worker is, and what the engine provides to it.
 *
 * A built-in is a worker like any other: it gets a {@linkcode Worker} on a local connection. It has
 * no private API; what it uses beyond that is a field of {@linkcode EngineHost}, visible to all.
 *
 * @module
 */
import type { Absence } from "../../engine/ports/absences.ts";
import type { Clock } from "../../engine/ports/clock.ts";
import type { Channels } from "../../engine/ports/channels.ts";
import type { ConfigValue, KnownWorker } from "../../engine/ports/config.ts";
import type {
  Accept,
  PageAnswer,
  PageRequest,
  Refusal,
  Upgrade,
} from "../../engine/ports/connection.ts";
import type { Directory, Engines } from "../../engine/ports/directory.ts";
import type { EventListener } from "../../engine/ports/events.ts";
import type { Firings } from "../../engine/ports/firings.ts";
import type { SocketBounds } from "../../engine/ports/listen.ts";
import type { Keeping } from "../../engine/ports/keeping.ts";
import type { EngineLogListener, Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type { Schemas } from "../../engine/ports/schemas.ts";
import type { Store } from "../../engine/ports/store.ts";
import type { Endpoint, Supervision } from "../../engine/ports/supervision.ts";
import type {
  CallTraces,
  Meters,
  PrintListener,
  TelemetryListener,
} from "../../engine/ports/telemetry.ts";
import type { Turns } from "../../engine/ports/turns.ts";
import type { WebSockets } from "../../engine/ports/web_sockets.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";

/** How long running calls may take to finish when the engine stops. */
export const DRAIN_MS = 5_000;

/** What the process provides to any worker in it, the engine's or the CLI's. */
export interface Host {
  readonly clock: Clock;
  readonly log: Log;
  /** Registers an address that the worker serves now, until the worker ends. */
  serves(endpoint: Endpoint): void;
  /** Aborted when the worker has to end. */
  readonly signal: AbortSignal;
}

/** What the engine provides to its built-in workers besides. */
export interface EngineHost extends Host {
  /** Aborted when the engine begins to stop: running requests may finish, new ones are refused. */
  readonly draining: AbortSignal;
  /** The stopping engine waits for `work` too, as it does for running calls; never rejects. */
  delayStop(work: Promise<void>): void;
  /** How many sockets its port may have open at once. */
  readonly socketBounds: SocketBounds;
  readonly store: Store;
  /** Checks values by JSON Schemas. */
  readonly schemas: Schemas;
  /** The memory that bodies, queues and recordings share with the rest of the process. */
  readonly memory: MemoryBudget;
  readonly channels: Channels;
  /** Makes WebSockets of connections to a port of its own. */
  readonly webSockets: WebSockets;
  readonly directory: Directory;
  /** Why no worker offers a function; `undefined`: none is known that would. */
  absenceOf(function_id: string, namespace: string): Absence | undefined;
  /** The engines of the cluster; absent: this engine is alone. */
  readonly engines?: Engines | undefined;
  /** Turns on the thread, for work in parts. */
  readonly turns: Turns;
  /** Calls for one event to the functions of many triggers. */
  readonly firings: Firings;
  /** Work that runs in one place at a time. */
  readonly keeping: Keeping;
  readonly supervision: Supervision;
  /** Calls the listener with every event from now on; call the result to stop. */
  onEvent(listener: EventListener): () => void;
  /** The calls that were recorded, and what to record. */
  readonly traces: CallTraces;
  /** Counts of all calls. */
  readonly meters: Meters;
  /** Calls the listener with telemetry that workers send; call the result to stop. */
  onTelemetry(listener: TelemetryListener): () => void;
  /** Calls the listener with lines that supervised workers print; call the result to stop. */
  onPrint(listener: PrintListener): () => void;
  /** Calls the listener with lines of the engine's own log; call the result to stop. */
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
  /**
   * Serves upgrades of a path of the worker port, such as `/stream`; call the result to stop. They
   * passed the check of their origin and, except for `open` ones, that of their token.
   *
   * @throws {Error} When the path is taken.
   */
  serveSockets(
    path: string,
    accept: (upgrade: Upgrade) => Refusal | Accept,
    options?: { readonly open?: boolean },
  ): () => void;
  /** The effective configuration. */
  configuration(): readonly ConfigValue[];
}

/** A worker that comes with the engine. */
export interface BuiltinWorker<Config = unknown> extends KnownWorker {
  /** One line for listings. */
  readonly summary: string;
  /** The same of a configuration, where that changes what users have to know. */
  summaryOf?(config: Config): string;
  /** @throws {SchemaError} With every problem. */
  parse(raw: unknown): Config;
  /**
   * In a cluster it runs only at the engine that keeps the state, and the others reach it there.
   * The id of a function by which they know that it runs.
   */
  readonly kept?: string;
  /** It may manage workers, as the user's own command line may. Default: no. */
  readonly operator?: boolean;
  /** Registers its functions; the result undoes what closing the connection does not undo. */
  start(worker: Worker, config: Config, host: EngineHost): Promise<AsyncDisposable>;
  /**
   * In its place, where it is `kept` and another engine keeps the state. Default: nothing runs.
   */
  startElsewhere?(worker: Worker, config: Config, host: EngineHost): Promise<AsyncDisposable>;
}
