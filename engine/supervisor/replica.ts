/**
 * The life of one replica: told to run, started, ready, ended, again.
 *
 * One loop per replica, so that there is never more than one program of it. Whatever should change
 * the course of things (a stop, another version) aborts what the loop waits for; the loop then
 * looks at what is wanted now. A program that serves is kept until everything is there that the
 * next one needs, and is relieved of its calls before it is stopped.
 *
 * @module
 */
import { describeThrown } from "../../sdk/typescript/wire/errors.ts";
import { WORKER_DRAIN_MS } from "../../sdk/typescript/wire/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ended, Running } from "../ports/launcher.ts";
import type { Log, LogFields } from "../ports/log.ts";
import type { Handover, Traffic } from "../ports/traffic.ts";
import type { UnmarkedLine } from "../process/output.ts";
import { STOP_GRACE_MS } from "../process/process_group.ts";
import { describeEnd } from "../process/programs.ts";
import type { Release, Waiting } from "./releases.ts";
import { ReplicaRun, type RunTools } from "./replica_run.ts";
import { pause, type StartSlots, whileWanted } from "./abortable.ts";
import { StatusBoard } from "./status.ts";
import { UnaskedEnds } from "./restart_policy.ts";

/** What every replica works with. */
export interface ReplicaTools extends RunTools {
  readonly log: Log;
  readonly slots: StartSlots;
  readonly traffic: Traffic;
}

/** The worker that a replica is a copy of. */
export interface ReplicaHome {
  /** Name of the replica's programs; no other program of the engine has it. */
  readonly programName: string;
  /** Fields that name it in the engine's log. */
  who(): LogFields;
  /** What to start from; `undefined` when the signal came first. May throw. */
  release(waiting: Waiting, signal: AbortSignal): Promise<Release | undefined>;
  /** A line that its program printed. */
  line(line: UnmarkedLine): void;
  /** It begins a program. */
  launched(): void;
  /** An attempt came to nothing before a program began. */
  refused(): void;
  /** A program ended unasked: what it was started from may be at fault. */
  ended(): void;
  /** It became ready, lost that, was given up or has stopped. */
  changed(): void;
  /** What its status says is something else. */
  told(): void;
}

/** One copy of a worker. */
export class Replica {
  readonly board: StatusBoard;
  readonly #tools: ReplicaTools;
  readonly #home: ReplicaHome;
  readonly #relief: Relief;
  readonly #ends = new UnaskedEnds();
  /** Aborted when the engine stops: then nothing is waited for that can be helped. */
  readonly #hurry = new AbortController();
  #version = 0;
  #isWanted = false;
  /** The wanted version cannot be started; what ran before goes on. */
  #isRefused = false;
  /** Why it is given up. */
  #verdict: { readonly state: "failed" | "stopped"; readonly reason: string } | undefined;
  #attempt = new AbortController();
  #loop: Promise<void> | undefined;
  #run: ReplicaRun | undefined;
  #releaseSlot: () => void = () => {};

  /** Does nothing before {@linkcode run}. */
  constructor(tools: ReplicaTools, home: ReplicaHome) {
    this.#tools = tools;
    this.#home = home;
    this.#relief = new Relief(tools);
    this.board = new StatusBoard(tools, () => home.who(), () => home.told());
  }

  /** The version it is meant to run, also when that was given up; 0: none. */
  get version(): number {
    return this.#version;
  }

  /** The run there is, be it of another version than the one it was told. */
  get current(): ReplicaRun | undefined {
    return this.#run;
  }

  /** Whether it serves, be it with another version. */
  get isReady(): boolean {
    return this.board.state === "ready";
  }

  /** Whether it serves with the version that it was told to run. */
  get hasArrived(): boolean {
    return this.isReady && this.#run?.release.version === this.#version;
  }

  /** Whether it keeps to an older version because the wanted one cannot be started. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Whether it is settled: it does not run and nothing of it is on its way. */
  get isIdle(): boolean {
    return this.#loop === undefined;
  }

  /** The program that commands can be run beside; `undefined` while it does not run. */
  get running(): Running | undefined {
    return this.board.state === "stopping" ? undefined : this.#run?.running;
  }

