/**
 * Which engine of a cluster keeps the state.
 *
 * Who does stands in one key, renewed twice a second. Others take it, by its revision, when it has
 * not moved for the length of the lease by their own clock, or sooner when NATS has no line to its
 * engine. The keeper stops before that, four fifths of the lease after its last renewal, so that no
 * caller gets an old value. That no two engines *write* depends on no clock: see `StateLog`.
 *
 * Every engine follows the log all the time, so that a new keeper lacks little.
 *
 * @module
 */
import { EngineError, thrownText } from "../../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ClusterLogView } from "../../ports/directory.ts";
import type { Log } from "../../ports/log.ts";
import { isNotOwner, type LeaderKey, type StateLog } from "../../ports/state_log.ts";
import type { Store } from "../../ports/store.ts";
import { openReplicatedStore } from "../../store/replicated_kv.ts";
import type { StateView } from "../../store/state_view.ts";
import type { MemoryBudget } from "../../ports/memory.ts";
import type { Turns } from "../../ports/turns.ts";
import type { KeptStore } from "./kept_store.ts";

/** Between renewals of the key. */
export const RENEW_MS = 500;
/** JetStream takes a second or two to choose a leader; that is no reason to move the state. */
export const LEASE_MS = 5_000;
/** From its last renewal, after which a keeper stops. */
export const STOP_MS = 4_000;
/** An engine that has not renewed for so long, and has no line to NATS, is gone. */
export const GONE_MS = 800;
/** Between two looks at the key, and at the log. */
const LOOK_MS = 125;
const FOLLOW_MS = 250;
/** For the answers of failed writes, before the workers that give them end. */
const ANSWERS_MS = 25;
/** After a take-over that failed. */
const AGAIN_MS = 500;
/** Calls of functions that the keeper offers wait while there was one so recently. */
const EXPECT_MS = 15_000;

/** What a {@linkcode Keeper} works with. */
export interface KeeperSetup {
  /** Of this start of the engine. */
  readonly life: string;
  readonly log: StateLog;
  readonly key: LeaderKey;
  readonly view: StateView;
  readonly kept: KeptStore;
  /** Whether this engine may keep the state. */
  readonly mayKeep: boolean;
  /** Whether the other engines can reach this one. */
  isReachable(): boolean;
  /** Whether NATS has no line to the engine of that life. */
  isGone(life: string): Promise<boolean>;
  /** Starts or ends the built-in workers that run where the state is kept. */
  serve(isKept: boolean): Promise<void>;
  readonly clock: Clock;
  readonly report: Log;
  readonly memory: MemoryBudget;
  readonly turns?: Turns | undefined;
}

/** See the top of this file. */
export class Keeper implements AsyncDisposable {
  readonly #setup: KeeperSetup;
  readonly #ending = new AbortController();
  readonly #running: Promise<unknown>;
  /** Who has the key, and the revision; an empty life: free. */
  #seen = { life: "", revision: 0 };
  /** When that revision was seen first. */
  #movedAt: number;
  #keepsSince: number | undefined;
  /** Whether the store of this engine writes to the view, or is about to. */
  #ownsView = false;
  /** What is being read of the log for the view; never rejects. */
  #catchingUp: Promise<void> = Promise.resolve();
  #takeovers = 0;
  #problem = "";
  /** When the log was reached last, and how many messages were missing here then. */
  #followed: { readonly at: number; readonly behind: number } | undefined;

  /** Begins at once. */
  constructor(setup: KeeperSetup) {
    this.#setup = setup;
    this.#movedAt = setup.clock.now();
    this.#running = Promise.all([this.#follow(), this.#run()]);
  }

  /** Life of the engine that keeps the state, as far as it is known here. */
  get keeper(): string | undefined {
    return this.#seen.life || undefined;
  }

  /** Since when this engine keeps it, by the clock; `undefined`: it does not. */
  get keepsSince(): number | undefined {
    return this.#keepsSince;
  }

  /** How often this engine took the state over. */
  get takeovers(): number {
    return this.#takeovers;
  }

