/**
 * One copy of a worker, kept in its desired state.
 *
 * A single loop per replica starts and stops its programs. A change of the desired state (a stop,
 * another version) aborts whatever the loop waits for, and the loop then acts on the new state. A
 * program that serves is kept until its successor is ready, which {@linkcode Reload} starts beside
 * it; with `reload: stop-first` it is stopped before its successor starts. Its calls are drained
 * first. A replica has two programs at most, and one of them is about to end.
 *
 * @module
 */
import { describeThrown } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ended, Running } from "../ports/launcher.ts";
import type { Log, LogFields } from "../ports/log.ts";
import type { Handover, Traffic } from "../ports/traffic.ts";
import type { UnmarkedLine } from "../process/output.ts";
import { STOP_GRACE_MS } from "../process/process_group.ts";
import { describeEnd } from "../process/programs.ts";
import { pause, type StartSlots, untilAborted } from "./abortable.ts";
import type { BuildObserver, Release } from "./releases.ts";
import { Reload } from "./reload.ts";
import { ReplicaRun, type RunEvents, type RunTools } from "./replica_run.ts";
import { UnexpectedExits } from "./restart_policy.ts";
import { StatusTracker } from "./status.ts";

/** How long a replica that stops or restarts may take to finish its running calls. */
const WORKER_DRAIN_MS = 10_000;

/** Interval at which the running calls of draining connections are counted. */
const DRAIN_POLL_MS = 20;

/** What replicas work with. */
export interface ReplicaTools extends RunTools {
  readonly log: Log;
  readonly slots: StartSlots;
  readonly traffic: Traffic;
}

/** The worker that a replica is a copy of. */
export interface ReplicaContext {
  /** Name of the replica's programs, unique within the engine. */
  readonly programName: string;
  /** Fields that name the replica in the engine's log. */
  logFields(): LogFields;
  /** The release to start; `undefined` once the signal aborts. May throw. */
  release(observer: BuildObserver, signal: AbortSignal): Promise<Release | undefined>;
  /** The program printed a line. */
  line(line: UnmarkedLine): void;
  /** A program is about to start. */
  launching(): void;
  /** An attempt failed before a program started. */
  refused(): void;
  /** A program exited unexpectedly; its release may be the cause. */
  exited(): void;
  /** The replica became ready, lost its connection, was given up or has stopped. */
  changed(): void;
  /** Its status changed. */
  statusChanged(): void;
}

/** One copy of a worker. */
export class Replica {
  readonly tracker: StatusTracker;
  readonly #tools: ReplicaTools;
  readonly #context: ReplicaContext;
  readonly #drain: ReplicaDrain;
  readonly #exits = new UnexpectedExits();
  /** Aborted when the engine stops, which waits for no calls. */
  readonly #closing = new AbortController();
  #version = 0;
  #isDesired = false;
  /** The desired version cannot be started; the program before it runs on. */
  #isHeldBack = false;
  /** Why it is given up. */
  #outcome: { readonly state: "failed" | "stopped"; readonly reason: string } | undefined;
  #attempt = new AbortController();
  #loop: Promise<void> | undefined;
  #run: ReplicaRun | undefined;
  /** Starts the desired version beside the run that serves. */
  #reload: Reload | undefined;
  /** A successor could not start because the running program holds its port. */
  #mustStopFirst = false;
  /** Programs of older versions that finish their calls and end. */
  readonly #retiring = new Set<Promise<void>>();
  #releaseSlot: () => void = () => {};

  /** Starts as stopped; see {@linkcode run}. */
  constructor(tools: ReplicaTools, context: ReplicaContext) {
    this.#tools = tools;
    this.#context = context;
    this.#drain = new ReplicaDrain(tools);
    this.tracker = new StatusTracker(
      tools,
      () => context.logFields(),
      () => context.statusChanged(),
    );
  }

  /** The desired version, also after it was given up; 0: none. */
  get version(): number {
    return this.#version;
  }

  /** The current run, possibly of another version than the desired one. */
  get current(): ReplicaRun | undefined {
    return this.#run;
  }

