/**
 * Functions that decide about subscribers: the auth function of a connection, and the triggers of
 * type `stream:join`, one of which may refuse a subscription, and `stream:leave`.
 *
 * Whatever goes wrong refuses: a handler that fails or takes too long must not open what it is
 * there to protect. A bounded number of calls run at once, so that thousands of subscribers who
 * come or go together do not flood the workers.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { TriggerInstance } from "../../sdk/typescript/options.ts";
import { EngineError, thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import type { Topic } from "./messages.ts";
import { StreamName } from "./payloads.ts";

/** Calls of these functions that run at once. */
export const CALLS_MAX = 256;
/** Subscriptions that ended and whose `stream:leave` has not been called yet. */
export const LEAVES_WAITING_MAX = 100_000;
/** Largest context of a connection, in characters of its JSON. */
export const CONTEXT_CHARS_MAX: number = 16 * 1024;
/** Time between two reports of handlers that fail. */
const REPORT_MS = 10_000;

const Config = v.object({
  stream_name: v.nullish(StreamName),
  condition_function_id: v.nullish(v.text(1)),
});

/** Dependencies of {@linkcode Joins}. */
export interface JoinsSetup {
  readonly worker: Pick<Worker, "trigger">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  /** The function that admits connections; `undefined`: everyone may connect. */
  readonly authFunction: string | undefined;
  /** Time of one call. */
  readonly timeoutMs: number;
}

/** What the auth function gets. */
export interface AuthRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
  readonly query_params: Readonly<Record<string, string>>;
  readonly addr: string;
}

/** A subscription, as handlers get it. */
export interface SubscriptionInfo {
  readonly subscription_id: string;
  readonly topic: Topic;
  readonly context: Json;
}

/** A trigger of one of the two types. */
interface Handler {
  readonly trigger: TriggerInstance;
  readonly condition: string | undefined;
  /** The only stream that it is asked about; `undefined`: all. */
  readonly stream: string | undefined;
}

/** Trigger types that are handled here. */
export type JoinType = "stream:join" | "stream:leave";

/** See the module. */
export class Joins {
  readonly #setup: JoinsSetup;
  readonly #handlers: Record<JoinType, Map<string, Handler>> = {
    "stream:join": new Map(),
    "stream:leave": new Map(),
  };
  #running = 0;
  readonly #queue: (() => void)[] = [];
  #leavesWaiting = 0;
  #reportedAt = -Infinity;

  constructor(setup: JoinsSetup) {
    this.#setup = setup;
  }

  /** @throws {EngineError} `trigger_registration_failed` for an invalid config. */
  add(type: JoinType, trigger: TriggerInstance): void {
    const { stream_name, condition_function_id } = fitTrigger(Config, trigger);
    const [stream, condition] = [stream_name ?? undefined, condition_function_id ?? undefined];
    this.#handlers[type].set(trigger.id, { trigger, condition, stream });
  }

  /** Removes a trigger. */
  remove(type: JoinType, id: string): void {
    this.#handlers[type].delete(id);
  }

  /** The context of a connection; `undefined`: it is refused. Never rejects. */
  async admit(request: AuthRequest): Promise<{ readonly context: Json } | undefined> {
    const { authFunction } = this.#setup;
    if (authFunction === undefined) return { context: null };
    try {
      const said = await this.#call(authFunction, { ...request });
      if (!isObject(said) || said.unauthorized === true) return undefined;
      const { context = null } = said;
      if (JSON.stringify(context).length <= CONTEXT_CHARS_MAX) return { context };
      const message = `the context has more than ${CONTEXT_CHARS_MAX} characters of JSON`;
      throw new EngineError("invocation_failed", message);
    } catch (thrown) {
      this.#report("the auth function of engine-stream failed", authFunction, thrown);
      return undefined;
    }
  }

  /** Whether all handlers of `stream:join` allow a subscription. Never rejects. */
  async allows(info: SubscriptionInfo): Promise<boolean> {
    for (const handler of this.#of("stream:join", info)) {
      const { function_id } = handler.trigger;
      try {
        const said = await this.#ask(handler, payloadOf(info));
        if (isObject(said) && said.unauthorized === true) return false;
      } catch (thrown) {
        this.#report("a handler of stream:join failed", function_id, thrown);
        return false;
      }
    }
    return true;
  }

  /** Tells the handlers of `stream:leave` about a subscription that ended; does not wait. */
  left(info: SubscriptionInfo): void {
    for (const handler of this.#of("stream:leave", info)) {
      const { function_id } = handler.trigger;
      const failed = (thrown: unknown): void =>
        this.#report("a handler of stream:leave failed", function_id, thrown);
      if (this.#leavesWaiting >= LEAVES_WAITING_MAX) {
        failed(new EngineError("overloaded", `${LEAVES_WAITING_MAX} ended subscriptions wait`));
        continue;
      }
      this.#leavesWaiting++;
      this.#ask(handler, payloadOf(info)).catch(failed).finally(() => this.#leavesWaiting--);
    }
  }

  /** The handlers of a type for the stream of a subscription. */
  #of(type: JoinType, { topic }: SubscriptionInfo): Handler[] {
    return [...this.#handlers[type].values()].filter(({ stream }) =>
      stream === undefined || stream === topic.stream_name
    );
  }

  /** Calls a handler, unless its condition says no. */
  async #ask({ trigger, condition }: Handler, payload: JsonObject): Promise<Json | undefined> {
    if (condition !== undefined && !await this.#call(condition, payload)) return undefined;
    return await this.#call(trigger.function_id, payload, trigger);
  }

  async #call(
    function_id: string,
    payload: JsonObject,
    { namespace, metadata }: Partial<Pick<TriggerInstance, "namespace" | "metadata">> = {},
  ): Promise<Json | undefined> {
    if (this.#running >= CALLS_MAX) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    } else this.#running++;
    try {
      return await this.#setup.worker.trigger<Json, Json | undefined>({
        function_id,
        payload,
        timeout_ms: this.#setup.timeoutMs,
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      });
    } finally {
      const next = this.#queue.shift();
      if (next) next(); // It gets this place.
      else this.#running--;
    }
  }

  #report(text: string, function_id: string, thrown: unknown): void {
    const { clock, log } = this.#setup;
    if (clock.now() - this.#reportedAt < REPORT_MS) return;
    this.#reportedAt = clock.now();
    log.warn(text, { function_id, problem: thrownText(thrown) });
  }
}

function payloadOf({ subscription_id, topic, context }: SubscriptionInfo): JsonObject {
  return { subscription_id, ...topic, context };
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
