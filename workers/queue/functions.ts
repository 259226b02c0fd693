/**
 * The functions of `engine-queue`.
 *
 * @module
 */
import type { Directory } from "../../engine/ports/directory.ts";
import type { DeadJob, QueueCounts, Queues, WaitingJob } from "../../engine/ports/queue.ts";
import type { CallContext, Handler } from "../../sdk/typescript/options.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  DEFAULT_NAMESPACE,
  type Json,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import { callOf } from "./function_jobs.ts";
import type { JobResults } from "./job_results.ts";
import type { NamedQueues } from "./named_queues.ts";
import type { Topics } from "./topics.ts";
import {
  DeadRequest,
  FORMATS,
  MessageRequest,
  MessagesRequest,
  PeekRequest,
  PublishRequest,
  QueueRequest,
  readEnqueue,
  ResultRequest,
  TopicRequest,
} from "./payloads.ts";

/** Bytes of jobs in one answer; it ends with the job that reaches them. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
/** Dead jobs that are read at once. */
const PAGE = 200;

/** Dependencies of {@linkcode QueueFunctions}. */
export interface QueueFunctionsSetup {
  readonly named: NamedQueues;
  readonly queues: Queues;
  readonly results: JobResults;
  readonly topics: Topics;
  readonly directory: Pick<Directory, "visibleTo">;
}

/** What names a queue; a topic is another name of its queue. */
interface Place {
  readonly queue?: string | undefined;
  readonly topic?: string | undefined;
}

/** The implementation of each function. */
export class QueueFunctions {
  readonly #setup: QueueFunctionsSetup;

  constructor(setup: QueueFunctionsSetup) {
    this.#setup = setup;
  }

  /** Registers all functions. */
  register(worker: Pick<Worker, "registerFunction">): void {
    const functions: Record<keyof typeof FORMATS, Handler> = {
      enqueue: (payload, _metadata, context) => this.enqueue(payload, context),
      list: () => this.list(),
      stats: (payload) => this.stats(payload),
      peek: (payload) => this.peek(payload),
      pause: (payload) => this.pause("pause", payload, true),
      resume: (payload) => this.pause("resume", payload, false),
      purge: (payload) => this.purge(payload),
      redrive: (payload) => this.redrive(payload),
      redrive_message: (payload) => this.redriveMessage(payload),
      discard: (payload) => this.discard(payload),
      discard_message: (payload) => this.discardMessage(payload),
      list_topics: () => this.listTopics(),
      topic_stats: (payload) => this.topicStats(payload),
      dlq_topics: () => this.deadTopics(),
      dlq_messages: (payload) => this.deadMessages(payload),
      result: (payload) => this.result(payload),
    };
    for (const [name, format] of Object.entries(FORMATS)) {
      const id = `engine::queue::${name}`;
      worker.registerFunction(id, functions[name as keyof typeof FORMATS], format);
    }
    worker.registerFunction(
      "engine::durable::publish",
      (payload, _metadata, context) => this.publish(payload, context),
      {
        description: "Keeps a copy of a message for each durable subscriber of its topic",
        request_format: v.jsonSchema(PublishRequest),
      },
    );
  }

  async publish(payload: Json, { traceparent }: CallContext): Promise<void> {
    const { topic, data } = fit("engine::durable::publish", PublishRequest, payload);
    await this.#setup.topics.publish(topic, (data ?? null) as Json, traceparent);
  }

  listTopics(): Json {
    const { topics } = this.#setup;
    return topics.topics.map((name) => {
      return { name, broker_type: "builtin", subscriber_count: topics.of(name).length };
    });
  }

