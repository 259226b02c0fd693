/**
 * The life of one supervised worker: wanted or not, prepared, started, ready, ended, again.
 *
 * One loop per worker makes attempts while the worker is wanted. Everything that should change the
 * course of an attempt (a stop, a restart, an edit) aborts it; the loop then looks at what is
 * wanted now. Decisions depend on the {@linkcode Clock} and on what is reported, on nothing else.
 *
 * @module
 */
import { describeThrown } from "../../sdk/typescript/errors.ts";
import { READY_TIMEOUT_MS, STOP_GRACE_MS } from "../../sdk/typescript/limits.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { Directory } from "../ports/directory.ts";
import type { EngineEvent } from "../ports/events.ts";
import type { Running } from "../ports/launcher.ts";
import type { Log } from "../ports/log.ts";
import type { WorkerStatus } from "../ports/supervision.ts";
import { describeEnd } from "./install.ts";
import { MANIFEST, readManifest, type WorkerSpec } from "./manifest.ts";
import { OutputLog } from "./output_log.ts";
import { isolationOf, type Preparations, type Prepared, prepareLaunch } from "./prepare.ts";
import { Readiness } from "./readiness.ts";
import { RestartPolicy } from "./restart_policy.ts";
import type { StartSlots } from "./start_slots.ts";
import { StatusBoard } from "./status_board.ts";
import type { WatchWorker, WorkerChange } from "./worker_watch.ts";

/** What every life works with. */
export interface LifeTools extends Preparations {
  readonly log: Log;
  readonly directory: Directory;
  readonly slots: StartSlots;
  readonly watch: WatchWorker;
  /** Where workers dial. */
  engineUrl(): string;
  /** A fresh id of a launch. */
  newId(): string;
  /** Prepares; a test may put something quicker in. */
  readonly prepare?: typeof prepareLaunch;
}

/** How an attempt came to its end. */
type Outcome =
  /** Somebody wanted something else. */
  | { readonly type: "aborted" }
  /** Trying again would not help. */
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "ended"; readonly reason: string; readonly readyForMs: number };

/** A program that runs, and what decides how long. */
interface Launch {
  readonly running: Running;
  readonly readiness: Readiness;
  /** Resolves when the launch took too long to become ready. */
  readonly late: Promise<void>;
}

/** One worker of the supervisor. */
export class WorkerLife {
  readonly #tools: LifeTools;
  readonly #log: OutputLog;
  readonly #board: StatusBoard;
  readonly #policy = new RestartPolicy();
  readonly #before: Promise<void> | undefined;
  #entry: DirectoryEntry;
  #spec: WorkerSpec | undefined;
  #isWanted = false;
  #reinstall = false;
  #attempt = new AbortController();
  #loop: Promise<void> | undefined;
  #readiness: Readiness | undefined;
  #watching: Disposable | undefined;
  #watchedPath = "";
  #watched = "";

  /** Does nothing before start(), and then only after `before` has settled. */
  constructor(entry: DirectoryEntry, tools: LifeTools, before?: Promise<void>) {
    this.#entry = entry;
    this.#tools = tools;
    this.#before = before;
    const path = `${tools.dataDirectory}/logs/${entry.name}.log`;
    this.#log = new OutputLog(path, () => tools.clock.wall());
    this.#board = new StatusBoard(entry.name, this.#log, tools);
  }

  /** What it runs by. */
  get entry(): DirectoryEntry {
    return this.#entry;
  }

