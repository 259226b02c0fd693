/**
 * What becomes of a replica whose program ended without being asked, in words too.
 *
 * @module
 */
import { READY_TIMEOUT_MS } from "./limits.ts";
import { describeEnd } from "../process/programs.ts";
import type { RunOver } from "./replica_run.ts";
import type { RestartSettings } from "../install/manifest.ts";
import { RestartPolicy } from "./restart_policy.ts";

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
