/**
 * Workers that are being added: first the engine is asked, one worker after the other, then each is
 * followed until it is ready.
 *
 * @module
 */
import type { EngineInfo, Isolation, WorkerStatus } from "../../../engine/mod.ts";
import type { JsonObject } from "../../../mod.ts";
import { describeFailure, EXIT_DONE, EXIT_NOT_READY } from "../../failure.ts";
import type { Progress, ProgressRow } from "../../progress.ts";
import { renderDuration } from "../../render.ts";
import type { EngineLine, Terminal } from "../../terminal.ts";
import { ANSWER_MS_MAX, type Followed, FollowedWorker } from "./follow.ts";
import { standOf, type Wish } from "./phase.ts";
import type { WantedWorker } from "./words.ts";

/** Answer of `engine::supervisor::add`. */
interface AddAnswer {
  readonly added: boolean;
  readonly changed: boolean;
  readonly config_path: string;
  readonly worker: WorkerStatus;
}

/** What adding needs. */
export interface AddingOptions {
  readonly engine: EngineLine;
  readonly terminal: Terminal;
  readonly progress: Progress;
  /** `false`: being added is enough. */
  readonly waits: boolean;
  /** Ctrl-C: what the engine has not been asked for yet is left. */
  readonly signal: AbortSignal;
}

/** Starts to add workers, in their order; each can be followed at once. */
export async function addAll(
  wanted: readonly WantedWorker[],
  options: AddingOptions,
): Promise<readonly Followed[]> {
  const { engine, progress, signal } = options;
  const info = await engine.call("engine::supervisor::info", {}, { signal });
  const { platform } = info as unknown as EngineInfo;
  const answer = await engine.call("engine::supervisor::list", {}, { signal });
  const { workers } = answer as unknown as { workers: WorkerStatus[] };
  const adding = wanted.map((worker) =>
    new AddedWorker(worker, workers, progress.row(worker.word), options)
  );
  void addInTurn(adding, platform, options);
  return adding;
}

async function addInTurn(
  adding: readonly AddedWorker[],
  platform: string,
  { progress, signal }: AddingOptions,
): Promise<void> {
  let isSaid = platform === "linux";
  for (const worker of adding) {
    if (signal.aborted) return;
    const isolation = await worker.add();
    if (isSaid || isolation !== "process" || worker.isTold) continue;
    progress.say("microVMs need Linux, so workers run as plain processes here by default");
    isSaid = true;
  }
}

/** One worker, from the request on. */
class AddedWorker implements Followed {
  readonly #wanted: WantedWorker;
  readonly #present: readonly WorkerStatus[];
  readonly #row: ProgressRow;
  readonly #options: AddingOptions;
  #exitCode: number | undefined;
  #worker: FollowedWorker | undefined;
  #isAsked = false;

  constructor(
    wanted: WantedWorker,
    present: readonly WorkerStatus[],
    row: ProgressRow,
    options: AddingOptions,
  ) {
    this.#wanted = wanted;
    this.#present = present;
    this.#row = row;
    this.#options = options;
  }

  get name(): string {
    return this.#worker?.name ?? this.#wanted.word;
  }

  get exitCode(): number | undefined {
    return this.#exitCode ?? this.#worker?.exitCode;
  }

  get isAsked(): boolean {
    return this.#isAsked;
  }

  /** Somebody has said how it is to be kept apart. */
  get isTold(): boolean {
    return this.#wanted.request["isolation"] !== undefined;
  }

  /** Asks the engine; how the worker will be kept apart, if it is added. Does not throw. */
  async add(): Promise<WorkerStatus["isolation"]> {
    if (this.#exitCode !== undefined) return null; // It has taken too long already.
    this.#isAsked = true;
    try {
      const { engine } = this.#options;
      const { request } = this.#wanted;
      const options = { timeout_ms: ANSWER_MS_MAX };
      const answer = await engine.call("engine::supervisor::add", request, options);
      return this.#added(answer as unknown as AddAnswer);
    } catch (thrown) {
      if (this.#exitCode !== undefined || this.#options.signal.aborted) return null;
      const { lines, exitCode } = describeFailure(thrown);
      this.#exitCode = exitCode;
      this.#row.done("not added", { err: lines });
      return null;
    }
  }

  async poll(): Promise<void> {
    await this.#worker?.poll();
  }

  giveUp(timeoutMs: number): void {
    if (this.#worker) return this.#worker.giveUp(timeoutMs);
    this.#exitCode = EXIT_NOT_READY;
    const what = this.#isAsked ? "is still being added" : "is not added yet";
    const message = `error: ${this.name} ${what} after ${renderDuration(timeoutMs)}; ` +
      "see: engine worker list";
    this.#row.done("not added yet", { err: [message] });
  }

  #added({ added, changed, config_path, worker }: AddAnswer): WorkerStatus["isolation"] {
    const { engine, terminal, waits } = this.#options;
    const { name, state, isolation } = worker;
    if (this.#exitCode !== undefined) return isolation; // Given up while it was asked.
    this.#row.name = name;
    if (added) this.#row.phase(`added to ${config_path}`);
    else if (changed) this.#row.phase(`changed in ${config_path}`);
    else this.#row.phase(`is in ${config_path} already`);
    if (!waits) {
      this.#exitCode = EXIT_DONE;
      this.#row.done(state, { out: [`${name} is ${state}; see: engine worker status ${name}`] });
      return isolation;
    }
    const isAnew = this.#wanted.request["reinstall"] === true;
    const before = added ? undefined : this.#present.find((each) => each.name === name);
    const isTouched = changed || isAnew || (before && standOf(before) === "ended");
    this.#worker = new FollowedWorker({
      engine,
      terminal,
      row: this.#row,
      name,
      goal: "ready",
      before: isTouched ? before : undefined,
      renewed: changed || isAnew ? "all" : "one",
      mayRest: changed && !isAnew,
      wish: wishOf(this.#wanted.request),
    });
    return isolation;
  }
}

function wishOf({ isolation, accel, replicas }: JsonObject): Wish {
  return {
    ...isolation === undefined ? {} : { isolation: isolation as Isolation },
    ...accel === "kvm" || accel === "tcg" ? { accelerator: accel } : {},
    ...replicas === undefined ? {} : { replicas: Number(replicas) },
  };
}
