/**
 * The queues that have a name: those of the configuration and `default`.
 *
 * A queue here is its settings and its runner; the jobs are with {@linkcode Queues}.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import { LANE_BYTES_MAX, type QueueCounts, type Queues } from "../../engine/ports/queue.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { callOf, type FunctionJob, FunctionRunner, type Replicas } from "./function_jobs.ts";
import type { JobResults } from "./job_results.ts";
import type { EnqueueInput } from "./payloads.ts";
import { isQueueName, QUEUE_NAME_CHARS_MAX, type QueueOptions, settingsOf } from "./settings.ts";

/** Dependencies of {@linkcode NamedQueues}. */
export interface NamedQueuesSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly clock: Clock;
  readonly queues: Queues;
  readonly replicas: Replicas;
  readonly results: JobResults;
}

/** A queue with a name. */
export interface NamedQueue {
  readonly name: string;
  options: QueueOptions;
}

/** All queues with a name. */
export class NamedQueues {
  readonly #setup: NamedQueuesSetup;
  readonly #byName = new Map<string, NamedQueue>();
  readonly #coming = new Map<string, Promise<unknown>>();

  constructor(setup: NamedQueuesSetup) {
    this.#setup = setup;
  }

  /** Adds a queue, and begins to give its jobs out; one that is there gets these settings. */
  async add(name: string, options: QueueOptions): Promise<void> {
    const known = this.#byName.get(name);
    if (known) {
      known.options = options;
      return this.#setup.queues.configure(name, settingsOf(options));
    }
    const { worker, clock, queues, replicas, results } = this.#setup;
    const queue: NamedQueue = { name, options };
    const runner = new FunctionRunner({
      worker,
      clock,
      replicas,
      options: () => queue.options,
      freed: (key) => queues.wake(name, key),
      keepResult: (job, result) => results.keep(job.id, result, callOf(job).result_ms!),
    });
    this.#byName.set(name, queue);
    await queues.serve(name, settingsOf(options), runner);
  }

