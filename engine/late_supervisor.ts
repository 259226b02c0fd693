/**
 * The supervisor before there is one.
 *
 * Workers that are directories need a third of the engine's files. They are read when the first
 * such worker is listed or added: an engine without any listens sooner and is smaller.
 *
 * @module
 */
import type { NewWorker, NewWorkerRequest } from "./install/prepare.ts";
import type { Supervisor } from "./supervisor/supervisor.ts";
import type { DirectoryEntry } from "./ports/config.ts";
import type { EngineEvent } from "./ports/events.ts";
import type { Ended, OutputChunk } from "./ports/launcher.ts";
import type { ExecRequest, WorkerStatus } from "./ports/supervision.ts";
import type { SupervisionOptions, SupervisionParts } from "./supervision.ts";

/** Reads the files. */
type Load = () => Promise<Pick<typeof import("./supervision.ts"), "createSupervision">>;

/** {@linkcode Supervisor}, loaded with the first worker; the methods are those of that. */
export class LateSupervisor {
  readonly #load: () => Promise<SupervisionParts>;
  #loading: Promise<SupervisionParts> | undefined;
  /** There once it is loaded. */
  #supervisor: Supervisor | undefined;

  /** Loads nothing yet; a test may load something else. */
  constructor(options: SupervisionOptions, load: Load = () => import("./supervision.ts")) {
    this.#load = async () => {
      const parts = (await load()).createSupervision(options);
      this.#supervisor = parts.supervisor;
      return parts;
    };
  }

  /** As {@linkcode Supervisor.apply}; resolves when it has been told. */
  async apply(entries: readonly DirectoryEntry[]): Promise<void> {
    if (entries.length > 0 || this.#loading) (await this.#loaded()).apply(entries);
  }

  /** As `checkNewWorker` in launch/new_worker.ts. */
  async checkNewWorker(request: NewWorkerRequest): Promise<NewWorker> {
    return await (await this.#parts()).checkNewWorker(request);
  }

  /** As {@linkcode Supervisor.list}. */
  async list(): Promise<WorkerStatus[]> {
    return this.#loading ? await (await this.#loaded()).list() : [];
  }

  /** As {@linkcode Supervisor.status}. */
  async status(name: string): Promise<WorkerStatus> {
    return await (await this.#loaded()).status(name);
  }

  /** As {@linkcode Supervisor.start}. */
  async start(name: string): Promise<WorkerStatus> {
    return await (await this.#loaded()).start(name);
  }

  /** As {@linkcode Supervisor.stop}. */
  async stop(name: string): Promise<WorkerStatus> {
    return await (await this.#loaded()).stop(name);
  }

  /** As {@linkcode Supervisor.restart}. */
  async restart(name: string, options: { readonly reinstall: boolean }): Promise<WorkerStatus> {
    return await (await this.#loaded()).restart(name, options);
  }

  /** As {@linkcode Supervisor.exec}. */
  async exec(
    request: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    return await (await this.#loaded()).exec(request, output, signal);
  }

  /** As {@linkcode Supervisor.logs}. */
  async logs(name: string, tail: number): Promise<string[]> {
    return await (await this.#loaded()).logs(name, tail);
  }

  /** As {@linkcode Supervisor.onEvent}: without workers there is nobody to hear of it. */
  onEvent(event: EngineEvent): void {
    this.#supervisor?.onEvent(event);
  }

  /** As {@linkcode Supervisor.close}. */
  async close(): Promise<void> {
    if (this.#loading) await (await this.#loaded()).close();
  }

  #parts(): Promise<SupervisionParts> {
    return this.#loading ??= this.#load();
  }

  async #loaded(): Promise<Supervisor> {
    return (await this.#parts()).supervisor;
  }
}
