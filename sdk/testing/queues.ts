/**
 * The queues of a test engine (PROTOCOL 3.10, 4.16 and 5.4): jobs run when their time has come on
 * the test's clock, failed ones again after a delay, and are dead after the last attempt.
 *
 * Not there: concurrency (jobs of a `standard` queue all run at once), priorities, rates, kept
 * results, and the functions for operators.
 *
 * @module
 */
import { EngineError } from "../typescript/wire/errors.ts";
import type { ErrorBody, Json, JsonObject } from "../typescript/wire/protocol.ts";
import type { Routing } from "./routing.ts";

/** A job of a queue. */
export interface TestJob {
  /** Its id, as in the receipt. */
  readonly id: string;
  /** Name of its queue. */
  readonly queue: string;
  /** The function it calls. */
  readonly function_id: string;
  /** What the function gets. */
  readonly payload: Json;
  /** `waiting`: its function is not there, or another job of its group runs. */
  readonly state: "waiting" | "delayed" | "running" | "done" | "dead";
  /** Attempts that have begun. */
  readonly attempts: number;
  /** What the last attempt failed with. */
  readonly error: ErrorBody | undefined;
}

interface OpenJob extends TestJob {
  state: TestJob["state"];
  attempts: number;
  error: TestJob["error"];
  readonly namespace: string | undefined;
  readonly timeout_ms: number | undefined;
  readonly group: string | undefined;
}

interface Settings {
  readonly max_retries: number;
  readonly backoff_ms: number;
  readonly backoff_max_ms: number;
  readonly type: Json;
  readonly message_group_field: Json;
}

const DEFAULTS: Settings = {
  max_retries: 3,
  backoff_ms: 1_000,
  backoff_max_ms: 3_600_000,
  type: "standard",
  message_group_field: null,
};

/** The queues of one engine. */
export class Queues {
  /** All jobs, also those that are done. */
  readonly jobs: OpenJob[] = [];
  readonly #routing: Routing;
  readonly #settings = new Map<string, Settings>();

  /** @param names Queues of the configuration that the test stands for. */
  constructor(routing: Routing, names: readonly string[]) {
    this.#routing = routing;
    for (const name of ["default", ...names]) this.#settings.set(name, DEFAULTS);
    routing.types.set("queue", {
      added: ({ function_id, config }) => {
        const { name = function_id, ...settings } = (config ?? {}) as JsonObject;
        this.#settings.set(String(name), { ...DEFAULTS, ...settings } as unknown as Settings);
      },
    });
    routing.builtins.set("engine::queue::enqueue", (job) => this.#add(job as JsonObject));
    routing.functionAdded = () => {
      for (const job of this.jobs) if (job.state === "waiting") this.#begin(job);
    };
  }

  #add(given: JsonObject): JsonObject {
    const { queue, function_id, data = null, id, delay_ms, run_at_ms } = given;
    const settings = this.#settings.get(String(queue));
    if (!settings) throw new EngineError("enqueue_error", `Queue '${queue}' not found`);
    if (id !== undefined && this.jobs.some((job) => job.id === id)) {
      return { messageReceiptId: id, duplicate: true };
    }
    const wall = this.#routing.clock.wall();
    const delayMs = Number(delay_ms ?? (run_at_ms === undefined ? 0 : Number(run_at_ms) - wall));
    const job: OpenJob = {
      ...{ id: String(id ?? crypto.randomUUID()), queue: String(queue), payload: data },
      ...{ function_id: String(function_id), state: "delayed", attempts: 0, error: undefined },
      namespace: typeof given.namespace === "string" ? given.namespace : undefined,
      timeout_ms: given.timeout_ms === undefined ? undefined : Number(given.timeout_ms),
      group: groupOf(settings, data),
    };
    this.jobs.push(job);
    this.#beginAfter(job, delayMs);
    return { messageReceiptId: job.id };
  }

  #beginAfter(job: OpenJob, ms: number): void {
    if (ms > 0) this.#routing.clock.after(ms, () => this.#begin(job));
    else queueMicrotask(() => this.#begin(job));
  }

  #begin(job: OpenJob): void {
    if (!this.jobs.includes(job)) return; // The test has forgotten it.
    const { queue, function_id, namespace, payload, timeout_ms, group } = job;
    const isHeld = group !== undefined &&
      this.jobs.find((other) => other.queue === queue && other.group === group && isOpen(other)) !==
        job;
    job.state = "waiting";
    if (isHeld || !this.#routing.has(function_id, namespace)) return;
    job.state = "running";
    job.attempts++;
    this.#routing.call({ function_id, namespace, payload, timeout_ms }).then(
      () => this.#end(job, "done"),
      (error: EngineError) => this.#failed(job, error),
    );
  }

  #failed(job: OpenJob, error: EngineError): void {
    job.error = error.toJSON();
    const { max_retries, backoff_ms, backoff_max_ms } = this.#settings.get(job.queue)!;
    if (job.attempts >= max_retries) return this.#end(job, "dead");
    job.state = "delayed";
    const delay = Math.min(backoff_ms * 2 ** (job.attempts - 1), backoff_max_ms);
    // A worker that left has not failed: the next attempt follows at once.
    this.#beginAfter(job, error.code === "invocation_stopped" ? 0 : delay);
  }

  #end(job: OpenJob, state: "done" | "dead"): void {
    job.state = state;
    const next = this.jobs.find((other) =>
      other.queue === job.queue && other.group === job.group && other.state === "waiting"
    );
    if (next && job.group !== undefined) this.#begin(next);
  }
}

function isOpen({ state }: TestJob): boolean {
  return state !== "done" && state !== "dead";
}

/** The group of a job in a fifo queue, of which one runs at a time. */
function groupOf({ type, message_group_field }: Settings, data: Json): string | undefined {
  if (type !== "fifo") return undefined;
  const value = (data as JsonObject | null)?.[String(message_group_field)];
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw new EngineError("enqueue_error", `A job needs ${message_group_field} as its group`);
}
