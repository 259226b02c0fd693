/**
 * When a worker that ended unasked starts again, and when it is given up.
 *
 * Pure: it is told of ends and answers with what to do. Ends are counted over the time in which the
 * worker could have run: the waits between them do not count, or a long back-off alone would keep a
 * worker that never runs from being given up.
 *
 * @module
 */
import { RESTART_MAX_MS, type RestartSettings } from "../install/manifest.ts";
import { describeEnd } from "../process/programs.ts";
import { READY_TIMEOUT_MS } from "./limits.ts";
import type { RunOver } from "./replica_run.ts";

/** Ready for so long: the next wait is the first again. */
const RESTART_RESET_MS = 60_000;

/** An end that nobody asked for. */
export interface UnaskedEnd {
  /** How long it had been ready, in milliseconds; 0: never. */
  readonly readyForMs: number;
  /** When it ended, by a clock that never goes back. */
  readonly atMs: number;
  /** It exited with code 0. */
  readonly clean: boolean;
}

/** What to do after an unasked end. */
export type AfterEnd =
  /** Start it again, so many milliseconds from now. */
  | { readonly type: "wait"; readonly ms: number }
  /** Leave it: it is done, or it `failed`. */
  | { readonly type: "stay"; readonly failed: boolean }
  /** Leave it: it ended so often in short order. */
  | { readonly type: "give_up"; readonly ends: number };

/** Counts the ends of one worker, or of one replica of it. */
export class RestartPolicy {
  readonly #settings: RestartSettings;
  /** Ends that are not too old to count, in milliseconds without the waits. */
  #ends: number[] = [];
  #waitedMs = 0;
  #nextMs: number;

  /** Has seen no end yet. */
  constructor(settings: RestartSettings) {
    this.#settings = settings;
    this.#nextMs = settings.backoff_ms;
  }

  /** Forgets all ends: somebody started the worker by hand or changed it. */
  reset(): void {
    this.#ends = [];
    this.#nextMs = this.#settings.backoff_ms;
  }

  /** The worker ended; says what to do. */
  ended({ readyForMs, atMs, clean }: UnaskedEnd): AfterEnd {
    const { policy, max, within_s, backoff_ms } = this.#settings;
    if (policy === "never" || (policy === "on-failure" && clean)) {
      return { type: "stay", failed: !clean };
    }

    const now = atMs - this.#waitedMs;
    this.#ends = [...this.#ends.filter((end) => now - end <= within_s * 1_000), now];
    if (this.#ends.length >= max) return { type: "give_up", ends: this.#ends.length };

    if (readyForMs >= RESTART_RESET_MS) this.#nextMs = backoff_ms;
    const ms = Math.min(this.#nextMs, RESTART_MAX_MS);
    this.#nextMs = ms * 2;
    this.#waitedMs += ms;
    return { type: "wait", ms };
  }
}

/** What to do now. */
export type Verdict =
  /** Start it again, so many milliseconds from now. */
  | { readonly state: "waiting"; readonly ms: number; readonly text: string }
  /** Leave it alone. */
  | { readonly state: "failed" | "stopped"; readonly text: string };

/** How a run was over. */
export interface Ending {
  readonly over: RunOver;
  /** Milliseconds it had been ready; 0: never. */
  readonly readyForMs: number;
  /** When it ended, by a clock that never goes back. */
  readonly atMs: number;
}

/** Judges the ends of one replica by its restart policy. */
export class UnaskedEnds {
  #policy: RestartPolicy | undefined;
  #settings: RestartSettings | undefined;

  /** Judges by these settings from now on; equal ones forget nothing. */
  judgeBy(settings: RestartSettings): void {
    if (JSON.stringify(settings) === JSON.stringify(this.#settings)) return;
    this.#settings = settings;
    this.#policy = new RestartPolicy(settings);
  }

  /** Forgets all ends: somebody started the worker by hand or changed it. */
  forget(): void {
    this.#policy?.reset();
  }

  /** What to do after an end, and how it is told. {@linkcode judgeBy} comes first. */
  judge({ over, readyForMs, atMs }: Ending): { readonly reason: string; readonly next: Verdict } {
    const reason = reasonOf(over, readyForMs);
    // One that runs and is never heard of will not do better the next time.
    if (over.type === "silent" && !over.wasReady) {
      return { reason, next: { state: "failed", text: reason } };
    }
    const clean = over.type === "ended" && over.ended.code === 0;
    const next = this.#policy!.ended({ readyForMs, atMs, clean });
    switch (next.type) {
      case "wait": {
        const text = `${reason}; next start in ${next.ms / 1_000} s`;
        return { reason, next: { state: "waiting", ms: next.ms, text } };
      }
      case "stay": {
        const text = `${reason}, and its restart policy is ${this.#settings!.policy}`;
        return { reason, next: { state: next.failed ? "failed" : "stopped", text } };
      }
      case "give_up": {
        const text = `Given up after it ended ${next.ends} times in short order: ${reason}`;
        return { reason, next: { state: "failed", text } };
      }
    }
  }
}

function reasonOf(over: RunOver, readyForMs: number): string {
  const seconds = READY_TIMEOUT_MS / 1_000;
  if (over.type === "silent") {
    return over.wasReady
      ? `It had no line to the engine for ${seconds} s`
      : `It did not register with the engine within ${seconds} s`;
  }
  return `It ended with ${describeEnd(over.ended)}${
    readyForMs === 0 ? " before it was ready" : ""
  }`;
}
