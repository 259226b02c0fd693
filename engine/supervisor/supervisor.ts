/**
 * Runs the workers that are directories, and keeps them running.
 *
 * It knows which workers there are; how each of them lives is {@linkcode WorkerGroup}'s business. A
 * new list is applied by difference: what did not change is not touched.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { Ended, OutputChunk, Running } from "../ports/launcher.ts";
import type { ExecRequest, WorkerStatus } from "../ports/supervision.ts";
import { ProcessUsageMeter, type UsageMeter } from "../process/usage.ts";
import { watchWorker } from "../watch/worker_watch.ts";
import { EXEC_OUTPUT_BYTES_MAX, EXEC_TIMEOUT_MS, STARTS_AT_ONCE_MAX } from "./limits.ts";
import { StartSlots } from "./abortable.ts";
import { type GroupTools, WorkerGroup } from "./worker_group.ts";

/** What a {@linkcode Supervisor} works with. */
export type SupervisorOptions =
  & Omit<GroupTools, "slots" | "watch" | "newId">
  & Partial<Pick<GroupTools, "watch" | "newId">>
  & {
    /** Looks at what programs use; a test may put something else in. */
    readonly usageMeter?: UsageMeter;
  };

/** A worker that is no longer listed and has not ended yet. */
interface Leaving {
  readonly group: WorkerGroup;
  /** Settles when nothing of the name runs any more, earlier ones included. */
  readonly gone: Promise<void>;
}

/** The workers of one engine that are directories. */
export class Supervisor {
  readonly #tools: GroupTools;
  readonly #usageMeter: UsageMeter;
  readonly #groups = new Map<string, WorkerGroup>();
  /** By name; one of the same name that comes back waits for them. */
  readonly #leaving = new Map<string, Leaving[]>();

  /** Runs nothing yet. */
  constructor(options: SupervisorOptions) {
    this.#usageMeter = options.usageMeter ?? new ProcessUsageMeter(options.clock);
    this.#tools = {
      watch: watchWorker,
      newId: () => crypto.randomUUID(),
      slots: new StartSlots(STARTS_AT_ONCE_MAX),
      ...options,
    };
  }

  /** Makes what runs equal to a list; returns at once, the rest happens in the background. */
  apply(entries: readonly DirectoryEntry[]): void {
    const names = new Set(entries.map(({ name }) => name));
    for (const [name, group] of this.#groups) if (!names.has(name)) this.#remove(name, group);
    for (const entry of entries) {
      const group = this.#groups.get(entry.name);
      if (!group) this.#add(entry);
      else if (JSON.stringify(group.entry) !== JSON.stringify(entry)) group.update(entry);
    }
  }

  /** Whether there is a worker of this name. */
  has(name: string): boolean {
    return this.#groups.has(name);
  }

  /** All workers, in the order in which they were added, each claim checked now. */
  async list(): Promise<WorkerStatus[]> {
    const pids = [...this.#groups.values()].flatMap((group) => group.pids);
    const usages = await this.#usageMeter.measure(pids);
    return [...this.#groups.values()].map((group) => group.status(usages));
  }

  /**
   * One worker, each claim checked now.
   *
   * @throws {EngineError} `NOT_FOUND` with the names there are.
   */
  async status(name: string): Promise<WorkerStatus> {
    return await this.#statusOf(this.#group(name));
  }

  /** Wants it to run; clears a `failed`. @throws {EngineError} `NOT_FOUND`. */
  async start(name: string): Promise<WorkerStatus> {
    const group = this.#group(name);
    group.start();
    return await this.#statusOf(group);
  }

  /**
   * Wants it not to run, until start() or the engine's next start.
   *
   * @throws {EngineError} `NOT_FOUND`.
   */
  async stop(name: string): Promise<WorkerStatus> {
    const group = this.#group(name);
    group.stop();
    return await this.#statusOf(group);
  }

  /**
   * Ends it and starts it again, one replica after the other; `reinstall` throws the cached
   * dependencies away first.
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
   * Runs a command beside a worker that runs, for `EXEC_TIMEOUT_MS` at most; how it ended has the
   * reason when a bound ended it.
   *
   * @throws {EngineError} `NOT_FOUND`, `launch_failed`, `INVALID_ARGUMENTS` when it does not run.
   */
  async exec(
    { name, command, replica }: ExecRequest,
    output: (chunk: OutputChunk) => void,
    signal: AbortSignal,
  ): Promise<Ended> {
    const group = this.#group(name);
    if (command.length === 0 || command[0] === "") {
      throw new EngineError("INVALID_ARGUMENTS", `Say which command to run beside ${name}`);
    }
    const bounded = { command, output, signal };
    return await execWithin(group.running(replica), this.#tools.clock, bounded);
  }

  /** The last lines of its log with their times. Rejects with `NOT_FOUND`. */
  async logs(name: string, tail: number): Promise<string[]> {
    return await this.#group(name).logs(tail);
  }

  /** Takes what the core reports. */
  onEvent(event: EngineEvent): void {
    if (event.type === "supervised_changed" || event.type === "config_changed") return; // Our own.
    for (const group of this.#groups.values()) group.onEvent(event);
    for (const { group } of [...this.#leaving.values()].flat()) group.onEvent(event);
  }

  /** Stops all at once, whatever they are doing, and waits until they have ended. */
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

/** What to run, and who hears of it. */
export interface BoundedExec {
  readonly command: readonly string[];
  /** Gets at most `EXEC_OUTPUT_BYTES_MAX` bytes in all. */
  output(chunk: OutputChunk): void;
  /** Aborted: its end is wanted. */
  readonly signal: AbortSignal;
}

/**
 * Runs it to its end; one that a bound ended has the `reason`.
 *
 * @throws {EngineError} `launch_failed`.
 */
export async function execWithin(
  running: Running,
  clock: Clock,
  { command, output, signal }: BoundedExec,
): Promise<Ended> {
  const bound = new AbortController();
  let reason: string | undefined;
  const end = (why: string): void => {
    reason ??= why;
    bound.abort();
  };
  const seconds = EXEC_TIMEOUT_MS / 1_000;
  const cancelTimer = clock.after(EXEC_TIMEOUT_MS, () => end(`took longer than ${seconds} s`));
  let left = EXEC_OUTPUT_BYTES_MAX;
  const take = ({ stream, bytes }: OutputChunk): void => {
    if (left > 0) output({ stream, bytes: bytes.subarray(0, left) });
    left -= bytes.length;
    if (left < 0) end(`printed more than ${EXEC_OUTPUT_BYTES_MAX} bytes`);
  };
  try {
    const ended = await running.exec(command, take, AbortSignal.any([signal, bound.signal]));
    return reason === undefined ? ended : { ...ended, reason };
  } finally {
    cancelTimer();
  }
}
