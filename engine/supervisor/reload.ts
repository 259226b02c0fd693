/**
 * Starts a new version of a replica beside the program that serves.
 *
 * The caller switches when it is ready. If it does not become ready it is ended, with the reason
 * and the line of its output that explains it best; what it printed is in the worker's log.
 *
 * @module
 */
import { describeThrown } from "../../sdk/typescript/wire/errors.ts";
import { STOP_GRACE_MS } from "../process/process_group.ts";
import { describeEnd } from "../process/programs.ts";
import { untilAborted } from "./abortable.ts";
import type { Release } from "./releases.ts";
import { READY_TIMEOUT_MS, ReplicaRun, type RunEvents, type RunTools } from "./replica_run.ts";

/** Lines of output among which the cause of a failure is looked for. */
const LINES_KEPT = 20;
/** Characters of such a line in a reason. */
const LINE_CHARS_MAX = 200;

/** How a reload ended. */
export type ReloadOutcome =
  /** The new version serves. */
  | { readonly type: "ready" }
  /** It has ended, because a program that runs holds the address that it listens on. */
  | { readonly type: "address_in_use" }
  /** It has ended. */
  | { readonly type: "failed"; readonly reason: string }
  /** The signal aborted; it has ended. */
  | { readonly type: "aborted" };

/** What a {@linkcode Reload} reports to. */
export interface ReloadContext {
  /** Receives the events of the run as well. */
  events(run: () => ReplicaRun): RunEvents;
  /** What it does now. */
  phase(what: string): void;
}

/** One new version on its way. */
export class Reload {
  readonly run: ReplicaRun;
  readonly #context: ReloadContext;
  readonly #ready = Promise.withResolvers<ReloadOutcome>();
  #lines: string[] = [];

  /** Recognizes connections of the new program from now on; {@linkcode start} starts it. */
  constructor(release: Release, tools: RunTools, context: ReloadContext) {
    this.#context = context;
    const events = context.events(() => this.run);
    this.run = new ReplicaRun(release, tools, {
      ...events,
      line: (line) => {
        this.#lines.push(line.text);
        if (this.#lines.length > LINES_KEPT) this.#lines.shift();
        events.line(line);
      },
      phase: (what) => {
        context.phase(`Its new version is starting: ${what}`);
        events.phase(what);
      },
      ready: () => {
        this.#ready.resolve({ type: "ready" });
        events.ready();
      },
    });
  }

  /** Starts the program under a unique name and waits until it is ready or has ended. */
  async start(name: string, signal: AbortSignal): Promise<ReloadOutcome> {
    this.#context.phase("Its new version is starting");
    try {
      await this.run.start(name, signal);
    } catch (thrown) {
      if (signal.aborted) return { type: "aborted" };
      return { type: "failed", reason: describeThrown(thrown).message };
    }
    const over = this.run.over.then((over): ReloadOutcome => {
      if (over.type === "silent") return { type: "failed", reason: this.#explained(SILENT) };
      if (this.#lines.some((line) => ADDRESS_IN_USE.test(line))) return { type: "address_in_use" };
      const how = `It ended with ${describeEnd(over.ended)} before it was ready`;
      return { type: "failed", reason: this.#explained(how) };
    });
    const outcome = await untilAborted(Promise.race([this.#ready.promise, over]), signal) ??
      { type: "aborted" };
    if (outcome.type !== "ready") await this.run.running?.stop(STOP_GRACE_MS);
    return outcome;
  }

  #explained(reason: string): string {
    const line = causeIn(this.#lines);
    return line === undefined ? reason : `${reason}: ${line}`;
  }
}

const SILENT = `It did not register within ${READY_TIMEOUT_MS / 1_000} s`;
const ADDRESS_IN_USE = /EADDRINUSE|AddrInUse|address (is )?already in use/i;

/** The line that explains a failure best: the last one about an error, else the last one. */
export function causeIn(lines: readonly string[]): string | undefined {
  const texts = lines.map((line) => line.trim()).filter((line) => line !== "");
  const found =
    texts.findLast((line) => /error|exception|panic|fatal|denied|not found/i.test(line)) ??
      texts.at(-1);
  if (found === undefined || found.length <= LINE_CHARS_MAX) return found;
  return `${found.slice(0, LINE_CHARS_MAX)}…`;
}
