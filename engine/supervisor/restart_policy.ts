/**
 * What follows when a worker exits unexpectedly: a restart after a wait, or none.
 *
 * {@linkcode RestartPolicy} counts exits over the time in which the worker could have run. Waits
 * before restarts do not count, or a long back-off alone would keep a worker that never runs from
 * being given up. {@linkcode UnexpectedExits} applies the policy to runs of a replica and explains
 * the decision in words.
 *
 * @module
 */
import { RESTART_MAX_MS, type RestartSettings } from "../install/manifest.ts";
import { describeEnd } from "../process/programs.ts";
import { READY_TIMEOUT_MS, type RunOver } from "./replica_run.ts";

/** After so long in state `ready`, the next wait is the first again. */
const RESTART_RESET_MS = 60_000;

/** One exit that was not requested. */
export interface UnexpectedExit {
  /** How long the worker had been ready, in milliseconds; 0: never. */
  readonly readyForMs: number;
  /** Time of the exit, on a monotonic clock. */
  readonly atMs: number;
  /** Whether it exited with code 0. */
  readonly clean: boolean;
}

/** What follows from an exit. */
export type RestartDecision =
  /** A restart after so many milliseconds. */
  | { readonly type: "wait"; readonly ms: number }
  /** No restart: the worker is done, or it `failed`. */
  | { readonly type: "stay"; readonly failed: boolean }
  /** No restart: it exited too often in short order. */
  | { readonly type: "give_up"; readonly exits: number };

/** Counts the exits of one replica. */
export class RestartPolicy {
  readonly #settings: RestartSettings;
  /** Times of recent exits, in milliseconds without waits. */
  #exits: number[] = [];
  #waitedMs = 0;
  #nextMs: number;

  constructor(settings: RestartSettings) {
    this.#settings = settings;
    this.#nextMs = settings.backoff_ms;
  }

  /** Forgets all exits, after a person has started or changed the worker. */
  reset(): void {
    this.#exits = [];
    this.#nextMs = this.#settings.backoff_ms;
  }

  /** Counts an exit and decides. */
  decide({ readyForMs, atMs, clean }: UnexpectedExit): RestartDecision {
    const { policy, max, within_s, backoff_ms } = this.#settings;
    if (policy === "never" || (policy === "on-failure" && clean)) {
      return { type: "stay", failed: !clean };
    }

    const now = atMs - this.#waitedMs;
    this.#exits = [...this.#exits.filter((exit) => now - exit <= within_s * 1_000), now];
    if (this.#exits.length >= max) return { type: "give_up", exits: this.#exits.length };

    if (readyForMs >= RESTART_RESET_MS) this.#nextMs = backoff_ms;
    const ms = Math.min(this.#nextMs, RESTART_MAX_MS);
    this.#nextMs = ms * 2;
    this.#waitedMs += ms;
    return { type: "wait", ms };
  }
}

/** The state that follows from an exit. */
export type StateAfterExit =
  /** A restart after so many milliseconds. */
  | { readonly state: "waiting"; readonly ms: number; readonly text: string }
  /** No restart. */
  | { readonly state: "failed" | "stopped"; readonly text: string };

/** A run of a replica that is over. */
export interface FinishedRun extends Pick<UnexpectedExit, "readyForMs" | "atMs"> {
  readonly over: RunOver;
}

/** Decides about the unexpected exits of one replica. */
export class UnexpectedExits {
  #policy: RestartPolicy | undefined;
  #settings: RestartSettings | undefined;

  /** Applies these settings from now on; past exits count on if the settings are equal. */
  configure(settings: RestartSettings): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return;
    this.#settings = settings;
    this.#policy = new RestartPolicy(settings);
  }

  /** Forgets all exits, after a person has started or changed the worker. */
  reset(): void {
    this.#policy?.reset();
  }

  /** The reason of an exit and the state that follows. {@linkcode configure} comes first. */
  decide(
    { over, readyForMs, atMs }: FinishedRun,
  ): { readonly reason: string; readonly next: StateAfterExit } {
    const reason = reasonOf(over, readyForMs);
    // A program that runs but never registers will not do better the next time.
    if (over.type === "silent" && !over.wasReady) {
      return { reason, next: { state: "failed", text: reason } };
    }
    const clean = over.type === "ended" && over.ended.code === 0;
    const decision = this.#policy!.decide({ readyForMs, atMs, clean });
    switch (decision.type) {
      case "wait": {
        const text = `${reason}; next start in ${decision.ms / 1_000} s`;
        return { reason, next: { state: "waiting", ms: decision.ms, text } };
      }
      case "stay": {
        const text = `${reason}, and its restart policy is ${this.#settings!.policy}`;
        return { reason, next: { state: decision.failed ? "failed" : "stopped", text } };
      }
      case "give_up": {
        const text =
          `Given up after it ended ${decision.exits} times in quick succession: ${reason}`;
        return { reason, next: { state: "failed", text } };
      }
    }
  }
}

function reasonOf(over: RunOver, readyForMs: number): string {
  const seconds = READY_TIMEOUT_MS / 1_000;
  if (over.type === "silent") {
    return over.wasReady
      ? `It had no connection to the engine for ${seconds} s`
      : `It did not register with the engine within ${seconds} s`;
  }
  return `It ended with ${describeEnd(over.ended)}${
    readyForMs === 0 ? " before it was ready" : ""
  }`;
}