  /** Wants it to run this version, anew if it waits or was given up; forgets earlier ends. */
  run(version: number): void {
    const wasWanted = this.#isWanted;
    this.#version = version;
    this.#isWanted = true;
    this.#isRefused = false;
    this.#verdict = undefined;
    this.#ends.forget();
    this.board.forgetRestarts();
    if (!wasWanted && this.board.state === "stopping") this.#relief.expect();
    if (!this.#loop) this.board.begin("queued");
    this.#turn();
  }

  /** Keeps to what runs, if that serves, until it is told to run another version. */
  hold(): void {
    if (!this.#isWanted || !this.isReady || !this.#run) return;
    this.#version = this.#run.release.version;
    this.#isRefused = false;
    this.#turn();
  }

  /** Wants it not to run. A second call changes nothing. */
  stop(): void {
    if (this.#loop && !this.#isWanted && !this.#verdict) return;
    this.#version = 0;
    this.#isWanted = false;
    this.#verdict = undefined;
    this.#relief.end();
    if (!this.#loop) return this.board.set("stopped");
    this.board.set("stopping");
    this.#turn();
  }

  /** Settles when nothing of it runs any more, once it is not wanted. */
  async gone(): Promise<void> {
    await this.#loop;
  }

  /** Stops it without waiting for the calls it runs. */
  async close(): Promise<void> {
    this.#hurry.abort();
    this.stop();
    await this.gone();
  }

  /** Something else is wanted. A start that is not wanted any more must not hold its slot. */
  #turn(): void {
    this.#releaseSlot();
    this.#attempt.abort();
    this.#attempt = new AbortController();
    this.#loop ??= this.#live();
  }

  async #live(): Promise<void> {
    while (this.#isWanted || this.#run) {
      const { signal } = this.#attempt;
      const run = this.#run;
      if (!this.#isWanted) await this.#relieve(run!);
      else if (run && (this.#isRefused || run.release.version === this.#version)) {
        await this.#follow(run, signal);
      } else await this.#renew(signal);
    }
    // Nothing may come between the last look at what is wanted and this, or a run() would be lost.
    this.#loop = undefined;
    this.#releaseSlot();
    this.#relief.end();
    const { state, reason } = this.#verdict ?? { state: "stopped", reason: null };
    this.board.set(state, reason);
    this.#home.changed();
  }

  /** Gets what the wanted version needs, ends what runs, and starts it. */
  async #renew(signal: AbortSignal): Promise<void> {
    // A program that does not serve is not worth keeping until the next one can start.
    if (this.#run && !this.#run.isReady) return await this.#relieve(this.#run);
    if (!this.#run) this.board.begin("queued");
    const release = await this.#prepared(signal);
    if (!release) return;
    if (!this.#run?.running) this.board.set("queued");
    const slot = await this.#tools.slots.take(signal, "start");
    if (!slot) return;
    if (this.#run) await this.#relieve(this.#run); // Its end gives back its own slot, not this one.
    this.#releaseSlot = slot;
    if (signal.aborted) slot();
    else await this.#start(release, signal);
  }

  /** What to start from; `undefined` when it is not wanted any more or cannot be had. */
  async #prepared(signal: AbortSignal): Promise<Release | undefined> {
    try {
      return await this.#home.release(this.#waiting(), signal);
    } catch (thrown) {
      if (signal.aborted) return undefined;
      const reason = problemOf(thrown);
      this.#home.refused();
      this.#isRefused = this.#run?.running !== undefined;
      if (!this.#isRefused) this.#giveUp("failed", reason);
      else {
        this.board.error(reason);
        this.#home.changed();
      }
      return undefined;
    }
  }

  /** What is told of preparations, while nothing of it runs that would be worth telling. */
  #waiting(): Waiting {
    return {
      at: (state, what) => {
        if (!this.#run?.running && this.#isWanted) this.board.set(state, what);
      },
      line: ({ text }) => {
        if (!this.#run?.running) this.board.print(text);
      },
    };
  }

  async #start(release: Release, signal: AbortSignal): Promise<void> {
    this.#ends.judgeBy(release.spec.restart);
    this.board.begin("starting");
    this.#home.launched();
    const run: ReplicaRun = new ReplicaRun(release, this.#tools, {
      line: (line) => {
        this.board.print(line.text);
        this.#home.line(line);
      },
      phase: (what) => {
        if (this.board.state === "starting") this.board.set("starting", what);
      },
      started: ({ pid }) => {
        this.board.started(pid);
        if (this.board.state === "starting") this.board.set("starting"); // Its phases are over.
      },
      ready: () => this.#ready(run),
      lost: (reason) => this.#lost(reason),
      ended: (ended) => this.#gone(ended),
    });
    this.#run = run;
    try {
      await run.start(this.#home.programName, signal);
    } catch (thrown) {
      this.#run = undefined;
      if (!signal.aborted) this.#giveUp("failed", problemOf(thrown));
    }
  }

  #ready(run: ReplicaRun): void {
    if (this.board.state !== "starting") return; // It is being stopped.
    this.#releaseSlot();
    this.#relief.end();
    this.board.ready(run.readyAfterMs);
    this.#home.changed();
  }

  #lost(reason: string): void {
    if (this.board.state !== "ready") return;
    const text = `Its line to the engine ended (${reason}); waiting for it to come back`;
    this.board.set("starting", text);
    this.#home.changed();
  }

  /** The program is gone, whether somebody waits for that or not. */
  #gone(ended: Ended): void {
    this.#releaseSlot();
    const how = describeEnd(ended);
    this.board.ended(how);
    const { state } = this.board;
    if (state === "ready" || state === "starting") this.board.set("queued", `It ended with ${how}`);
  }

  /** Waits until the run is over or something else is wanted; decides what becomes of it. */
  async #follow(run: ReplicaRun, signal: AbortSignal): Promise<void> {
    if (this.board.state === "stopping") { // It was to be stopped, and is not any more.
      this.board.set("starting");
      if (run.isReady) this.#ready(run);
    }
    const over = await whileWanted(run.over, signal);
    if (!over || signal.aborted) return;
    const { readyForMs } = run;
    const ending = { over, readyForMs, atMs: this.#tools.clock.now() };
    const { reason, next } = this.#ends.judge(ending);
    if (over.type === "silent") {
      this.board.set("stopping", reason);
      await run.running?.stop(STOP_GRACE_MS);
    }
    this.#run = undefined;
    if (signal.aborted) return;
    this.#isRefused = false;
    this.#relief.end();
    this.#home.ended();
    if (next.state !== "waiting") return this.#giveUp(next.state, next.text);
    this.board.error(reason);
    this.board.countRestart();
    this.board.set("waiting", next.text);
    this.#home.changed();
    await pause(this.#tools.clock, next.ms, signal);
  }

  /** Takes its calls away, lets it finish those that it runs, and stops it. */
  async #relieve(run: ReplicaRun): Promise<void> {
    if (run.running) {
      this.board.set("stopping");
      await this.#relief.drain(run.readiness.lines, this.#isWanted, this.#hurry.signal);
      await run.running?.stop(STOP_GRACE_MS, { keep: this.#isWanted });
    }
    this.#run = undefined;
  }

  #giveUp(state: "failed" | "stopped", reason: string): void {
    if (state === "failed") this.board.error(reason);
    this.#isWanted = false;
    this.#verdict = { state, reason };
  }
}

/** All that is wrong with a manifest, or the one thing that went wrong. */
function problemOf(thrown: unknown): string {
  const { message, details } = describeThrown(thrown);
  const problems = details?.problems;
  return Array.isArray(problems) ? problems.join("; ") : message;
}

/** How often running calls are counted. */
const POLL_MS = 20;

/** The handovers of one replica that are not over. */
export class Relief {
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  readonly #open = new Set<Handover>();
  /** Lines that were relieved last, and whether somebody comes back for them. */
  #lines: readonly string[] = [];
  #isExpected = false;

  /** Relieves nothing yet. */
  constructor({ clock, traffic }: { readonly clock: Clock; readonly traffic: Traffic }) {
    this.#clock = clock;
    this.#traffic = traffic;
  }

  /**
   * Takes new calls away from these lines and waits until they run none any more, for
   * `WORKER_DRAIN_MS` at most and not after `enough` has been aborted.
   */
  async drain(
    lines: readonly string[],
    isComingBack: boolean,
    enough: AbortSignal,
  ): Promise<void> {
    this.#lines = lines;
    this.#isExpected = isComingBack;
    if (lines.length === 0) return;
    const handover = this.#traffic.drain(lines, { isComingBack });
    this.#open.add(handover);
    const end = this.#clock.now() + WORKER_DRAIN_MS;
    while (handover.runningCalls > 0 && this.#clock.now() < end && !enough.aborted) {
      await pause(this.#clock, POLL_MS, enough);
    }
  }

  /** Somebody comes back after all, for the lines that were relieved last. */
  expect(): void {
    if (this.#lines.length === 0 || this.#isExpected) return;
    this.#isExpected = true;
    this.#open.add(this.#traffic.drain(this.#lines, { isComingBack: true }));
  }

  /** It is over: somebody has taken over, or nobody will. */
  end(): void {
    this.#lines = [];
    for (const handover of this.#open) handover.end();
    this.#open.clear();
  }
}
