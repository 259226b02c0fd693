/**
 * The keeping of a cluster's state: the log that `engine.cluster.log` names, this engine's view of
 * it, and the {@linkcode Keeper}.
 *
 * An engine starts without waiting for any of it: NATS and the database may be away.
 *
 * @module
 */
import { thrownText } from "../../../sdk/typescript/wire/errors.ts";
import type { AppendTimesView, ClusterLogView } from "../../ports/directory.ts";
import type {
  LeaderKey,
  LogEnd,
  LogMessage,
  SnapshotPiece,
  StateLog,
} from "../../ports/state_log.ts";
import type { Clock } from "../../ports/clock.ts";
import type { StateCheck, StoreFile } from "../../ports/store.ts";
import { runInThread } from "../../store/state_thread.ts";
import { StateView } from "../../store/state_view.ts";
import type { ClusterKeeper, ClusterParts } from "../mod.ts";
import type { MemoryBudget } from "../../ports/memory.ts";
import type { Turns } from "../../ports/turns.ts";
import { openLog } from "./open_log.ts";
import { KeptStore } from "./kept_store.ts";
import { Keeper } from "./keeper.ts";

/** How long NATS has for its answer whether it has a line to an engine. */
const GONE_ANSWER_MS = 300;
/** Between two attempts to open the log. */
const OPEN_AGAIN_MS = 1_000;
/** Upper bounds of the times of appends, in seconds; a last bucket has everything above. */
const APPEND_BOUNDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** What keeping uses of the engine. */
export interface KeepingSetup {
  readonly parts: ClusterParts;
  readonly memory: MemoryBudget;
  /** Where the answers of commits have their turns. */
  readonly turns?: Turns;
  /** File of the engine's view of the state; its directory exists. */
  readonly path: string;
  /** Starts or ends the built-in workers that run where the state is kept. */
  serve(isKept: boolean): Promise<void>;
  /** Their names. */
  shared(): readonly string[];
}

/** The state of a cluster as one engine has it. */
export interface ClusterKeeping extends ClusterKeeper {
  /** Where built-in workers keep the state, while this engine does. */
  readonly store: KeptStore;
  /** The view's file, which is the state up to a moment ago at every engine. */
  readonly file: StoreFile;
  readonly isExpected: boolean;
  readonly takeovers: number;
  /** Begins to follow the log, and perhaps to keep the state. */
  start(): void;
}

/** Prepares keeping; nothing runs before its start. */
export function prepareKeeping(setup: KeepingSetup): ClusterKeeping {
  return new Keeping(setup);
}

class Keeping implements ClusterKeeping {
  readonly store = new KeptStore();
  readonly file: StoreFile;
  readonly #setup: KeepingSetup;
  readonly #ending = new AbortController();
  readonly #startedAt: number;
  #keeper: Keeper | undefined;
  #log: TimedLog | undefined;
  #opening: Promise<void> = Promise.resolve();
  /** Why the log could not be opened. */
  #problem: string | null = null;
  readonly #opened = new AsyncDisposableStack();

  constructor(setup: KeepingSetup) {
    this.#setup = setup;
    this.#startedAt = setup.parts.clock.now();
    const { path } = setup;
    const run = async (task: Parameters<typeof runInThread>[0]): Promise<StateCheck> =>
      (await runInThread(task))!;
    this.file = {
      check: () => run({ task: "check", path }),
      backup: (to) => run({ task: "copy", path, to }),
    };
  }

  get keeper(): string | undefined {
    return this.#keeper?.keeper;
  }

