/**
 * Keeps the workers that are directories in their desired state.
 *
 * The supervisor knows which workers exist; a {@linkcode WorkerGroup} runs each of them. A new list
 * is applied by difference: workers that did not change are not touched.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Absence } from "../ports/absences.ts";
import type { Clock } from "../ports/clock.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { Ended, ExecOptions, OutputChunk, Running } from "../ports/launcher.ts";
import type { ExecRequest, WorkerStatus } from "../ports/supervision.ts";
import { ProcessUsageMeter, type UsageMeter } from "../process/usage.ts";
import { watchWorker } from "../watch/worker_watch.ts";
import { StartSlots } from "./abortable.ts";
import { type GroupTools, WorkerGroup } from "./worker_group.ts";

/** Workers that install or start at the same time. */
const STARTS_AT_ONCE_MAX = 4;
/** How long a command beside a worker may run. */
const EXEC_TIMEOUT_MS = 600_000;
/** How long a terminal may show nothing; what is typed counts where the program echoes it. */
const TTY_SILENT_MS = 3_600_000;
/** What such a command may print. */
export const EXEC_OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** What a {@linkcode Supervisor} works with. */
export type SupervisorOptions =
  & Omit<GroupTools, "slots" | "watch" | "newId">
  & Partial<Pick<GroupTools, "watch" | "newId">>
  & {
    /** Default: measures processes of this machine. */
    readonly usageMeter?: UsageMeter;
  };

/** A worker that is no longer listed and is being stopped. */
interface Leaving {
  readonly group: WorkerGroup;
  /** Settles when it and all earlier workers of its name have ended. */
  readonly gone: Promise<void>;
}

/** The workers of one engine that are directories. */
export class Supervisor {
  readonly #tools: GroupTools;
  readonly #usageMeter: UsageMeter;
  readonly #groups = new Map<string, WorkerGroup>();
  /** By name; a new worker of the same name waits for them. */
  readonly #leaving = new Map<string, Leaving[]>();