  /**
   * A queue is about to be added, or refused, when `done` settles. Jobs for it wait so long: a
   * worker may declare its queue and enqueue to it in one breath.
   */
  announce(name: string, done: Promise<unknown>): void {
    const settled: Promise<unknown> = done.catch(() => {}).then(() => {
      if (this.#coming.get(name) === settled) this.#coming.delete(name);
    });
    this.#coming.set(name, settled);
  }

  /** Names, sorted. */
  get names(): string[] {
    return [...this.#byName.keys()].sort();
  }

  /**
   * The queue of a name.
   *
   * @throws {EngineError} `enqueue_error`; `details.similar` has the name that was probably meant.
   */
  get(name: string): NamedQueue {
    const found = this.#byName.get(name);
    if (found) return found;
    const similar = similarNames(name, this.#byName.keys());
    const shown = name.length <= QUEUE_NAME_CHARS_MAX
      ? name
      : `${name.slice(0, QUEUE_NAME_CHARS_MAX).toWellFormed()}…`;
    throw new EngineError("enqueue_error", `Queue '${shown}' not found`, {
      details: similar.length === 0 ? {} : { similar },
    });
  }

  /** Keeps a job; resolves with the receipt when it is on disk. */
  async enqueue(input: EnqueueInput, traceparent: string | undefined): Promise<JsonObject> {
    if (!this.#byName.has(input.queue)) await this.#coming.get(input.queue);
    const { name, options } = this.get(input.queue);
    // Queues of subscribers have other names; they get messages of their topic only.
    if (!isQueueName(name)) throw new EngineError("enqueue_error", `Queue '${name}' not found`);
    const now = this.#setup.clock.wall();
    const data = (input.data ?? null) as Json;
    const lane = laneOf(options, input, data);
    const expiresMs = input.expires_ms ?? options.expires_ms;
    const at_ms = input.delay_ms === undefined ? input.run_at_ms : now + input.delay_ms;
    const id = input.id ?? input.messageReceiptId ?? crypto.randomUUID();
    if (options.type === "fifo" && (input.priority ?? 0) > 0) {
      throw new EngineError("enqueue_error", `Queue '${name}' is fifo, so it has no priorities`);
    }
    const job = {
      id,
      isUnique: input.id !== undefined,
      payload: jobOf(input, data, traceparent) as unknown as Json,
      lane,
      priority: input.priority,
      at_ms,
      expires_at_ms: expiresMs === undefined ? undefined : Math.max(now, at_ms ?? 0) + expiresMs,
    };
    try {
      const isNew = await this.#setup.queues.put(name, job);
      return isNew ? { messageReceiptId: id } : { messageReceiptId: id, duplicate: true };
    } catch (thrown) {
      throw refused(name, thrown);
    }
  }

  /** Keeps a job of a queue whose jobs have one lane. */
  async put(
    name: string,
    { delay_ms, ...job }: FunctionJob & { readonly delay_ms?: number },
    traceparent: string | undefined,
  ): Promise<void> {
    const payload = { ...job, ...traceparent !== undefined && { traceparent } };
    const now = this.#setup.clock.wall();
    await this.#setup.queues.put(name, {
      id: crypto.randomUUID(),
      payload: payload as unknown as Json,
      lane: "=",
      at_ms: delay_ms === undefined ? undefined : now + delay_ms,
    }).catch((thrown) => {
      throw refused(name, thrown);
    });
  }

  /** What a queue holds and how it is set. */
  view(name: string): JsonObject {
    const { options } = this.get(name);
    const counts: QueueCounts = this.#setup.queues.counts(name);
    const { oldest_at_ms } = counts;
    const age = oldest_at_ms === null ? null : this.#setup.clock.wall() - oldest_at_ms;
    const config = JSON.parse(JSON.stringify(options)) as JsonObject;
    return { name, ...counts, oldest_age_ms: age, config };
  }
}

/** The job of a request. */
function jobOf(input: EnqueueInput, data: Json, traceparent: string | undefined): FunctionJob {
  const { function_id, namespace, baggage, timeout_ms, keep_result_ms } = input;
  const trace = traceparent ?? input.traceparent;
  return {
    function_id,
    ...namespace !== undefined && { namespace },
    data,
    ...trace !== undefined && { traceparent: trace },
    ...baggage !== undefined && { baggage },
    ...timeout_ms !== undefined && { timeout_ms },
    ...keep_result_ms !== undefined && { result_ms: keep_result_ms },
  };
}

/** The lane of a job: its group in a fifo queue, else its function. */
function laneOf(options: QueueOptions, input: EnqueueInput, data: Json): string {
  const lane = options.type === "fifo"
    ? groupOf(input.queue, options.message_group_field!, data)
    : `${input.namespace ?? "default"} ${input.function_id}`;
  const what = options.type === "fifo" ? "group" : "function id";
  // A long text would grow first, and be refused afterwards.
  const encoded = lane.length > LANE_BYTES_MAX ? lane : encodeURIComponent(lane.toWellFormed());
  if (encoded.length < LANE_BYTES_MAX) return `=${encoded}`;
  throw new EngineError(
    "enqueue_error",
    `The ${what} of a job for queue '${input.queue}' is too long: ${lane.length} characters; ` +
      `percent-encoded, ${LANE_BYTES_MAX - 1} bytes are allowed`,
  );
}

function groupOf(queue: string, field: string, data: Json): string {
  const isObject = typeof data === "object" && data !== null && !Array.isArray(data);
  const value = isObject && Object.hasOwn(data, field) ? data[field] : undefined;
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return String(value);
  }
  const received = value === undefined
    ? "which the payload does not have"
    : `which is ${value === null ? "null" : Array.isArray(value) ? "a list" : "an object"}`;
  throw new EngineError(
    "enqueue_error",
    `Queue '${queue}' groups its jobs by the field '${field}', ${received}; ` +
      "expected a string, a number or a boolean",
    { details: { field } },
  );
}

/** An error of the store as that of an enqueue. */
function refused(queue: string, thrown: unknown): unknown {
  if (!(thrown instanceof EngineError)) return thrown;
  const { code, message, details } = thrown;
  if (code !== "VALUE_TOO_LARGE" && code !== "SET_ERROR") return thrown;
  const what = code === "SET_ERROR" ? "could not be kept" : "is too large";
  return new EngineError("enqueue_error", `The job for queue '${queue}' ${what}: ${message}`, {
    ...details && { details },
    cause: thrown,
  });
}