  topicStats(payload: Json): JsonObject {
    const { topic } = fit("engine::queue::topic_stats", TopicRequest, payload);
    const { named, topics } = this.#setup;
    const found = topics.of(topic);
    if (found.length === 0) {
      throw new EngineError("NOT_FOUND", `Topic '${topic}' has no durable subscriber`);
    }
    const views = found.map(({ queue, function_id }) => ({ ...named.view(queue), function_id }));
    const sum = (name: keyof QueueCounts): number =>
      found.reduce((all, { queue }) => all + Number(this.#setup.queues.counts(queue)[name]), 0);
    return {
      depth: sum("waiting") + sum("running") + sum("delayed"),
      consumer_count: found.length,
      dlq_depth: sum("dead"),
      config: { subscribers: views as unknown as Json },
    };
  }

  enqueue(payload: Json, context: CallContext): Promise<JsonObject> {
    const input = readEnqueue(payload);
    const { function_id, namespace = DEFAULT_NAMESPACE } = input;
    const isVisible = this.#setup.directory.visibleTo(context.caller);
    if (isVisible && !isVisible(function_id, namespace)) {
      const message = `The access rules of this connection do not allow calls of ${function_id}`;
      throw new EngineError("FORBIDDEN", message);
    }
    return this.#setup.named.enqueue(input, context.traceparent);
  }

  /** A queue; that of a subscriber has its topic and function. */
  #view(name: string): JsonObject {
    const { named, topics } = this.#setup;
    const subscription = topics.byQueue(name);
    if (!subscription) return named.view(name);
    const { topic, function_id } = subscription;
    return { ...named.view(name), topic, function_id };
  }

  list(): JsonObject {
    const { named } = this.#setup;
    return { queues: named.names.map((name) => this.#view(name)) };
  }

  stats(payload: Json): JsonObject {
    const { queue } = fit("engine::queue::stats", QueueRequest, payload);
    const { queues } = this.#setup;
    const view = this.#view(queue);
    const running_jobs = queues.running(queue).map((job): JsonObject => {
      const { function_id, traceparent } = callOf(job);
      const { id, attempts, enqueued_at_ms } = job;
      return { id, function_id, attempt: attempts + 1, enqueued_at_ms, ...traceOf(traceparent) };
    });
    return { ...view, running_jobs };
  }

  async peek(payload: Json): Promise<JsonObject> {
    const { queue, limit } = fit("engine::queue::peek", PeekRequest, payload);
    const { name } = this.#setup.named.get(queue);
    const jobs = await this.#setup.queues.peek(name, limit);
    return { jobs: jobs.map(waitingView) };
  }

  async pause(name: string, payload: Json, isPaused: boolean): Promise<JsonObject> {
    const { queue } = fit(`engine::queue::${name}`, QueueRequest, payload);
    await this.#setup.queues.pause(this.#setup.named.get(queue).name, isPaused);
    return { queue, paused: isPaused };
  }

  async purge(payload: Json): Promise<JsonObject> {
    const { queue } = fit("engine::queue::purge", QueueRequest, payload);
    const { name } = this.#setup.named.get(queue);
    return { queue, purged: await this.#setup.queues.purge(name) };
  }

  async redrive(payload: Json): Promise<JsonObject> {
    const request = fit("engine::queue::redrive", MessagesRequest, payload);
    const { queue, names } = this.#placeOf(request);
    let redriven = 0;
    for (const name of names) {
      redriven += await this.#setup.queues.redrive(name, request.message_ids ?? "all");
    }
    return { queue, redriven };
  }

  async redriveMessage(payload: Json): Promise<JsonObject> {
    const request = fit("engine::queue::redrive_message", MessageRequest, payload);
    const { message_id, data } = request;
    const { queue, names } = this.#placeOf(request);
    const edit = data === undefined
      ? undefined
      : (job: Json): Json => ({ ...job as JsonObject, data: data as Json });
    let redriven = 0;
    for (const name of names) {
      redriven += await this.#setup.queues.redrive(name, [message_id], edit);
    }
    return { queue, message_id, redriven };
  }

  async discard(payload: Json): Promise<JsonObject> {
    const request = fit("engine::queue::discard", MessagesRequest, payload);
    const { queue, names } = this.#placeOf(request);
    let discarded = 0;
    for (const name of names) {
      discarded += await this.#setup.queues.discard(name, request.message_ids ?? "all");
    }
    return { queue, discarded };
  }

  async discardMessage(payload: Json): Promise<JsonObject> {
    const request = fit("engine::queue::discard_message", MessageRequest, payload);
    const { queue, names } = this.#placeOf(request);
    let redriven = 0;
    for (const name of names) {
      redriven += await this.#setup.queues.discard(name, [request.message_id]);
    }
    return { queue, message_id: request.message_id, redriven };
  }

  deadTopics(): Json {
    const { named, queues, topics } = this.#setup;
    const rows = named.names.filter((name) => !topics.byQueue(name)).map((topic) => {
      return { topic, broker_type: "function_queue", message_count: queues.counts(topic).dead };
    });
    return [
      ...rows,
      ...topics.topics.map((topic) => {
        const message_count = topics.of(topic)
          .reduce((sum, { queue }) => sum + queues.counts(queue).dead, 0);
        return { topic, broker_type: "builtin", message_count };
      }),
    ];
  }

  async deadMessages(payload: Json): Promise<Json> {
    const request = fit("engine::queue::dlq_messages", DeadRequest, payload);
    const found: JsonObject[] = [];
    const left = { offset: request.offset, limit: request.limit, bytes: ANSWER_BYTES_MAX };
    for (const name of this.#placeOf(request).names) await this.#addDead(name, left, found);
    return found;
  }

  /** Adds dead letters of one queue, as far as there is room. */
  async #addDead(name: string, left: Room, found: JsonObject[]): Promise<void> {
    let after: string | undefined;
    while (left.limit > 0 && left.bytes > 0) {
      const page = await this.#setup.queues.dead(name, PAGE, after);
      if (page.length === 0) return;
      for (const dead of page) {
        after = dead.position;
        if (left.offset-- > 0) continue;
        found.push(deadView(dead));
        left.bytes -= dead.bytes;
        if (--left.limit === 0 || left.bytes <= 0) return;
      }
    }
  }

  async result(payload: Json): Promise<JsonObject> {
    const { id } = fit("engine::queue::result", ResultRequest, payload);
    const found = await this.#setup.results.get(id);
    if (found) return { id, ...found };
    const message = `No result of job ${id} is kept: it is not done, its time is over, or ` +
      "keep_result_ms was not set";
    throw new EngineError("NOT_FOUND", message);
  }

  /** The queues that are meant; a topic without subscribers is the queue of this name. */
  #placeOf({ queue, topic }: Place): { readonly queue: string; readonly names: string[] } {
    if (queue !== undefined && topic !== undefined) {
      throw new EngineError("INVALID_ARGUMENTS", "Name either a queue or a topic");
    }
    const name = queue ?? topic;
    if (name === undefined) throw noQueue();
    const subscriptions = topic === undefined ? [] : this.#setup.topics.of(topic);
    if (subscriptions.length > 0) {
      return { queue: name, names: subscriptions.map(({ queue }) => queue) };
    }
    return { queue: name, names: [this.#setup.named.get(name).name] };
  }
}

function noQueue(): EngineError {
  const message = "Name a queue, or a topic with durable subscribers; queue and topic are missing";
  return new EngineError("INVALID_ARGUMENTS", message);
}

/** What an answer has room for. */
interface Room {
  offset: number;
  limit: number;
  bytes: number;
}

function waitingView(job: WaitingJob): JsonObject {
  const { id, state, bytes, attempts, priority, enqueued_at_ms, due_at_ms, expires_at_ms } = job;
  const { function_id, data, traceparent } = callOf(job);
  const error = job.failures.at(-1);
  return {
    id,
    state,
    function_id,
    payload: data,
    attempts,
    priority,
    enqueued_at_ms,
    ...due_at_ms !== undefined && { due_at_ms },
    ...expires_at_ms !== undefined && { expires_at_ms },
    ...error && { error: `${error.code}: ${error.message}` },
    ...traceOf(traceparent),
    size_bytes: bytes,
  };
}

function deadView(dead: DeadJob): JsonObject {
  const { id, attempts, failures, bytes, failed_at_ms, enqueued_at_ms } = dead;
  const { function_id, namespace, data, traceparent } = callOf(dead);
  const last = failures.at(-1);
  return {
    id,
    function_id,
    ...namespace !== undefined && { namespace },
    payload: data,
    error: last ? `${last.code}: ${last.message}` : "",
    failures: failures as unknown as Json,
    failed_at: Math.floor(failed_at_ms / 1_000),
    enqueued_at_ms,
    retries: attempts,
    size_bytes: bytes,
    ...traceOf(traceparent),
  };
}

/** The trace of a `traceparent`. */
function traceOf(traceparent: string | undefined): JsonObject {
  const trace_id = traceparent?.split("-")[1];
  return trace_id === undefined ? {} : { trace_id };
}