  /** How it fares now. */
  status(): WorkerStatus {
    const isolation = isolationOf(this.#entry, this.#spec, this.#tools.platform);
    const functions = this.#readiness?.functions ?? [];
    return this.#board.status({ path: this.#entry.path, isolation, functions });
  }

  /** The last lines it printed, with their times. */
  logs(tail: number): Promise<string[]> {
    return this.#log.tail(tail);
  }

  /** Wants it to run; ends a wait and forgets earlier ends. */
  start(): void {
    const { state } = this.#board;
    if (this.#isWanted && state !== "waiting") return;
    this.#again();
  }

  /** Wants it not to run. */
  stop(): void {
    this.#isWanted = false;
    if (this.#loop) this.#board.set("stopping");
    else this.#board.set("stopped");
    this.#attempt.abort();
  }

  /** Ends it, if it runs, and starts it anew. */
  restart(reinstall: boolean): void {
    this.#reinstall ||= reinstall;
    this.#again();
  }

  /** Takes a changed entry; a worker that was stopped by hand stays so. */
  update(entry: DirectoryEntry): void {
    this.#entry = entry;
    if (this.#isWanted || this.#board.state === "failed") this.#again();
  }

  /** Stops it for good. */
  async close(): Promise<void> {
    this.stop();
    await this.#loop;
    this.#watching?.[Symbol.dispose]();
    await this.#log.close();
  }

  /** Takes what the core reports. */
  onEvent(event: EngineEvent): void {
    this.#readiness?.onEvent(event);
  }

  #again(): void {
    this.#isWanted = true;
    this.#policy.reset();
    this.#board.forgetRestarts();
    this.#attempt.abort();
    if (this.#loop) {
      if (this.#board.pid !== null) this.#board.set("stopping");
      return;
    }
    this.#board.set("queued");
    this.#loop = this.#live();
  }

  async #live(): Promise<void> {
    await this.#before;
    let failure: string | undefined;
    while (this.#isWanted) {
      this.#attempt = new AbortController();
      const outcome = await this.#attemptOnce(this.#attempt.signal);
      if (outcome.type === "aborted" || this.#attempt.signal.aborted) continue;
      failure = outcome.type === "failed" ? outcome.reason : await this.#afterEnd(outcome);
      if (failure === undefined) continue;
      // Nothing may come between this and the end of the loop, or a start() would be lost.
      this.#isWanted = false;
      break;
    }
    this.#loop = undefined;
    this.#readiness = undefined;
    if (failure === undefined) this.#board.set("stopped");
    else this.#board.set("failed", failure);
  }

  /** Waits for the next attempt; a text is why there will be none. */
  async #afterEnd(
    { reason, readyForMs }: Extract<Outcome, { type: "ended" }>,
  ): Promise<string | undefined> {
    this.#board.countRestart();
    const next = this.#policy.ended(readyForMs);
    if (next.type === "give_up") {
      return `Given up after it ended ${next.ends} times in a row: ${reason}`;
    }
    this.#board.set("waiting", `${reason}; next start in ${next.ms / 1_000} s`);
    const { signal } = this.#attempt;
    await new Promise<void>((resolve) => {
      const cancelTimer = this.#tools.clock.after(next.ms, resolve);
      signal.addEventListener("abort", () => {
        cancelTimer();
        resolve();
      }, { once: true });
    });
    return undefined;
  }

  async #attemptOnce(signal: AbortSignal): Promise<Outcome> {
    this.#board.begin();
    const release = await this.#tools.slots.take(signal);
    if (!release) return { type: "aborted" };
    try {
      const prepared = await this.#prepare(signal);
      if (signal.aborted) return { type: "aborted" };
      return await this.#run(prepared, signal, release);
    } catch (thrown) {
      if (signal.aborted) return { type: "aborted" };
      return { type: "failed", reason: reasonOf(thrown) };
    } finally {
      release();
    }
  }

  async #prepare(signal: AbortSignal): Promise<Prepared> {
    this.#board.set("installing");
    const reinstall = this.#reinstall;
    // A manifest that cannot be used is mended by an edit, so it is watched before it is read.
    if (this.#watchedPath !== this.#entry.path) this.#watch(["."]);
    this.#spec = readManifest(this.#entry.path);
    const { watch } = this.#spec;
    this.#watch(watch.length === 0 || watch.includes(".") ? watch : [...watch, MANIFEST]);
    const prepare = this.#tools.prepare ?? prepareLaunch;
    const prepared = await prepare(this.#tools, {
      entry: this.#entry,
      spec: this.#spec,
      reinstall,
      signal,
      output: (line) => this.#log.write(line),
      began: (what) => this.#board.set("installing", what),
    });
    if (reinstall && !signal.aborted) this.#reinstall = false;
    this.#board.dependencies = prepared.dependencies;
    return prepared;
  }

  async #run(
    prepared: Prepared,
    signal: AbortSignal,
    release: () => void,
  ): Promise<Outcome> {
    const launch = await this.#launch(prepared, signal, release);
    const { running, late } = launch;
    using _readiness = launch.readiness;
    const aborted = new Promise<"aborted">((resolve) => {
      const abort = (): void => resolve("aborted");
      signal.addEventListener("abort", abort, { once: true });
      if (signal.aborted) abort();
    });
    const first = await Promise.race([running.ended, late.then(() => "late" as const), aborted]);
    if (first === "aborted") this.#board.set("stopping");
    const ended = await (typeof first === "string" ? running.stop(STOP_GRACE_MS) : running.ended);
    const readyForMs = this.#board.ended(describeEnd(ended));
    if (first === "aborted") return { type: "aborted" };
    const reason = first === "late"
      ? `It did not register with the engine within ${READY_TIMEOUT_MS / 1_000} s`
      : `It ended with ${describeEnd(ended)}`;
    const early = first !== "late" && readyForMs === 0 ? " before it was ready" : "";
    return { type: "ended", reason: `${reason}${early}`, readyForMs };
  }