  /** Its runs that may connect: the current one, and one that is about to replace it. */
  get runs(): readonly ReplicaRun[] {
    return [this.#run, this.#reload?.run].filter((run) => run !== undefined);
  }

  /** Whether it serves, with any version. */
  get isReady(): boolean {
    return this.tracker.state === "ready";
  }

  /** Whether it serves with the desired version. */
  get isUpToDate(): boolean {
    return this.isReady && this.#run?.release.version === this.#version;
  }

  /** Whether it keeps an older version because the desired one cannot be started. */
  get isHeldBack(): boolean {
    return this.#isHeldBack;
  }

  /** Whether it does not run and does nothing to change that. */
  get isIdle(): boolean {
    return this.#loop === undefined;
  }

  /** The program that commands can run beside; `undefined` while there is none. */
  get running(): Running | undefined {
    return this.tracker.state === "stopping" ? undefined : this.#run?.running;
  }

  /** Desires that this version runs, and forgets earlier exits and failures. */
  run(version: number): void {
    const wasDesired = this.#isDesired;
    this.#version = version;
    this.#isDesired = true;
    this.#isHeldBack = false;
    this.#outcome = undefined;
    this.#exits.reset();
    this.tracker.resetRestarts();
    if (!wasDesired && this.tracker.state === "stopping") this.#drain.expectReturn();
    if (!this.#loop) this.tracker.begin("queued");
    this.#interrupt();
  }

  /** Stays with the version that serves, if one does, until {@linkcode run} desires another. */
  hold(): void {
    if (!this.#isDesired || !this.isReady || !this.#run) return;
    this.#version = this.#run.release.version;
    this.#isHeldBack = false;
    this.#interrupt();
  }

  /** Desires that it does not run. A second call changes nothing. */
  stop(): void {
    if (this.#loop && !this.#isDesired && !this.#outcome) return;
    this.#version = 0;
    this.#isDesired = false;
    this.#outcome = undefined;
    this.#drain.end();
    if (!this.#loop) return this.tracker.set("stopped");
    this.tracker.set("stopping");
    this.#interrupt();
  }

  /** Settles after {@linkcode stop}, when its program has ended. */
  async stopped(): Promise<void> {
    await this.#loop;
  }

  /** Stops it without waiting for its calls. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.stop();
    await this.stopped();
  }

  /** Makes the loop act on the desired state. An outdated start gives its slot back at once. */
  #interrupt(): void {
    this.#releaseSlot();
    this.#attempt.abort();
    this.#attempt = new AbortController();
    this.#loop ??= this.#runLoop();
  }

  async #runLoop(): Promise<void> {
    while (this.#isDesired || this.#run || this.#retiring.size > 0) {
      const { signal } = this.#attempt;
      const run = this.#run;
      if (!this.#isDesired && !run) await Promise.all(this.#retiring);
      else if (!this.#isDesired) await this.#drainAndStop(run!);
      else if (run && (this.#isHeldBack || run.release.version === this.#version)) {
        await this.#follow(run, signal);
      } else await this.#replace(signal);
    }
    // No await between the condition above and this line, or a call of run() would be lost.
    this.#loop = undefined;
    this.#releaseSlot();
    this.#drain.end();
    const { state, reason } = this.#outcome ?? { state: "stopped", reason: null };
    this.tracker.set(state, reason);
    this.#context.changed();
  }

  /** Gets the release of the desired version and starts it, beside or after the running program. */
  async #replace(signal: AbortSignal): Promise<void> {
    // A program that does not serve need not run until its successor can start.
    if (this.#run && !this.#run.isReady) return await this.#drainAndStop(this.#run);
    if (!this.#run) this.tracker.begin("queued");
    const release = await this.#getRelease(signal);
    if (!release) return;
    if (!this.#run?.running) this.tracker.set("queued");
    // Two programs at most. Without a slot, which others may need meanwhile.
    if (this.#run) await untilAborted(Promise.all(this.#retiring), signal);
    const releaseSlot = await this.#tools.slots.take(signal, "start");
    if (!releaseSlot) return;
    if (this.#run?.isReady && !this.#stopsFirst(release)) {
      const isOver = await this.#startBeside(this.#run, release, signal);
      if (isOver || signal.aborted) return releaseSlot();
    }
    if (this.#run) await this.#drainAndStop(this.#run); // Gives back its own slot, not this one.
    this.#releaseSlot = releaseSlot;
    if (signal.aborted) releaseSlot();
    else await this.#start(release, signal);
  }

  /** The release to start; `undefined` once the signal aborts or when there is none. */
  async #getRelease(signal: AbortSignal): Promise<Release | undefined> {
    try {
      return await this.#context.release(this.#buildObserver(), signal);
    } catch (thrown) {
      if (signal.aborted) return undefined;
      const reason = problemOf(thrown);
      this.#context.refused();
      this.#isHeldBack = this.#run?.running !== undefined;
      if (!this.#isHeldBack) this.#giveUp("failed", reason);
      else {
        this.tracker.error(reason);
        this.#context.changed();
      }
      return undefined;
    }
  }

  #stopsFirst({ spec }: Release): boolean {
    return this.#mustStopFirst || spec.reload === "stop-first";
  }

  /**
   * Starts a release beside the program that serves and switches to it when it is ready. `false`:
   * it can only start once that program has ended.
   */
  async #startBeside(old: ReplicaRun, release: Release, signal: AbortSignal): Promise<boolean> {
    const reload = new Reload(release, this.#tools, {
      events: (run) => this.#eventsOf(run),
      phase: (what) => {
        if (this.tracker.state === "ready") this.tracker.set("ready", what);
      },
    });
    this.#reload = reload;
    const outcome = await reload.start(this.#context.programName, signal);
    this.#reload = undefined;
    // Without the reason that the reload gave it; it may be put off or held back.
    if (this.tracker.state === "ready") this.tracker.set("ready");
    if (outcome.type === "ready") this.#switchTo(reload.run, old);
    else if (outcome.type === "address_in_use") {
      this.#mustStopFirst = true;
      const why = "the running version holds its address, so it is stopped before a new one starts";
      this.#tools.log.info(why, this.#context.logFields());
      return false;
    } else if (outcome.type === "failed" && !signal.aborted) {
      this.#context.refused();
      this.#isHeldBack = true;
      this.tracker.error(outcome.reason);
      this.#tools.log.error("reload failed", {
        ...this.#context.logFields(),
        reason: outcome.reason,
      });
      this.#context.changed();
    }
    return true;
  }

  /** A run that is ready takes over; the one before finishes its calls and ends. */
  #switchTo(run: ReplicaRun, old: ReplicaRun): void {
    this.#run = run;
    this.#exits.configure(run.release.spec.restart);
    this.#context.launching();
    if (run.running) this.tracker.switched(run.running.pid);
    this.tracker.ready(run.readyAfterMs);
    const retiring = this.#retire(old).finally(() => this.#retiring.delete(retiring));
    this.#retiring.add(retiring);
    this.#context.changed();
  }

  async #retire({ readiness, running }: ReplicaRun): Promise<void> {
    if (!running) return;
    const drain = new ReplicaDrain(this.#tools);
    await drain.drain(readiness.connections, false, this.#closing.signal);
    await running.stop(STOP_GRACE_MS);
    drain.end();
  }

  /** Shows the progress of a build, unless a program runs whose status is more important. */
  #buildObserver(): BuildObserver {
    return {
      phase: (state, what) => {
        if (!this.#run?.running && this.#isDesired) this.tracker.set(state, what);
      },
      line: ({ text }) => {
        if (!this.#run?.running) this.tracker.print(text);
      },
    };
  }

  async #start(release: Release, signal: AbortSignal): Promise<void> {
    this.#exits.configure(release.spec.restart);
    this.tracker.begin("starting");
    this.#context.launching();
    const run: ReplicaRun = new ReplicaRun(release, this.#tools, this.#eventsOf(() => run));
    this.#run = run;
    try {
      await run.start(this.#context.programName, signal);
    } catch (thrown) {
      this.#run = undefined;
      if (!signal.aborted) this.#giveUp("failed", problemOf(thrown));
    }
  }

  /** Events of a run; only the current one changes the status. */
  #eventsOf(run: () => ReplicaRun): RunEvents {
    const ifCurrent = (then: () => void): void => {
      if (this.#run === run()) then();
    };
    return {
      line: (line) => {
        ifCurrent(() => this.tracker.print(line.text));
        this.#context.line(line);
      },
      phase: (what) =>
        ifCurrent(() => {
          if (this.tracker.state === "starting") this.tracker.set("starting", what);
        }),
      started: ({ pid }) =>
        ifCurrent(() => {
          this.tracker.started(pid);
          if (this.tracker.state === "starting") this.tracker.set("starting"); // No phase any more.
        }),
      ready: () => ifCurrent(() => this.#ready(run())),
      lost: (reason) => ifCurrent(() => this.#lost(reason)),
      ended: (ended) => ifCurrent(() => this.#ended(ended)),
    };
  }

  #ready(run: ReplicaRun): void {
    if (this.tracker.state !== "starting") return; // It is being stopped.
    this.#releaseSlot();
    this.#drain.end();
    this.tracker.ready(run.readyAfterMs);
    this.#context.changed();
  }

  #lost(reason: string): void {
    if (this.tracker.state !== "ready") return;
    const text = `Its connection to the engine ended (${reason}); waiting for it to reconnect`;
    this.tracker.set("starting", text);
    this.#context.changed();
  }

  /** The program has ended, expected or not. */
  #ended(ended: Ended): void {
    this.#releaseSlot();
    const how = describeEnd(ended);
    this.tracker.ended(how);
    const { state } = this.tracker;
    if (state === "ready" || state === "starting") {
      this.tracker.set("queued", `It ended with ${how}`);
    }
  }

  /** Waits until the run is over or the desired state changes; applies the restart policy. */
  async #follow(run: ReplicaRun, signal: AbortSignal): Promise<void> {
    if (this.tracker.state === "stopping") { // It was to be stopped, and no longer is.
      this.tracker.set("starting");
      if (run.isReady) this.#ready(run);
    }
    const over = await untilAborted(run.over, signal);
    if (!over || signal.aborted) return;
    const { readyForMs } = run;
    const finished = { over, readyForMs, atMs: this.#tools.clock.now() };
    const { reason, next } = this.#exits.decide(finished);
    if (over.type === "silent") {
      this.tracker.set("stopping", reason);
      await run.running?.stop(STOP_GRACE_MS);
    }
    this.#run = undefined;
    if (signal.aborted) return;
    this.#isHeldBack = false;
    this.#drain.end();
    this.#context.exited();
    if (next.state !== "waiting") return this.#giveUp(next.state, next.text);
    this.tracker.error(reason);
    this.tracker.countRestart();
    this.tracker.wait(next.ms, next.text);
    this.#context.changed();
    await pause(this.#tools.clock, next.ms, signal);
  }

  /** Drains the calls of a program and stops it. */
  async #drainAndStop(run: ReplicaRun): Promise<void> {
    if (run.running) {
      this.tracker.set("stopping");
      const { connections } = run.readiness;
      await this.#drain.drain(connections, this.#isDesired, this.#closing.signal);
      await run.running?.stop(STOP_GRACE_MS, { keep: this.#isDesired });
    }
    this.#run = undefined;
  }

  #giveUp(state: "failed" | "stopped", reason: string): void {
    if (state === "failed") this.tracker.error(reason);
    this.#isDesired = false;
    this.#outcome = { state, reason };
  }
}

/** All problems of a manifest, or the message of an error. */
function problemOf(thrown: unknown): string {
  const { message, details } = describeThrown(thrown);
  const problems = details?.problems;
  return Array.isArray(problems) ? problems.join("; ") : message;
}

/**
 * Drains the calls of a replica before its program is stopped. The core sends draining connections
 * no new calls; its handovers stay open until {@linkcode ReplicaDrain.end}.
 */
export class ReplicaDrain {
  readonly #clock: Clock;
  readonly #traffic: Traffic;
  readonly #handovers = new Set<Handover>();
  /** Connections that were drained last, and whether the replica returns on other ones. */
  #connections: readonly string[] = [];
  #isReturnExpected = false;

  constructor({ clock, traffic }: { readonly clock: Clock; readonly traffic: Traffic }) {
    this.#clock = clock;
    this.#traffic = traffic;
  }

  /**
   * Stops new calls to these connections and waits until they run none, for `WORKER_DRAIN_MS` at
   * most or until the signal aborts.
   */
  async drain(
    connections: readonly string[],
    isComingBack: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    this.#connections = connections;
    this.#isReturnExpected = isComingBack;
    if (connections.length === 0) return;
    const handover = this.#traffic.drain(connections, { isComingBack });
    this.#handovers.add(handover);
    const end = this.#clock.now() + WORKER_DRAIN_MS;
    while (handover.runningCalls > 0 && this.#clock.now() < end && !signal.aborted) {
      await pause(this.#clock, DRAIN_POLL_MS, signal);
    }
  }

  /** The replica returns after all, so calls to the connections drained last wait for it. */
  expectReturn(): void {
    if (this.#connections.length === 0 || this.#isReturnExpected) return;
    this.#isReturnExpected = true;
    this.#handovers.add(this.#traffic.drain(this.#connections, { isComingBack: true }));
  }

  /** Ends the handovers: the replica has returned, or will not. */
  end(): void {
    this.#connections = [];
    for (const handover of this.#handovers) handover.end();
    this.#handovers.clear();
  }
}
