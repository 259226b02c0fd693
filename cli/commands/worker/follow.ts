/**
 * Follows workers until they reach the desired state, and shows their progress.
 *
 * The engine is asked for their status every 100 ms; the output of a worker is shown once a phase
 * takes long. {@linkcode followAll} decides how the command ends: ready, failed, too late, Ctrl-C.
 *
 * @module
 */
import type { WorkerState, WorkerStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import {
  describeFailure,
  EXIT_DONE,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_NOT_READY,
  EXIT_NOT_UNDERSTOOD,
  ExitWith,
} from "../../failure.ts";
import type { Progress, ProgressRow } from "../../progress.ts";
import { printable, renderDuration } from "../../render.ts";
import type { Terminal } from "../../terminal.ts";
import { LogTail } from "./logs.ts";
import { readInactiveTriggers, renderInactiveTriggers } from "./diagnosis.ts";
import { failureOf, isSummary, phaseOf, readyOf, renderReady } from "./view.ts";

/** How long the engine may take to accept a request about a worker. */
export const ANSWER_MS_MAX = 120_000;

const POLL_MS = 100;
/** A check of installed dependencies takes less; a longer one is an installation and is shown. */
const CHECK_MS = 200;
/** After this time in one phase the worker's output is shown. */
const QUIET_MS = 3_000;
/** Time between two reads of the output. */
const OUTPUT_MS = 300;
/** How long the engine may report a state from before the request. */
const STALE_MS = 1_000;

/** A worker that is followed. */
export interface Followed {
  readonly name: string;
  /** Exit code that its outcome stands for; `undefined` while it is on its way. */
  readonly exitCode: number | undefined;
  /** Whether the engine has got the request, which Ctrl-C does not take back. */
  readonly isRequested: boolean;
  /** Asks for its status and shows it. */
  poll(): Promise<void>;
  /** Ends following it after the timeout. */
  giveUp(timeoutMs: number): void;
}

/** Which worker to follow, and until when. */
export interface FollowOptions {
  readonly engine: EngineConnection;
  readonly terminal: Terminal;
  readonly row: ProgressRow;
  /** Name of the worker. */
  readonly name: string;
  readonly goal: "ready" | "stopped";
  /** Its status before the request: only replicas that were started after it count. */
  readonly before?: WorkerStatus | undefined;
  /** How many replicas the request starts anew. Default: one. */
  readonly renewed?: "one" | "all";
  /** The request may start nothing, which is assumed after a second without a change. */
  readonly mayBeUnchanged?: boolean;
  /** What it must be to count as ready. */
  readonly desired?: DesiredWorker;
}

/** A worker that the engine knows. */
export class FollowedWorker implements Followed {
  readonly isRequested = true;
  readonly #options: FollowOptions;
  readonly #log: LogTail;
  #exitCode: number | undefined;
  #last: WorkerStatus | undefined;
  #phase = "";
  #phaseSinceMs: number;
  #movedAtMs: number;
  #installMs: number | undefined;
  #outputAtMs = -Infinity;
  #hasSaidDependencies = false;
  #hasShownLines = false;

  constructor(following: FollowOptions) {
    this.#options = following;
    this.#log = new LogTail(following.engine, following.name);
    this.#phaseSinceMs = following.terminal.now();
    this.#movedAtMs = this.#phaseSinceMs;
  }

  get name(): string {
    return this.#options.name;
  }

  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  async poll(): Promise<void> {
    try {
      await this.#poll();
    } catch (thrown) {
      if ((thrown as { code?: unknown }).code !== "NOT_FOUND") throw thrown;
      this.#end(EXIT_FAILED, "removed meanwhile", { err: describeFailure(thrown).lines });
    }
  }

  async #poll(): Promise<void> {
    const { engine, terminal, goal, before, desired = {} } = this.#options;
    const status = await statusOf(engine, this.name);
    if (this.#exitCode !== undefined) return; // Given up during the call.
    this.#last = status;
    const now = terminal.now();
    const stand = stageOf(status);
    if (stand === "moving") this.#movedAtMs = now;
    if (goal === "stopped" && status.state !== "stopping") return this.#stopped(status);
    if (goal === "ready" && stand !== "moving") {
      const isDone = this.#isNew(status) && (stand === "ended" || isAsDesired(status, desired));
      if (isDone) return await (stand === "ready" ? this.#ready(status) : this.#fail(status));
      // The engine gave up: the old replicas keep running, or the request had no effect.
      const isOver = stand === "ended" || status.launch > (before?.launch ?? Infinity);
      if (isOver && now - this.#movedAtMs > STALE_MS) return await this.#fail(status);
    }
    if (stand === "moving") this.#show(status);
    else if (/^Its new version/.test(status.reason ?? "")) this.#options.row.phase(status.reason!);
    await this.#showOutput(status);
  }

  giveUp(timeoutMs: number): void {
    const what = this.#stageText();
    const message = `error: ${this.name} ${what} after ${renderDuration(timeoutMs)}; ` +
      `see: engine worker status ${this.name}`;
    this.#end(EXIT_NOT_READY, what.replace(/^is /, ""), { err: [message] });
  }

  /** Its state when the timeout has passed. */
  #stageText(): string {
    const last = this.#last;
    if (last?.state !== "ready") return `is still ${last?.state ?? "on its way"}`;
    if (stageOf(last) !== "ready") return `has ${readyOf(last)} replicas ready`;
    return this.#options.goal === "ready" ? "still runs as before" : "is still ready";
  }

  #isNew(status: WorkerStatus): boolean {
    const { before, renewed = "one", mayBeUnchanged = false, terminal } = this.#options;
    if (!before) return true;
    if (mayBeUnchanged && terminal.now() - this.#movedAtMs > STALE_MS) return true;
    return renewed === "all" ? isRenewed(before, status) : status.launch > before.launch;
  }

  async #ready(status: WorkerStatus): Promise<void> {
    const triggers = await readInactiveTriggers(this.#options.engine, status);
    if (this.#exitCode !== undefined) return; // Given up during the call.
    this.#enter("");
    const warning = isSummary(status) ? null : status.reason;
    const installed = this.#installMs !== undefined && status.dependencies === "installed";
    const facts = [
      ...installed ? ["dependencies installed"] : [],
      ...warning === null ? [] : [warning],
    ];
    if (installed) this.#sayInstalled();
    this.#end(EXIT_DONE, ["ready", ...facts].join(", "), {
      out: [renderReady(status)],
      err: [
        ...warning === null ? [] : [printable(`${this.name}  ${warning}`)],
        ...renderInactiveTriggers(triggers).map((line) => `${this.name}  ${line}`),
      ],
    });
  }

  #stopped({ name, state, last_exit }: WorkerStatus): void {
    if (state !== "stopped" && state !== "failed") {
      const message = `error: ${name} is ${state}: it was started meanwhile; ` +
        `see: engine worker status ${name}`;
      return this.#end(EXIT_FAILED, "started meanwhile", { err: [printable(message)] });
    }
    const text = printable(`${name} is ${state}${last_exit === null ? "" : ` (${last_exit})`}`);
    this.#end(EXIT_DONE, state, { out: [text] });
  }

  async #fail(status: WorkerStatus): Promise<void> {
    // Lines that are visible already are not shown again.
    if (this.#hasShownLines) await this.#showLines();
    const tail = this.#hasShownLines && this.#options.row.keepsLines ? [] : status.tail;
    this.#end(EXIT_FAILED, status.state === "ready" ? "failed" : status.state, {
      err: [...tail.map((line) => printable(`  | ${line}`)), `error: ${failureOf(status)}`],
    });
  }

  #end(exitCode: number, summary: string, result: Parameters<ProgressRow["done"]>[1]): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = exitCode;
    this.#options.row.done(summary, result);
  }

  /** Shows the phase; an installation only when there is something to install. */
  #show(status: WorkerStatus): void {
    const { row, terminal } = this.#options;
    this.#enter(status.state);
    const passed = terminal.now() - this.#phaseSinceMs;
    if (status.state === "installing" && passed < CHECK_MS) return;
    if (status.state === "starting") this.#sayDependencies(status);
    row.phase(phaseOf(status));
  }

  #enter(phase: string): void {
    if (phase === this.#phase) return;
    const now = this.#options.terminal.now();
    if (this.#phase === "installing") this.#installMs = now - this.#phaseSinceMs;
    this.#phase = phase;
    this.#phaseSinceMs = now;
  }

  #sayDependencies({ dependencies }: WorkerStatus): void {
    if (dependencies === "installed") this.#sayInstalled();
    if (dependencies === "cached" && !this.#hasSaidDependencies) {
      this.#options.row.phase("dependencies unchanged, the cached ones are used");
    }
    this.#hasSaidDependencies = true;
  }

  #sayInstalled(): void {
    if (this.#hasSaidDependencies || this.#installMs === undefined) return;
    this.#hasSaidDependencies = true;
    this.#options.row.phase(`dependencies installed in ${renderDuration(this.#installMs)}`);
  }

  /** Shows its output once a phase takes long. */
  async #showOutput(status: WorkerStatus): Promise<void> {
    const now = this.#options.terminal.now();
    if (status.kind === "builtin" || now - this.#outputAtMs < OUTPUT_MS) return;
    const isFirst = this.#outputAtMs === -Infinity;
    if (!isFirst && now - this.#phaseSinceMs < QUIET_MS) return;
    this.#outputAtMs = now;
    if (isFirst) return void await this.#log.next(0); // Skips the output of earlier runs.
    await this.#showLines();
  }

  async #showLines(): Promise<void> {
    for (const line of await this.#log.next(0)) {
      this.#hasShownLines = true;
      this.#options.row.printed(line.replace(/^\d\S*Z (?:out|err) /, ""));
    }
  }
}

