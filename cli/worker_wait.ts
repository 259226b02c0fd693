/**
 * Follows a worker while it starts or stops, and says on standard error how far it is.
 *
 * The engine is asked every 100 ms. What an installation prints is shown when it takes long; what
 * a worker printed last is shown when it failed.
 *
 * @module
 */
import type { WorkerState, WorkerStatus } from "../engine/mod.ts";
import { CommandError } from "./failure.ts";
import { LogTail } from "./log_tail.ts";
import { printable, renderDuration } from "./render.ts";
import type { EngineLine, Terminal } from "./terminal.ts";

const POLL_MS = 100;
/** Dependencies that are there already need less; an installation is worth a line after it. */
const CHECK_MS = 200;
/** An installation is quick until then; after it, what it prints is shown. */
const QUIET_INSTALL_MS = 3_000;
/** A state from before the request may still show for so long. */
const STALE_MS = 1_000;

/** Whom to follow, and until when. */
export interface Following {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  /** Name of the worker. */
  readonly name: string;
  /** Give up after so many milliseconds. */
  readonly waitMs: number;
  /** Only a start after this one counts; its number is in the status from before the request. */
  readonly afterLaunch?: number | undefined;
}

/**
 * Waits until the worker is ready and returns its status.
 *
 * @throws {CommandError} It failed, ended, was stopped, or needs longer than `waitMs`.
 */
export async function waitUntilReady(following: Following): Promise<WorkerStatus> {
  const { terminal, name, waitMs } = following;
  const progress = new Progress(following);
  const began = terminal.now();
  let movedAtMs = began;
  for (;;) {
    const status = await statusOf(following.engine, name);
    const now = terminal.now();
    const isNew = following.afterLaunch === undefined || status.launch > following.afterLaunch;
    if (status.state === "ready" && isNew) {
      progress.show(status);
      return status;
    }
    if (isMoving(status.state)) {
      movedAtMs = now;
      progress.show(status);
    } else if (status.state !== "ready" && (isNew || now - movedAtMs > STALE_MS)) {
      if (await progress.showRest()) throw failureOf({ ...status, tail: [] }, terminal);
      throw failureOf(status, terminal);
    }
    if (now - began >= waitMs) throw tooLate(status, waitMs);
    await progress.showInstallation(status);
    await terminal.wait(POLL_MS);
  }
}

/**
 * Waits until the worker has ended and returns its status.
 *
 * @throws {CommandError} It needs longer than `waitMs`.
 */
export async function waitUntilStopped(following: Following): Promise<WorkerStatus> {
  const { terminal, name, waitMs } = following;
  const began = terminal.now();
  for (;;) {
    const status = await statusOf(following.engine, name);
    if (status.state === "stopped" || status.state === "failed") return status;
    if (terminal.now() - began >= waitMs) throw tooLate(status, waitMs);
    await terminal.wait(POLL_MS);
  }
}

/** Asks the engine how a worker fares. */
export async function statusOf(engine: EngineLine, name: string): Promise<WorkerStatus> {
  return await engine.call("engine::supervisor::status", { name }) as unknown as WorkerStatus;
}

function isMoving(state: WorkerState): boolean {
  return state === "queued" || state === "installing" || state === "starting" ||
    state === "stopping";
}

function failureOf(status: WorkerStatus, terminal: Terminal): CommandError {
  for (const line of status.tail) terminal.err(`  | ${printable(line)}`);
  const { name, reason, last_exit } = status;
  const why = reason ?? last_exit ?? "no reason was given";
  const log = status.log_path === null ? "" : `; all it printed: engine worker logs ${name}`;
  if (status.state === "stopped") return new CommandError(`${name} was stopped meanwhile${log}`);
  const what = status.state === "failed" ? "failed" : "ended and will be tried again";
  return new CommandError(`${name} ${what}: ${why}${log}`);
}

function tooLate({ name, state }: WorkerStatus, waitMs: number): CommandError {
  return new CommandError(
    `${name} is still ${state} after ${renderDuration(waitMs)}; see: engine worker status ${name}`,
  );
}

/** Says each phase once, with the time it took. */
class Progress {
  readonly #following: Following;
  #state: WorkerState | undefined;
  #sinceMs: number;
  #installMs: number | undefined;
  #saidInstalling = false;
  #hasShownLines = false;
  #log: LogTail | undefined;

  constructor(following: Following) {
    this.#following = following;
    this.#sinceMs = following.terminal.now();
  }

  show(status: WorkerStatus): void {
    if (status.state === this.#state) return;
    const now = this.#following.terminal.now();
    if (this.#state === "installing") this.#installMs = now - this.#sinceMs;
    const before = this.#state;
    this.#state = status.state;
    this.#sinceMs = now;
    if (status.state === "queued") this.#say("waiting for its turn");
    if (status.state === "stopping") this.#say("stopping");
    if (before === "installing" || status.state === "starting") this.#sayDependencies(status);
    if (status.state === "starting") this.#say(startText(status));
  }

  /** Says that something is being installed, and what that prints, once it takes long. */
  async showInstallation(status: WorkerStatus): Promise<void> {
    const { engine, terminal, name } = this.#following;
    const passed = terminal.now() - this.#sinceMs;
    if (status.state !== "installing") return;
    if (this.#log === undefined) {
      this.#log = new LogTail(engine, name);
      await this.#log.next(0); // What earlier runs printed is not of interest.
    }
    if (passed < CHECK_MS) return;
    if (!this.#saidInstalling) this.#say("installing dependencies");
    this.#saidInstalling = true;
    if (passed >= QUIET_INSTALL_MS) await this.#showLines(this.#log);
  }

  /** The end of an installation that was shown on its way; `false` if none was. */
  async showRest(): Promise<boolean> {
    if (this.#state !== "installing" || !this.#hasShownLines) return false;
    await this.#showLines(this.#log!);
    return true;
  }

  async #showLines(log: LogTail): Promise<void> {
    this.#hasShownLines = true;
    for (const line of await log.next(0)) this.#following.terminal.err(`  | ${printable(line)}`);
  }

  #sayDependencies({ dependencies }: WorkerStatus): void {
    const took = this.#installMs === undefined ? "" : ` (${renderDuration(this.#installMs)})`;
    if (dependencies === "installed") this.#say(`dependencies installed${took}`);
    if (dependencies === "cached") this.#say("dependencies unchanged, the cached ones are used");
  }

  #say(text: string): void {
    this.#following.terminal.err(`${this.#following.name}  ${text}`);
  }
}

function startText({ isolation }: WorkerStatus): string {
  if (isolation === "process") return "starting as a plain process, which keeps nothing apart";
  return isolation === "microvm" ? "starting in a microVM" : "starting";
}
