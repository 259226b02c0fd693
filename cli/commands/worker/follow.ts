/**
 * Follows workers until they are where they are wanted, and shows how far each is.
 *
 * The engine is asked every 100 ms; what a worker prints is shown once a phase takes long. All ways
 * to an end meet in {@linkcode followAll}: ready, failed, too late, Ctrl-C.
 *
 * @module
 */
import type { WorkerStatus } from "../../../engine/mod.ts";
import {
  describeFailure,
  EXIT_DONE,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_NOT_READY,
  EXIT_NOT_UNDERSTOOD,
  ExitWith,
} from "../../failure.ts";
import { LogTail } from "./logs.ts";
import type { Progress, ProgressRow } from "../../progress.ts";
import { printable, renderDuration } from "../../render.ts";
import type { EngineLine, Terminal } from "../../terminal.ts";
import {
  failureOf,
  fits,
  isRenewed,
  phaseOf,
  readyOf,
  renderReady,
  standOf,
  type Wish,
} from "./view.ts";

/** Longest time until the engine answers that it will do something to a worker. */
export const ANSWER_MS_MAX = 120_000;

const POLL_MS = 100;
/** Dependencies that are there already need less; an installation is worth a line after it. */
const CHECK_MS = 200;
/** A phase is quick until then; after it, what is printed is shown. */
const QUIET_MS = 3_000;
/** Time between two looks at what is printed. */
const LOOK_MS = 300;
/** A state from before the request may still show for so long. */
const STALE_MS = 1_000;

/** Something that ends. */
export interface Followed {
  /** Its name, for people. */
  readonly name: string;
  /** What the command ends with if nothing else happens; `undefined` while it goes on. */
  readonly exitCode: number | undefined;
  /** The engine has been told; Ctrl-C changes nothing about it any more. */
  readonly isAsked: boolean;
  /** Looks how far it is. */
  poll(): Promise<void>;
  /** It has taken too long. */
  giveUp(timeoutMs: number): void;
}

/** Whom to follow, and to where. */
export interface Following {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  readonly row: ProgressRow;
  /** Name of the worker. */
  readonly name: string;
  /** Where it is wanted. */
  readonly goal: "ready" | "stopped";
  /** How it was before the request: only what was started after that counts. */
  readonly before?: WorkerStatus | undefined;
  /** `all`: none of what ran before may be left. Default: one start is enough. */
  readonly renewed?: "one" | "all";
  /** It may be that nothing has to be started: after a second of rest that is taken for so. */
  readonly mayRest?: boolean;
  /** What it is to be when it is ready. */
  readonly wish?: Wish;
}

/** One worker on its way. */
export class FollowedWorker implements Followed {
  readonly isAsked = true;
  readonly #following: Following;
  readonly #log: LogTail;
  #exitCode: number | undefined;
  #last: WorkerStatus | undefined;
  #phase = "";
  #phaseSinceMs: number;
  #movedAtMs: number;
  #installMs: number | undefined;
  #lookedAtMs = -Infinity;
  #hasSaidDependencies = false;
  #hasShownLines = false;

  constructor(following: Following) {
    this.#following = following;
    this.#log = new LogTail(following.engine, following.name);
    this.#phaseSinceMs = following.terminal.now();
    this.#movedAtMs = this.#phaseSinceMs;
  }