/** What {@linkcode followAll} needs besides the workers. */
export interface FollowAllOptions {
  readonly terminal: Terminal;
  readonly progress: Progress;
  /** After this time, workers that are still on their way are given up. */
  readonly timeoutMs: number;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * Follows workers until each has succeeded.
 *
 * @throws {ExitWith} 1 when one failed, 3 when one took too long, 130 after Ctrl-C. All messages
 * have been printed, or are in the error.
 */
export async function followAll(
  followed: readonly Followed[],
  { terminal, progress, timeoutMs, signal }: FollowAllOptions,
): Promise<void> {
  const began = terminal.now();
  const open = (): Followed[] => followed.filter(({ exitCode }) => exitCode === undefined);
  const aborted = Promise.withResolvers<void>();
  const stop = (): void => aborted.resolve();
  signal.addEventListener("abort", stop);
  try {
    while (open().length > 0 && !signal.aborted) {
      const polls = Promise.all(open().map((each) => each.poll()));
      polls.catch(() => {}); // A failure after Ctrl-C is of no interest.
      await Promise.race([polls, aborted.promise]);
      if (terminal.now() - began >= timeoutMs) open().forEach((each) => each.giveUp(timeoutMs));
      progress.tick();
      if (open().length > 0) await terminal.wait(POLL_MS, signal);
    }
  } finally {
    signal.removeEventListener("abort", stop);
    progress.end();
  }
  if (signal.aborted && open().length > 0) throw interruptedError(open());
  const worst = [EXIT_FAILED, EXIT_NOT_UNDERSTOOD, EXIT_NOT_READY].find((code) =>
    followed.some(({ exitCode }) => exitCode === code)
  );
  if (worst !== undefined) throw new ExitWith(worst);
}

/** Asks the engine for the status of a worker. */
export async function statusOf(engine: EngineConnection, name: string): Promise<WorkerStatus> {
  return await engine.call("engine::supervisor::status", { name }) as unknown as WorkerStatus;
}

/** The failure after Ctrl-C, with the workers that were still on their way. */
export function interruptedError(
  open: readonly Pick<Followed, "name" | "isRequested">[],
): ExitWith {
  const asked = open.filter(({ isRequested }) => isRequested).map(({ name }) => name);
  const others = open.filter(({ isRequested }) => !isRequested).map(({ name }) => name);
  const hint = asked.length === 1 ? `engine worker status ${asked[0]}` : "engine worker list";
  return new ExitWith(EXIT_INTERRUPTED, [
    ...asked.length === 0
      ? []
      : [`interrupted; the engine continues with ${asked.join(", ")}; see: ${hint}`],
    ...others.length === 0 ? [] : [`interrupted before it was added: ${others.join(", ")}`],
  ]);
}

/** Whether a worker is ready, on its way, or has ended. */
export type Stage = "ready" | "moving" | "ended";

/** The stage of a worker, which is ready when all its replicas are. */
export function stageOf({ state, replicas }: WorkerStatus): Stage {
  if (isMoving(state)) return "moving";
  if (state !== "ready") return "ended";
  const others = replicas.filter((replica) => replica.state !== "ready");
  if (others.length === 0) return "ready";
  return others.some((replica) => isMoving(replica.state)) ? "moving" : "ended";
}

/** Properties that a worker must have; those left out may have any value. */
export type DesiredWorker =
  & {
    readonly [Key in "isolation" | "accelerator"]?: NonNullable<WorkerStatus[Key]>;
  }
  & { readonly replicas?: number };

/** Whether a worker runs with the desired properties. */
export function isAsDesired(
  status: WorkerStatus,
  { isolation, accelerator, replicas }: DesiredWorker,
): boolean {
  return (isolation === undefined || status.isolation === isolation) &&
    (accelerator === undefined || status.isolation === "process" ||
      status.accelerator === accelerator) &&
    (replicas === undefined || status.replicas.length === replicas);
}

/** Whether no replica from before is left. */
export function isRenewed(before: WorkerStatus, now: WorkerStatus): boolean {
  return now.launch > before.launch &&
    !before.replicas.some((old) =>
      now.replicas.some((replica) =>
        replica.number === old.number && replica.started_at_ms !== null &&
        replica.started_at_ms === old.started_at_ms
      )
    );
}

function isMoving(state: WorkerState): boolean {
  return state === "queued" || state === "installing" || state === "starting" ||
    state === "stopping";
}
