/**
 * Says why a function or a trigger type is not there: which worker would provide it, why that does
 * not, and the command that helps.
 *
 * Built-in workers say what they offer (`offers`), so that one that was never added is known as
 * well. Of workers that are directories, the functions are known that they had before they went
 * away. Everything is read at the moment of the question; nothing here waits.
 *
 * @module
 */
import type { Absence, Absences } from "./ports/absences.ts";
import type { KnownWorker } from "./ports/config.ts";
import type { WorkerStatus } from "./ports/supervision.ts";
import { DEFAULT_NAMESPACE } from "../sdk/typescript/wire/protocol.ts";

/** Characters of a worker's own reason in one sentence. */
const REASON_CHARS_MAX = 200;

/** A built-in worker; see `BuiltinWorker.kept`. */
type OfferingWorker = KnownWorker & { readonly kept?: string };

/** What {@linkcode EngineAbsences} asks. */
export interface AbsencesOptions {
  /** All workers that come with the engine. */
  readonly known: readonly OfferingWorker[];
  /** State of a built-in; `undefined`: the configuration does not name it. */
  builtin(name: string): Pick<WorkerStatus, "state" | "reason"> | undefined;
  /** Whether some engine offers the function now. */
  isOffered(function_id: string): boolean;
  /** In a cluster: whether some engine will keep the state in a moment. */
  isKeeperExpected(): boolean;
  /** In a cluster: whether one of the engines keeps the state for all. */
  isKeptTogether?(): boolean;
  /** In a cluster: name of the engine that keeps the state, if there is one that is linked. */
  keeperName?(): string | undefined;
  /** In a cluster: whether the other engines cannot be reached. */
  isClusterAway?(): boolean;
  /** Why a function of a worker that is a directory is not there. */
  directoryWorker(function_id: string, namespace: string): Absence | undefined;
}

/** The {@linkcode Absences} of one engine. */
export class EngineAbsences implements Absences {
  readonly triggerTypes: readonly string[];
  readonly #options: AbsencesOptions;

  constructor(options: AbsencesOptions) {
    this.#options = options;
    this.triggerTypes = options.known.flatMap(({ offers }) => offers?.triggerTypes ?? []);
  }

  ofFunction(function_id: string, namespace: string): Absence | undefined {
    const lost = this.#options.directoryWorker(function_id, namespace);
    if (lost || namespace !== DEFAULT_NAMESPACE) return lost;
    const worker = this.#workerOf(function_id);
    return worker && (this.#keptAbsence(worker) ?? this.#builtinAbsence(worker.name));
  }

  /** Of a worker that would run here, or serve clients here, if an engine kept the state. */
  #keptAbsence({ name, kept }: OfferingWorker): Absence | undefined {
    const { isOffered, isKeptTogether, keeperName, builtin } = this.#options;
    if (kept === undefined || !isKeptTogether?.() || isOffered(kept)) return undefined;
    const state = builtin(name)?.state;
    if (state !== "queued" && state !== "ready") return undefined;
    const keeper = keeperName?.();
    const reason = keeper === undefined
      ? `no engine of the cluster keeps the state of ${name} now`
      : `engine ${keeper} keeps the state and does not run ${name}, which all engines need`;
    return { reason, worker: name, command: "engine cluster status" };
  }

  #workerOf(function_id: string): OfferingWorker | undefined {
    return this.#options.known.find(({ offers }) =>
      offers?.functions?.some((pattern) => fitsPattern(function_id, pattern))
    );
  }

  isExpected(function_id: string, namespace: string): boolean {
    if (namespace !== DEFAULT_NAMESPACE || !this.#options.isKeeperExpected()) return false;
    const worker = this.#workerOf(function_id);
    if (worker?.kept === undefined || this.#options.isOffered(worker.kept)) return false;
    // Stopped by hand, failed, or not in the configuration: nothing comes. One that is ready serves
    // clients here while its state is at another engine.
    const state = this.#options.builtin(worker.name)?.state;
    return ["queued", "starting", "stopping", "ready"].includes(state!);
  }

  isClusterAway(): boolean {
    return this.#options.isClusterAway?.() ?? false;
  }

  ofTriggerType(id: string, namespace: string): Absence | undefined {
    if (namespace !== DEFAULT_NAMESPACE) return undefined;
    const worker = this.#options.known.find(({ offers }) => offers?.triggerTypes?.includes(id));
    return worker && this.#builtinAbsence(worker.name);
  }

  #builtinAbsence(worker: string): Absence | undefined {
    const status = this.#options.builtin(worker);
    const start = `engine worker start ${worker}`;
    switch (status?.state) {
      case undefined: {
        const command = `engine worker add ${worker}`;
        return { reason: `${worker} provides it, which is not in config.yaml`, worker, command };
      }
      case "ready":
        return undefined;
      case "failed": {
        const why = status.reason === null ? "" : `: ${status.reason.slice(0, REASON_CHARS_MAX)}`;
        return { reason: `worker ${worker} has failed${why}`, worker, command: start };
      }
      case "stopped":
        return { reason: `worker ${worker} is stopped`, worker, command: start };
      default:
        return { reason: `worker ${worker} is ${status!.state}`, worker };
    }
  }
}

/** Whether an id is the pattern, or begins as one that ends with `*`. */
function fitsPattern(id: string, pattern: string): boolean {
  return pattern.endsWith("*") ? id.startsWith(pattern.slice(0, -1)) : id === pattern;
}
