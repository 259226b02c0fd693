/**
 * Jobs that are calls of functions: from a job to a call, and from its outcome to a verdict.
 *
 * A job begins only while a worker offers its function; until then it waits and no attempt is
 * counted. What the handler throws is a failed attempt. When its worker dies, the job is given out
 * again at once.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Directory } from "../../engine/ports/directory.ts";
import type { EngineEvent } from "../../engine/ports/events.ts";
import type { Job, JobFailure, QueueRunner, Verdict } from "../../engine/ports/queue.ts";
import { DEFAULT_NAMESPACE, type Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import type { QueueOptions } from "./settings.ts";

/** Longest attempt when neither the job nor its queue says: that of calls without a timeout. */
export const JOB_TIMEOUT_MS = 600_000;
/** Characters of a failure that are kept. */
const CODE_CHARS_MAX = 100;
const MESSAGE_CHARS_MAX = 2_000;
const STACK_CHARS_MAX = 8_000;
/** Functions whose workers are remembered. */
const REMEMBERED_MAX = 1_000;

/** The payload of a job that is a call. */
export interface FunctionJob {
  readonly function_id: string;
  readonly namespace?: string;
  readonly data: Json;
  readonly traceparent?: string;
  readonly baggage?: string;
  readonly metadata?: Json;
  /** How long one attempt may take. */
  readonly timeout_ms?: number;
  /** How long its result is kept. */
  readonly result_ms?: number;
  /** A function that is asked first; when it returns `false`, the job is done. */
  readonly condition?: string;
}

/** Numbers of workers by function, remembered until functions change. */
export class Replicas {
  readonly #directory: Pick<Directory, "function">;
  readonly #counts = new Map<string, number>();

  constructor(directory: Pick<Directory, "function">) {
    this.#directory = directory;
  }

  /** An event of the engine; `true` when functions may have changed. */
  changed({ type }: EngineEvent): boolean {
    const isChange = type === "functions_changed" || type === "worker_disconnected";
    if (isChange) this.#counts.clear();
    return isChange;
  }

  /** Workers that offer a function now. */
  count(namespace: string, function_id: string): number {
    const key = functionKey(namespace, function_id);
    let count = this.#counts.get(key);
    if (count === undefined) {
      count = this.#directory.function(namespace, function_id)?.worker_ids.length ?? 0;
      if (this.#counts.size >= REMEMBERED_MAX) this.#counts.clear();
      this.#counts.set(key, count);
    }
    return count;
  }
}

/** Dependencies of {@linkcode FunctionRunner}. */
export interface FunctionRunnerSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly replicas: Replicas;
  readonly clock: Pick<Clock, "wall">;
  /** The settings of the queue now. */
  options(): QueueOptions;
  /** A function has room for another job. */
  freed(key: string): void;
  /** Keeps the result of a job that asked for that. */
  keepResult(job: Job, result: Json): Promise<void>;
}

/** Runs the jobs of one queue. */
export class FunctionRunner implements QueueRunner {
  readonly #setup: FunctionRunnerSetup;
  /** Jobs that run, by function; kept only while each worker's are limited. */
  readonly #running = new Map<string, number>();

  constructor(setup: FunctionRunnerSetup) {
    this.#setup = setup;
  }

  gate(job: Job): string | undefined {
    const { function_id, namespace = DEFAULT_NAMESPACE } = callOf(job);
    const replicas = this.#setup.replicas.count(namespace, function_id);
    const perWorker = this.#setup.options().concurrency_per_worker ?? Infinity;
    const key = functionKey(namespace, function_id);
    const room = replicas === 0 ? 0 : replicas * perWorker;
    return (this.#running.get(key) ?? 0) < room ? undefined : key;
  }

  async run(job: Job, signal: AbortSignal): Promise<Verdict> {
    const { function_id, namespace = DEFAULT_NAMESPACE } = callOf(job);
    const key = functionKey(namespace, function_id);
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
    try {
      return await this.#call(job, signal);
    } finally {
      const rest = this.#running.get(key)! - 1;
      if (rest > 0) this.#running.set(key, rest);
      else this.#running.delete(key);
      if (this.#setup.options().concurrency_per_worker !== undefined) this.#setup.freed(key);
    }
  }

  async #call(job: Job, signal: AbortSignal): Promise<Verdict> {
    const call = callOf(job);
    const { function_id, namespace, data, metadata, traceparent, baggage } = call;
    const { worker, options } = this.#setup;
    let result: Json | undefined;
    const request = {
      function_id,
      payload: data,
      timeout_ms: call.timeout_ms ?? options().timeout_ms ?? JOB_TIMEOUT_MS,
      signal,
      ...namespace !== undefined && { namespace },
      ...metadata !== undefined && { metadata },
      ...traceparent !== undefined && { traceparent },
      ...baggage !== undefined && { baggage },
    };
    try {
      if (call.condition !== undefined) {
        const may = await worker.trigger<Json, Json>({ ...request, function_id: call.condition });
        if (may === false) return { done: true };
      }
      result = await worker.trigger<Json, Json | undefined>(request);
    } catch (thrown) {
      return this.#failed(call, thrown);
    }
    if (call.result_ms !== undefined) await this.#setup.keepResult(job, result ?? null);
    return { done: true };
  }

  #failed({ function_id, namespace = DEFAULT_NAMESPACE }: FunctionJob, thrown: unknown): Verdict {
    const { replicas, clock, options } = this.#setup;
    const failure = failureOf(thrown, clock.wall());
    const isAbsent = failure.code === "function_not_found" &&
      failure.message === `Function ${function_id} not found` &&
      replicas.count(namespace, function_id) === 0;
    if (isAbsent || failure.code === "overloaded") return { wait_ms: options().poll_interval_ms };
    return { retry: failure, isNow: failure.code === "invocation_stopped" };
  }
}

/** The call that a job is. */
export function callOf({ payload }: Pick<Job, "payload">): FunctionJob {
  return payload as unknown as FunctionJob;
}

function functionKey(namespace: string, function_id: string): string {
  return `${namespace} ${function_id}`;
}

function failureOf(thrown: unknown, at_ms: number): JobFailure {
  const { code, message, stacktrace } = thrown as {
    code?: unknown;
    message?: unknown;
    stacktrace?: unknown;
  };
  const known = typeof code === "string" ? code : "invocation_failed";
  const text = typeof message === "string" ? message : String(thrown);
  // The SDK's error of a call has its code before the message.
  const plain = text.startsWith(`${known}: `) ? text.slice(known.length + 2) : text;
  return {
    at_ms,
    code: cut(known, CODE_CHARS_MAX),
    message: cut(plain, MESSAGE_CHARS_MAX),
    ...typeof stacktrace === "string" && { stacktrace: cut(stacktrace, STACK_CHARS_MAX) },
  };
}

function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax).toWellFormed()}…`;
}