  get isExpected(): boolean {
    if (this.#keeper) return this.#keeper.isExpected;
    return this.#setup.parts.clock.now() - this.#startedAt < 15_000;
  }

  get takeovers(): number {
    return this.#keeper?.takeovers ?? 0;
  }

  get log(): ClusterLogView {
    const { log, copies, require_sync, insecure } = this.#setup.parts.settings;
    const kind = log === "jetstream" ? "jetstream" : "postgres";
    return {
      kind,
      copies: kind === "jetstream" ? copies : null,
      require_sync: require_sync && !insecure,
      ...this.#keeper?.followed ??
        { applied: null, behind: null, seen_ms_ago: null, bytes: 0, problem: this.#problem },
    };
  }

  get appends(): AppendTimesView | null {
    return this.#log?.times ?? null;
  }

  start(): void {
    this.#opening = this.#open();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#opening;
    await this.#opened.disposeAsync();
  }

  /** Never rejects. */
  async #open(): Promise<void> {
    const { parts, path } = this.#setup;
    const { log: report, clock } = parts;
    let problem = "";
    while (!this.#ending.signal.aborted) {
      await using opened = new AsyncDisposableStack();
      try {
        const { settings, bus } = parts;
        const { log, key } = opened.use(await openLog({ settings, bus, clock, log: report }));
        const view = opened.use(await StateView.open(path, report));
        if (this.#ending.signal.aborted) return;
        this.#keeper = opened.use(this.#createKeeper(log, key, view));
        this.#opened.use(opened.move());
        return;
      } catch (thrown) {
        const reason = thrownText(thrown);
        if (this.#ending.signal.aborted) return;
        if (reason !== problem) report.error("the log of the state cannot be opened", { reason });
        this.#problem = problem = reason;
      }
      await new Promise<void>((resolve) => {
        const cancel = clock.after(OPEN_AGAIN_MS, resolve);
        this.#ending.signal.addEventListener("abort", () => {
          cancel();
          resolve();
        }, { once: true });
      });
    }
  }

  #createKeeper(log: StateLog, key: LeaderKey, view: StateView): Keeper {
    const { parts, memory, turns, serve, shared } = this.#setup;
    const { settings, bus, life, clock, log: report } = parts;
    const timed = this.#log = new TimedLog(log, clock);
    return new Keeper({
      ...{ life, log: timed, key, view, clock, report, memory, turns, kept: this.store },
      mayKeep: settings.keeper,
      isReachable: () => bus.isConnected,
      isGone: (other) =>
        new Promise((resolve) => {
          const subject = `E.${settings.name}.to.${other}.keeper`;
          bus.request(subject, new Uint8Array(), GONE_ANSWER_MS, ({ state }) => {
            resolve(state === "no_responders");
          });
        }),
      async serve(isKept) {
        if (!isKept) parts.share([]);
        await serve(isKept);
        if (isKept) parts.share(shared());
      },
    });
  }
}

/**
 * A log whose appends are timed. An append is one group of writes, which wait for it together, so
 * these are the times that callers wait for the servers of the log.
 */
export class TimedLog implements StateLog {
  readonly times = {
    bounds: APPEND_BOUNDS,
    counts: new Array<number>(APPEND_BOUNDS.length + 1).fill(0),
    sum: 0,
  };
  readonly #log: StateLog;
  readonly #clock: Pick<Clock, "now">;

  constructor(log: StateLog, clock: Pick<Clock, "now">) {
    this.#log = log;
    this.#clock = clock;
  }

  get bytes(): number {
    return this.#log.bytes;
  }

  end(): Promise<LogEnd> {
    return this.#log.end();
  }

  async append(bytes: Uint8Array, after: number, signal?: AbortSignal): Promise<number> {
    const began = this.#clock.now();
    const number = await this.#log.append(bytes, after, signal);
    const seconds = (this.#clock.now() - began) / 1_000;
    const bucket = APPEND_BOUNDS.findIndex((bound) => seconds <= bound);
    this.times.counts[bucket < 0 ? APPEND_BOUNDS.length : bucket]!++;
    this.times.sum += seconds;
    return number;
  }

  read(from: number): AsyncIterable<LogMessage | SnapshotPiece> {
    return this.#log.read(from);
  }

  snapshot(pieces: AsyncIterable<Uint8Array>, upTo: number): Promise<void> {
    return this.#log.snapshot(pieces, upTo);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.#log[Symbol.asyncDispose]());
  }
}
