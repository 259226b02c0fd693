/**
 * All queues of an engine on its store: {@linkcode Queues}, embedded.
 *
 * One loop begins the jobs of all queues. It runs outside of any call, so that a job never inherits
 * the deadline of the call that enqueued it or ended another one.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import type {
  DeadJob,
  Job,
  JobInput,
  QueueCounts,
  QueueRunner,
  Queues,
  QueueSettings,
  WaitingJob,
} from "../../engine/ports/queue.ts";
import type { Store } from "../../engine/ports/store.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { JobQueue } from "./job_queue.ts";
import {
  forgetIds,
  JobStore,
  MOVED_MAX,
  openNumbers,
  orderOf,
  type StoredJob,
} from "./job_store.ts";

/** Between two looks at ids whose day is over. */
const FORGET_MS = 60_000;

/** Dependencies of {@linkcode openQueues}. */
export interface QueuesSetup {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  /** 0 to 1; for the variation of delays. */
  random(): number;
}

/** Opens the queues of a store; they begin when they are served. */
export async function openQueues(setup: QueuesSetup): Promise<Queues> {
  return new StoreQueues(setup, await openNumbers(setup.store));
}

class StoreQueues implements Queues {
  readonly #setup: QueuesSetup;
  readonly #number: () => string;
  readonly #queues = new Map<string, { readonly queue: JobQueue; readonly jobs: JobStore }>();
  readonly #woken = new Set<JobQueue>();
  #signal = Promise.withResolvers<void>();
  #isEnding = false;
  readonly #loop: Promise<void>;
  #cancelForget: (() => void) | undefined;
  #forgetting: Promise<void> = Promise.resolve();

  constructor(setup: QueuesSetup, number: () => string) {
    this.#setup = setup;
    this.#number = number;
    this.#loop = this.#run();
    this.#forgetLater();
  }

  put(name: string, job: JobInput): Promise<boolean> {
    try {
      return this.#of(name).queue.put(job);
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  async serve(
    name: string,
    settings: QueueSettings,
    runner: QueueRunner,
  ): Promise<AsyncDisposable> {
    const { store, clock, log, memory, random } = this.#setup;
    const jobs = new JobStore(store, name);
    const queue: JobQueue = new JobQueue({
      name,
      jobs,
      settings,
      runner,
      clock,
      log,
      memory,
      random,
      number: this.#number,
      wake: () => this.#wake(queue),
    });
    this.#queues.set(name, { queue, jobs });
    await queue.start();
    return {
      [Symbol.asyncDispose]: async () => {
        this.#queues.delete(name);
        await queue.stop();
      },
    };
  }

  configure(name: string, settings: QueueSettings): void {
    this.#of(name).queue.settings = settings;
  }

  wake(name: string, key?: string): void {
    this.#queues.get(name)?.queue.open(key);
  }

  counts(name: string): QueueCounts {
    return this.#of(name).queue.counts;
  }

  running(name: string): readonly Job[] {
    return this.#of(name).queue.running;
  }

  async peek(name: string, limit: number): Promise<WaitingJob[]> {
    const { queue, jobs } = this.#of(name);
    const running = new Set(queue.running.map(({ id }) => id));
    const ready = await jobs.lanes(limit, undefined);
    const rest = limit - ready.jobs.length;
    const later = rest > 0 ? (await jobs.later(rest)).jobs : [];
    const view = (state: "waiting" | "delayed") => ({ job, bytes }: StoredJob): WaitingJob => {
      return { ...job, bytes, state: running.has(job.id) ? "running" : state };
    };
    return [...ready.jobs.map(view("waiting")), ...later.map(view("delayed"))];
  }

  async dead(name: string, limit: number, after = ""): Promise<DeadJob[]> {
    const { jobs } = await this.#of(name).jobs.dead(limit, after);
    return jobs.map(({ order, job, bytes }) => {
      const failed_at_ms = job.failures.at(-1)?.at_ms ?? job.enqueued_at_ms;
      return { ...job, bytes, failed_at_ms, position: order };
    });
  }

  async redrive(
    name: string,
    ids: readonly string[] | "all",
    edit: (payload: Json) => Json = (payload) => payload,
  ): Promise<number> {
    const { queue, jobs } = this.#of(name);
    let count = 0;
    for await (const page of this.#deadPages(jobs, ids)) {
      for (const dead of page) {
        const { due_at_ms: _due, expires_at_ms: _expires, ...rest } = dead.job;
        const job: Job = { ...rest, attempts: 0, payload: edit(rest.payload) };
        const priority = queue.settings.fifo ? 0 : job.priority;
        const stored = await jobs.redrive(dead, job, orderOf(priority, this.#number()));
        if (!stored) continue;
        queue.revived(dead, stored);
        count++;
      }
    }
    return count;
  }

  async discard(name: string, ids: readonly string[] | "all"): Promise<number> {
    const { queue, jobs } = this.#of(name);
    let count = 0;
    for await (const page of this.#deadPages(jobs, ids)) {
      const gone = await jobs.discard(page);
      for (const dead of gone) queue.discarded(dead);
      count += gone.length;
    }
    return count;
  }

  purge(name: string): Promise<number> {
    return this.#of(name).queue.purge();
  }

  async pause(name: string, isPaused: boolean): Promise<void> {
    await this.#of(name).queue.pause(isPaused);
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.drain()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    this.#cancelForget?.();
    this.#signal.resolve();
    await this.#loop;
    await Promise.all([...this.#queues.values()].map(({ queue }) => queue.stop()));
    await this.#forgetting;
    this.#queues.clear();
  }

  /** The dead jobs that there are now, in pages. */
  async *#deadPages(
    jobs: JobStore,
    ids: readonly string[] | "all",
  ): AsyncGenerator<readonly StoredJob[]> {
    if (ids !== "all") {
      for (let at = 0; at < ids.length; at += MOVED_MAX) {
        yield await jobs.deadById(ids.slice(at, at + MOVED_MAX));
      }
      return;
    }
    // Those that die meanwhile are left.
    const end = (await jobs.dead(1, ""))?.jobs.length > 0 ? orderOf(0, this.#number()) : "";
    for (let after = ""; end !== "";) {
      const page = await jobs.dead(MOVED_MAX, after);
      if (page.jobs.length > 0) yield page.jobs.filter(({ order }) => order < end);
      after = page.jobs.at(-1)?.order ?? after;
      if (page.isLast || after >= end) return;
    }
  }

  #of(name: string): { readonly queue: JobQueue; readonly jobs: JobStore } {
    const found = this.#queues.get(name);
    if (found) return found;
    throw new EngineError("enqueue_error", `Queue '${name}' not found`);
  }

  #wake(queue: JobQueue): void {
    if (this.#woken.size === 0) this.#signal.resolve();
    this.#woken.add(queue);
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#signal.promise;
      if (this.#isEnding) return;
      const woken = [...this.#woken];
      this.#woken.clear();
      this.#signal = Promise.withResolvers();
      for (const queue of woken) queue.pass();
    }
  }

  #forgetLater(): void {
    this.#cancelForget = this.#setup.clock.after(FORGET_MS, () => {
      const { store, clock, log } = this.#setup;
      this.#forgetting = forgetIds(store, clock.wall()).then(() => {}, (thrown) => {
        log.warn("old ids of jobs cannot be removed", { reason: String(thrown) });
      }).finally(() => this.#isEnding || this.#forgetLater());
    });
  }
}