  constructor(options: SupervisorOptions) {
    this.#usageMeter = options.usageMeter ?? new ProcessUsageMeter(options.clock);
    this.#tools = {
      watch: watchWorker,
      newId: () => crypto.randomUUID(),
      slots: new StartSlots(STARTS_AT_ONCE_MAX),
      ...options,
    };
  }

  /** Desires exactly these workers. Returns at once; they start and stop in the background. */
  apply(entries: readonly DirectoryEntry[]): void {
    const names = new Set(entries.map(({ name }) => name));
    for (const [name, group] of this.#groups) if (!names.has(name)) this.#remove(name, group);
    for (const entry of entries) {
      const group = this.#groups.get(entry.name);
      if (!group) this.#add(entry);
      else if (JSON.stringify(group.entry) !== JSON.stringify(entry)) group.update(entry);
    }
  }

  /** Whether a worker of this name is listed. */
  has(name: string): boolean {
    return this.#groups.has(name);
  }

  /** The status of all workers, in the order in which they were added, checked now. */
  async list(): Promise<WorkerStatus[]> {
    const pids = [...this.#groups.values()].flatMap((group) => group.pids);
    const usages = await this.#usageMeter.measure(pids);
    return [...this.#groups.values()].map((group) => group.status(usages));
  }

  /**
   * The status of one worker, checked now.
   *
   * @throws {EngineError} `NOT_FOUND` with the names that exist.
   */
  async status(name: string): Promise<WorkerStatus> {
    return await this.#statusOf(this.#group(name));
  }

  /** Desires that a worker runs; retries one that failed. @throws {EngineError} `NOT_FOUND`. */
  async start(name: string): Promise<WorkerStatus> {
    const group = this.#group(name);
    group.start();
    return await this.#statusOf(group);
  }

  /**
   * Desires that a worker does not run, until start() or the engine's next start.
   *
   * @throws {EngineError} `NOT_FOUND`.
   */
  async stop(name: string): Promise<WorkerStatus> {
    const group = this.#group(name);
    group.stop();
    return await this.#statusOf(group);
  }

  /**
   * Restarts a worker, one replica after the other; `reinstall` deletes its cached dependencies
   * first.
   *
   * @throws {EngineError} `NOT_FOUND`.
   */
  async restart(
    name: string,
    { reinstall }: { readonly reinstall: boolean },
  ): Promise<WorkerStatus> {
    const group = this.#group(name);
    group.restart(reinstall);
    return await this.#statusOf(group);
  }

  /**
   * Runs a command beside a running worker. The result has a `reason` when the command was ended
   * because it took longer than `EXEC_TIMEOUT_MS` (in a terminal: showed nothing for
   * `TTY_SILENT_MS`) or printed more than `EXEC_OUTPUT_BYTES_MAX`.
   *
   * @throws {EngineError} `NOT_FOUND`, `launch_failed`, `INVALID_ARGUMENTS` when it does not run.
   */
  async exec(
    { name, command, replica }: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
    options: ExecOptions = {},
  ): Promise<Ended> {
    const group = this.#group(name);
    if (command.length === 0 || command[0] === "") {
      throw new EngineError("INVALID_ARGUMENTS", `Missing command to run beside ${name}`);
    }
    const bounded = { command, output, signal, options };
    return await execWithin(group.running(replica), this.#tools.clock, bounded);
  }

  /** The last lines of its log with their times. Rejects with `NOT_FOUND`. */
  async logs(name: string, tail: number): Promise<string[]> {
    return await this.#group(name).logs(tail);
  }

  /** Why a function is not there that one of the workers offered before. */
  absence(function_id: string, namespace: string): Absence | undefined {
    for (const group of this.#groups.values()) {
      const absence = group.absence(function_id, namespace);
      if (absence) return absence;
    }
    return undefined;
  }

  /** Handles an event of the core. */
  onEvent(event: EngineEvent): void {
    // These two are caused by the supervisor itself.
    if (event.type === "supervised_changed" || event.type === "config_changed") return;
    for (const group of this.#groups.values()) group.onEvent(event);
    for (const { group } of [...this.#leaving.values()].flat()) group.onEvent(event);
  }

  /** Stops all workers at the same time, without waiting for their calls. */
  async close(): Promise<void> {
    for (const [name, group] of this.#groups) this.#remove(name, group);
    const leaving = [...this.#leaving.values()].flat();
    await Promise.all(leaving.map(({ group }) => group.close(true)));
    await Promise.all(leaving.map(({ gone }) => gone));
    const launchers = Object.values(this.#tools.launchers);
    await Promise.all(launchers.map((launcher) => launcher.close?.()));
  }

  #add(entry: DirectoryEntry): void {
    const group = new WorkerGroup(entry, this.#tools, this.#leaving.get(entry.name)?.at(-1)?.gone);
    this.#groups.set(entry.name, group);
    group.start();
  }

  #remove(name: string, group: WorkerGroup): void {
    this.#groups.delete(name);
    const before = this.#leaving.get(name) ?? [];
    const gone = Promise.all([before.at(-1)?.gone, group.close(false)]).then(() => {
      const rest = this.#leaving.get(name)!.filter((leaving) => leaving.group !== group);
      if (rest.length > 0) this.#leaving.set(name, rest);
      else this.#leaving.delete(name);
    });
    this.#leaving.set(name, [...before, { group, gone }]);
    this.#tools.changed?.(name);
  }

  async #statusOf(group: WorkerGroup): Promise<WorkerStatus> {
    return group.status(await this.#usageMeter.measure(group.pids));
  }

  #group(name: string): WorkerGroup {
    const group = this.#groups.get(name);
    if (group) return group;
    const names = [...this.#groups.keys()].join(", ") || "none";
    throw new EngineError("NOT_FOUND", `There is no worker ${name}; there are: ${names}`);
  }
}

/** A command to run within bounds. */
export interface BoundedExec {
  readonly command: readonly string[];
  /** Receives at most `EXEC_OUTPUT_BYTES_MAX` bytes. */
  output(chunk: OutputChunk): void;
  /** Ends the command. */
  readonly signal: AbortSignal;
  readonly options?: ExecOptions;
}

/**
 * Runs a command to its end; the result has a `reason` when a bound ended it.
 *
 * @throws {EngineError} `launch_failed`.
 */
export async function execWithin(
  running: Running,
  clock: Clock,
  { command, output, signal, options = {} }: BoundedExec,
): Promise<Ended> {
  const bound = new AbortController();
  let reason: string | undefined;
  const end = (why: string): void => {
    reason ??= why;
    bound.abort();
  };
  const limit = options.tty
    ? { ms: TTY_SILENT_MS, text: `its terminal was silent for ${TTY_SILENT_MS / 1_000} s` }
    : { ms: EXEC_TIMEOUT_MS, text: `took longer than ${EXEC_TIMEOUT_MS / 1_000} s` };
  const startTimer = (): () => void => clock.after(limit.ms, () => end(limit.text));
  let cancelTimer = startTimer();
  let left = EXEC_OUTPUT_BYTES_MAX;
  const take = ({ stream, bytes }: OutputChunk): void => {
    if (options.tty) {
      cancelTimer();
      cancelTimer = startTimer();
    }
    if (left > 0) output({ stream, bytes: bytes.subarray(0, left) });
    left -= bytes.length;
    if (left < 0) end(`printed more than ${EXEC_OUTPUT_BYTES_MAX} bytes`);
  };
  try {
    const either = AbortSignal.any([signal, bound.signal]);
    const ended = await running.exec(command, take, either, options);
    return reason === undefined ? ended : { ...ended, reason };
  } finally {
    cancelTimer();
  }
}