  async #launch(
    { launcher, env }: Prepared,
    signal: AbortSignal,
    release: () => void,
  ): Promise<Launch> {
    const { clock, engineUrl, newId } = this.#tools;
    const late = Promise.withResolvers<void>();
    let cancelTimer: () => void;
    const watchTime = (): void => {
      cancelTimer = clock.after(READY_TIMEOUT_MS, late.resolve);
    };
    watchTime();
    const launchId = newId();
    const readiness = new Readiness(this.#tools, this.#entry.name, launchId, {
      ready: () => {
        cancelTimer();
        release();
        if (!signal.aborted) this.#board.ready();
      },
      lost: (reason) => {
        this.#board.lost(`Its line to the engine ended (${reason}); waiting for it to come back`);
        watchTime();
      },
    });
    this.#readiness = readiness;
    this.#board.starting();
    try {
      const running = await launcher.start({
        name: this.#entry.name,
        command: this.#spec!.start,
        directory: this.#entry.path,
        env: { ...env, ENGINE_URL: engineUrl(), ENGINE_LAUNCH_ID: launchId },
      }, (line) => this.#log.write(line));
      readiness.pid = running.pid;
      this.#board.started(running.pid);
      void running.ended.then(() => cancelTimer());
      return { running, readiness, late: late.promise };
    } catch (thrown) {
      cancelTimer!();
      throw thrown;
    }
  }

  /** Watches these paths from now on, unless they are watched already. */
  #watch(paths: readonly string[]): void {
    const key = JSON.stringify(paths);
    if (this.#watchedPath === this.#entry.path && this.#watched === key) return;
    this.#watching?.[Symbol.dispose]();
    this.#watchedPath = this.#entry.path;
    this.#watched = key;
    this.#watching = this.#tools.watch({
      directory: this.#entry.path,
      watch: paths,
      clock: this.#tools.clock,
      onChange: (change) => this.#edited(change),
      onFailure: (reason) =>
        this.#tools.log.warn("edits of a worker are not seen", {
          worker: this.#entry.name,
          reason,
        }),
    });
  }

  #edited({ paths, changedAtMs }: WorkerChange): void {
    const { state, preparedAtMs } = this.#board;
    if (!this.#isWanted && state !== "failed") return;
    // What an installation writes is no edit, and what was there when the program began to read
    // is nothing new to it.
    if (state === "queued" || state === "installing" || changedAtMs < preparedAtMs) return;
    this.#tools.log.info("worker changed", { worker: this.#entry.name, files: paths.join(" ") });
    this.#again();
  }
}

/** All that is wrong with a manifest, or the one thing that went wrong. */
function reasonOf(thrown: unknown): string {
  const { message, details } = describeThrown(thrown);
  const problems = details?.problems;
  return Array.isArray(problems) ? problems.join("; ") : message;
}