  get name(): string {
    return this.#following.name;
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
    const { engine, terminal, goal, before, wish = {} } = this.#following;
    const status = await statusOf(engine, this.name);
    if (this.#exitCode !== undefined) return; // Given up while it was asked.
    this.#last = status;
    const now = terminal.now();
    const stand = standOf(status);
    if (stand === "moving") this.#movedAtMs = now;
    if (goal === "stopped" && status.state !== "stopping") return this.#stopped(status);
    if (goal === "ready" && stand !== "moving") {
      const isDone = this.#isNew(status) && (stand === "ended" || fits(status, wish));
      if (isDone) return stand === "ready" ? this.#ready(status) : await this.#fail(status);
      // Given up: what ran before goes on, or nothing has come of the request.
      const isOver = stand === "ended" || status.launch > (before?.launch ?? Infinity);
      if (isOver && now - this.#movedAtMs > STALE_MS) return await this.#fail(status);
    }
    if (stand === "moving") this.#show(status);
    await this.#look(status);
  }

  giveUp(timeoutMs: number): void {
    const what = this.#standing();
    const message = `error: ${this.name} ${what} after ${renderDuration(timeoutMs)}; ` +
      `see: engine worker status ${this.name}`;
    this.#end(EXIT_NOT_READY, what.replace(/^is /, ""), { err: [message] });
  }

  /** Where it is when it should be at its goal. */
  #standing(): string {
    const last = this.#last;
    if (last?.state !== "ready") return `is still ${last?.state ?? "on its way"}`;
    if (standOf(last) !== "ready") return `has ${readyOf(last)} replicas ready`;
    return this.#following.goal === "ready" ? "still runs as before" : "is still ready";
  }

  #isNew(status: WorkerStatus): boolean {
    const { before, renewed = "one", mayRest = false, terminal } = this.#following;
    if (!before) return true;
    if (mayRest && terminal.now() - this.#movedAtMs > STALE_MS) return true;
    return renewed === "all" ? isRenewed(before, status) : status.launch > before.launch;
  }

  #ready(status: WorkerStatus): void {
    this.#enter("");
    const warning = status.kind === "directory" ? status.reason : null;
    const installed = this.#installMs !== undefined && status.dependencies === "installed";
    const facts = [
      ...installed ? ["dependencies installed"] : [],
      ...warning === null ? [] : [warning],
    ];
    if (installed) this.#sayInstalled();
    this.#end(EXIT_DONE, ["ready", ...facts].join(", "), {
      out: [renderReady(status)],
      err: warning === null ? [] : [printable(`${this.name}  ${warning}`)],
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
    // Lines that were shown on their way are not shown again.
    if (this.#hasShownLines) await this.#showLines();
    const tail = this.#hasShownLines && this.#following.row.keepsLines ? [] : status.tail;
    this.#end(EXIT_FAILED, status.state === "ready" ? "failed" : status.state, {
      err: [...tail.map((line) => printable(`  | ${line}`)), `error: ${failureOf(status)}`],
    });
  }

  #end(exitCode: number, summary: string, result: Parameters<ProgressRow["done"]>[1]): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = exitCode;
    this.#following.row.done(summary, result);
  }

  /** Shows the phase; that of an installation only when there is something to install. */
  #show(status: WorkerStatus): void {
    const { row, terminal } = this.#following;
    this.#enter(status.state);
    const passed = terminal.now() - this.#phaseSinceMs;
    if (status.state === "installing" && passed < CHECK_MS) return;
    if (status.state === "starting") this.#sayDependencies(status);
    row.phase(phaseOf(status));
  }

  #enter(phase: string): void {
    if (phase === this.#phase) return;
    const now = this.#following.terminal.now();
    if (this.#phase === "installing") this.#installMs = now - this.#phaseSinceMs;
    this.#phase = phase;
    this.#phaseSinceMs = now;
  }

  #sayDependencies({ dependencies }: WorkerStatus): void {
    if (dependencies === "installed") this.#sayInstalled();
    if (dependencies === "cached" && !this.#hasSaidDependencies) {
      this.#following.row.phase("dependencies unchanged, the cached ones are used");
    }
    this.#hasSaidDependencies = true;
  }

  #sayInstalled(): void {
    if (this.#hasSaidDependencies || this.#installMs === undefined) return;
    this.#hasSaidDependencies = true;
    this.#following.row.phase(`dependencies installed in ${renderDuration(this.#installMs)}`);
  }

  /** What it prints, once a phase takes long. */
  async #look(status: WorkerStatus): Promise<void> {
    const now = this.#following.terminal.now();
    if (status.kind === "builtin" || now - this.#lookedAtMs < LOOK_MS) return;
    const isFirst = this.#lookedAtMs === -Infinity;
    if (!isFirst && now - this.#phaseSinceMs < QUIET_MS) return;
    this.#lookedAtMs = now;
    if (isFirst) return void await this.#log.next(0); // Earlier runs are not of interest.
    await this.#showLines();
  }

  async #showLines(): Promise<void> {
    for (const line of await this.#log.next(0)) {
      this.#hasShownLines = true;
      this.#following.row.printed(line.replace(/^\d\S*Z (?:out|err) /, ""));
    }
  }
}

/** What {@linkcode followAll} needs besides those it follows. */
export interface FollowAllOptions {
  readonly terminal: Terminal;
  readonly progress: Progress;
  /** After so many milliseconds what still goes on is given up. */
  readonly timeoutMs: number;
  /** Ctrl-C. */
  readonly signal: AbortSignal;
}

/**
 * Returns when all have come to their end, and all of them well.
 *
 * @throws {ExitWith} 1 when one failed, 3 when one took too long, 130 after Ctrl-C; all that there
 * is to say has been said, or is in it.
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
      polls.catch(() => {}); // After Ctrl-C nobody wants to know.
      await Promise.race([polls, aborted.promise]);
      if (terminal.now() - began >= timeoutMs) open().forEach((each) => each.giveUp(timeoutMs));
      progress.tick();
      if (open().length > 0) await terminal.wait(POLL_MS, signal);
    }
  } finally {
    signal.removeEventListener("abort", stop);
    progress.end();
  }
  if (signal.aborted && open().length > 0) throw interrupted(open());
  const worst = [EXIT_FAILED, EXIT_NOT_UNDERSTOOD, EXIT_NOT_READY].find((code) =>
    followed.some(({ exitCode }) => exitCode === code)
  );
  if (worst !== undefined) throw new ExitWith(worst);
}

/** Asks the engine how a worker fares. */
export async function statusOf(engine: EngineLine, name: string): Promise<WorkerStatus> {
  return await engine.call("engine::supervisor::status", { name }) as unknown as WorkerStatus;
}

/** What is said after Ctrl-C of those that had not come to their end. */
export function interrupted(
  open: readonly Pick<Followed, "name" | "isAsked">[],
): ExitWith {
  const asked = open.filter(({ isAsked }) => isAsked).map(({ name }) => name);
  const others = open.filter(({ isAsked }) => !isAsked).map(({ name }) => name);
  const look = asked.length === 1 ? `engine worker status ${asked[0]}` : "engine worker list";
  return new ExitWith(EXIT_INTERRUPTED, [
    ...asked.length === 0
      ? []
      : [`interrupted; the engine goes on with ${asked.join(", ")}; see: ${look}`],
    ...others.length === 0 ? [] : [`interrupted before it was added: ${others.join(", ")}`],
  ]);
}