  /** Whether there will be a keeper in a moment, if there is none. */
  get isExpected(): boolean {
    return this.#setup.clock.now() - this.#movedAt < EXPECT_MS;
  }

  /** What this engine has of the log. */
  get followed(): Pick<ClusterLogView, "applied" | "behind" | "seen_ms_ago" | "bytes" | "problem"> {
    const { view, log, clock } = this.#setup;
    const { at, behind } = this.#followed ?? {};
    const isKept = this.#keepsSince !== undefined;
    return {
      applied: view.applied,
      behind: isKept ? 0 : behind ?? null,
      seen_ms_ago: isKept ? 0 : at === undefined ? null : Math.round(clock.now() - at),
      bytes: log.bytes,
      problem: this.#problem || null,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }

  /** Applies what the keeper wrote, while that is another engine. */
  async #follow(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      if (!this.#ownsView) {
        this.#catchingUp = this.#catchUp()
          .then(() => this.#noProblem(), (thrown) => this.#note(thrown));
        await this.#catchingUp;
      }
      await this.#pause(FOLLOW_MS);
    }
  }

  async #catchUp(): Promise<void> {
    const { view, log, clock } = this.#setup;
    const end = await log.end();
    const missing = (): number => Math.max(0, end.number - view.applied);
    this.#followed = { at: clock.now(), behind: missing() };
    await view.catchUp(log, end);
    this.#followed = { at: clock.now(), behind: missing() };
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      const renewed = this.#setup.mayKeep ? await this.#take() : await this.#look();
      if (renewed === undefined) {
        await this.#pause(LOOK_MS);
        continue;
      }
      // The engine may have begun to stop while the key was written.
      if (this.#ending.signal.aborted) return await this.#release();
      try {
        await this.#keep(renewed);
      } catch (thrown) {
        this.#setup.report.warn("this engine stops keeping the state", {
          reason: thrownText(thrown),
        });
      }
      await this.#release();
      await this.#pause(AGAIN_MS);
    }
  }

  /** Reads the key. */
  async #look(): Promise<undefined> {
    const { key, clock } = this.#setup;
    try {
      const { life = "", revision = 0 } = await key.read() ?? {};
      if (revision !== this.#seen.revision) this.#movedAt = clock.now();
      this.#seen = { life, revision };
      this.#noProblem();
    } catch (thrown) {
      this.#note(thrown);
    }
  }

  /** Takes the key if that is this engine's turn; when the time of its lease began. */
  async #take(): Promise<number | undefined> {
    const { key, clock, life } = this.#setup;
    const before = this.#seen.revision;
    await this.#look();
    if (!this.#setup.isReachable() || !await this.#isFree(before)) return undefined;
    const began = clock.now();
    try {
      const revision = await key.write(life, this.#seen.revision);
      this.#seen = { life, revision };
      this.#movedAt = began;
      return began;
    } catch (thrown) {
      // Another engine was faster, or the answer was lost: the next look tells.
      if (!isNotOwner(thrown)) this.#note(thrown);
      return undefined;
    }
  }

  async #isFree(before: number): Promise<boolean> {
    const { clock, life, isGone } = this.#setup;
    const { seen, quietMs } = { seen: this.#seen, quietMs: clock.now() - this.#movedAt };
    if (seen.life === "" || seen.life === life) return true;
    // What it was before a time without an answer says nothing about that time.
    if (seen.revision !== before) return false;
    return quietMs > LEASE_MS || quietMs > GONE_MS && await isGone(seen.life);
  }

  /** Keeps the state until the lease is over, the log refuses a write, or the engine stops. */
  async #keep(renewed: number): Promise<void> {
    const { clock, kept, report, serve, log, view, memory, turns } = this.#setup;
    const lost = new AbortController();
    const lease = { renewed };
    const isHeld = (): boolean => !lost.signal.aborted && clock.now() - lease.renewed < STOP_MS;
    const lose = (reason: unknown): void => {
      kept.set(undefined);
      lost.abort(reason);
    };
    const stop = (): void => lose(undefined);
    this.#ending.signal.addEventListener("abort", stop);
    const renewing = this.#renew(lease, lost.signal, lose);
    const began = clock.now();
    this.#ownsView = true;
    try {
      // Older messages behind newer ones would take the view back.
      await this.#catchingUp;
      await using store = await openReplicatedStore({
        ...{ log, view, report, memory, clock, signal: lost.signal },
        ...turns && { turns },
        failed: lose,
      });
      if (!isHeld()) throw lost.signal.reason ?? leaseOver();
      this.#keepsSince = began;
      this.#takeovers++;
      const ms = Math.round(clock.now() - began);
      report.info("this engine keeps the state", { taken_over_in_ms: ms, number: view.applied });
      await this.#serve(store, isHeld, lost.signal, serve);
    } finally {
      lose(lost.signal.reason);
      this.#keepsSince = undefined;
      this.#ownsView = false;
      this.#ending.signal.removeEventListener("abort", stop);
      await renewing;
    }
    if (lost.signal.reason && !this.#ending.signal.aborted) throw lost.signal.reason;
  }

  async #serve(
    store: Store,
    isHeld: () => boolean,
    lost: AbortSignal,
    serve: (isKept: boolean) => Promise<void>,
  ): Promise<void> {
    const over = new Promise<void>((resolve) => {
      if (lost.aborted) resolve();
      else lost.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#setup.kept.set(store, isHeld);
    const serving = serve(true);
    await over;
    // Writes on their way fail now, and their callers get that before the worker leaves.
    await store[Symbol.asyncDispose]();
    await this.#pause(ANSWERS_MS);
    await serving;
    await serve(false);
  }

  /** Renews the key until the lease is lost. Never rejects. */
  async #renew(
    lease: { renewed: number },
    signal: AbortSignal,
    lose: (reason: unknown) => void,
  ): Promise<void> {
    const { clock, isReachable } = this.#setup;
    // A renewal may take longer than there is time.
    const watch = (): void => {
      if (signal.aborted) return;
      const leftMs = lease.renewed + STOP_MS - clock.now();
      if (leftMs <= 0) lose(leaseOver());
      else cancel = clock.after(leftMs, watch);
    };
    let cancel = clock.after(STOP_MS, watch);
    while (!signal.aborted) {
      await this.#pause(RENEW_MS, signal);
      if (signal.aborted) break;
      const began = clock.now();
      if (isReachable() && await this.#renewed(lose)) lease.renewed = this.#movedAt = began;
    }
    cancel();
  }

  async #renewed(lose: (reason: unknown) => void): Promise<boolean> {
    const { key, life } = this.#setup;
    try {
      const revision = await key.write(life, this.#seen.revision);
      this.#seen = { life, revision };
      return true;
    } catch (thrown) {
      if (!isNotOwner(thrown)) return false;
    }
    try {
      // Perhaps it was renewed, and only the answer was lost.
      const found = await key.read();
      if (found?.life === life) {
        this.#seen = found;
        return false;
      }
      lose(new EngineError("store_unavailable", "another engine has taken the state over"));
    } catch {
      // The next renewal tells.
    }
    return false;
  }

  /** Others need not wait for the end of the lease. */
  async #release(): Promise<void> {
    const { key, life } = this.#setup;
    if (this.#seen.life !== life) return;
    const revision = await key.write("", this.#seen.revision).catch(() => this.#seen.revision);
    this.#seen = { life: "", revision };
  }

  /** What an engine without a line to the log meets again and again is logged once. */
  #note(thrown: unknown): void {
    const reason = thrownText(thrown);
    if (this.#ending.signal.aborted || reason === this.#problem) return;
    this.#problem = reason;
    this.#setup.report.warn("the log of the state cannot be reached", { reason });
  }

  #noProblem(): void {
    if (this.#problem !== "") this.#setup.report.info("the log of the state can be reached again");
    this.#problem = "";
  }

  #pause(ms: number, signal = this.#ending.signal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const done = (): void => {
        cancel();
        signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#setup.clock.after(ms, done);
      signal.addEventListener("abort", done);
    });
  }
}

function leaseOver(): EngineError {
  return new EngineError("store_unavailable", "it could not renew its lease");
}
