/**
 * Replies to calls that cannot start, and the warnings about them.
 *
 * A caller that waits gets a result with the error. For a call without a reply the engine reports a
 * warning instead, limited per connection. `function_not_found` names the caller and says why the
 * function is not there, or suggests similar ids.
 *
 * @module
 */
import { errorBody, type ErrorCode } from "../../sdk/typescript/wire/errors.ts";
import { type Absence, type Absences, NO_ABSENCES } from "../ports/absences.ts";
import {
  DEFAULT_NAMESPACE,
  type ErrorBody,
  type InvokeFunction,
  type JsonObject,
} from "../../sdk/typescript/wire/protocol.ts";
import { similarNames } from "../../sdk/typescript/wire/similar.ts";
import type { CallObserver, UnopenedCall } from "../ports/call_observer.ts";
import type { Clock } from "../ports/clock.ts";
import type { EventListener } from "../ports/events.ts";
import type { FunctionTable } from "./function_table.ts";
import { RateWindow } from "./guards.ts";
import type { Peer } from "./peer.ts";
import { jsonText, RESULT_PREFIX } from "./wire/frame_parts.ts";
import type { RawFields } from "./wire/parsed_frame.ts";

/** Searches within {@linkcode SIMILAR_WINDOW_MS}; beyond, no similar ids are suggested. */
const SIMILAR_SEARCHES_MAX = 20;
/** See {@linkcode SIMILAR_SEARCHES_MAX}. */
const SIMILAR_WINDOW_MS = 1_000;
/** Unknown ids whose suggestions are cached. */
const REMEMBERED_MAX = 1_000;

/** Replies with errors of the engine and reports warnings. */
export class ErrorReplies {
  readonly #clock: Clock;
  readonly #functions: FunctionTable;
  readonly #report: EventListener;
  readonly #observer: CallObserver;
  readonly #absences: Absences;
  readonly #searches = new RateWindow(SIMILAR_SEARCHES_MAX, SIMILAR_WINDOW_MS);
  /** Suggestions for unknown ids, valid until the set of ids changes. */
  readonly #remembered = new Map<string, string[]>();
  #rememberedVersion = 0;

  constructor(
    clock: Clock,
    functions: FunctionTable,
    report: EventListener,
    observer: CallObserver,
    absences: Absences = NO_ABSENCES,
  ) {
    this.#absences = absences;
    this.#clock = clock;
    this.#observer = observer;
    this.#functions = functions;
    this.#report = report;
  }

  /** Rejects a call that was not opened; `frame` is where it came from. */
  refuse(caller: Peer, call: InvokeFunction, error: ErrorBody, frame: RawFields): void {
    this.#countExisting(call);
    this.#observer.refused(unopenedCallOf(caller, call, frame), error);
    this.reply(caller, call, error);
  }

  /** Replies to a call with an error; a call without a reply becomes a warning. */
  reply(caller: Peer, call: InvokeFunction, error: ErrorBody): void {
    if (call.invocation_id !== undefined && call.action?.type !== "void") {
      const prefix = RESULT_PREFIX + jsonText(call.invocation_id);
      return caller.replyText(prefix + errorRemainder(call.function_id, error));
    }
    this.warn(caller, "rejected a call without a reply", `${error.code}: ${error.message}`);
    // PROTOCOL 3.1: a void call gets no reply, not even for an unknown function.
    if (error.code !== "function_not_found") caller.send({ type: "error", error });
  }

  /** Replies to a call that could not be read or handled, as far as its ids are known. */
  replyUnread(caller: Peer, invocation_id: string, function_id: string, error: ErrorBody): void {
    const type = "invokefunction";
    const call = unopenedCallOf(caller, { type, invocation_id, function_id });
    if (function_id !== "") this.#observer.refused(call, error);
    const prefix = RESULT_PREFIX + jsonText(invocation_id);
    caller.replyText(prefix + errorRemainder(function_id, error));
  }

  /** Rejects a call of an unknown function. */
  functionNotFound(caller: Peer, call: InvokeFunction, frame: RawFields): void {
    this.refuse(caller, call, this.functionNotFoundError(caller, call), frame);
  }

  /** The error for a call of an unknown function; access rules hide all others, and why. */
  functionNotFoundError(caller: Peer | undefined, call: InvokeFunction): ErrorBody {
    const isLimited = caller?.isLimited ?? false;
    const absence = this.#absenceOf(caller, call);
    const similar = absence || isLimited ? [] : this.#similar(call);
    const name = caller?.ownerName;
    const isAway = !isLimited && this.#absences.isClusterAway?.() === true;
    const details: JsonObject = {
      ...absence as JsonObject | undefined,
      ...isAway && { cluster: "away" },
      ...similar.length > 0 && { similar },
      ...name !== undefined && { caller: name },
    };
    const isEmpty = Object.keys(details).length === 0;
    const message = `Function ${call.function_id} not found`;
    const error = failure("function_not_found", message, isEmpty ? undefined : details);
    // The calling engine did not know yet, and may call another one.
    return caller?.isEngine ? { ...error, retryable: true } : error;
  }

  /** The error for an enqueue while no worker provides queues; `request` is the call of it. */
  queueNotFoundError(caller: Peer, request: InvokeFunction, queue: string): ErrorBody {
    const absence = this.#absenceOf(caller, request) as JsonObject | undefined;
    return failure("enqueue_error", `Queue '${queue}' not found`, absence);
  }

  /** Why a function is not there, unless access rules hide it. */
  #absenceOf(
    caller: Peer | undefined,
    { function_id, namespace = DEFAULT_NAMESPACE }: InvokeFunction,
  ): Absence | undefined {
    if (caller?.isLimited) return undefined;
    return this.#absences.ofFunction(function_id, namespace);
  }

  /** Reports a warning, unless the connection has caused too many. */
  warn(peer: Peer, text: string, detail: string): void {
    if (!peer.warningLimit.allow(this.#clock.now())) return;
    this.#report({ type: "warning", text, worker_id: peer.id, detail: detail.slice(0, 500) });
  }

  /** Makes sure that an existing function has its own meter, even if all its calls are rejected. */
  #countExisting({ function_id, namespace = DEFAULT_NAMESPACE }: InvokeFunction): void {
    const entry = this.#functions.find(function_id, namespace);
    if (entry) entry.subject ??= this.#observer.functionOf(namespace, function_id);
  }

  #similar({ function_id, namespace = DEFAULT_NAMESPACE }: InvokeFunction): string[] {
    if (this.#rememberedVersion !== this.#functions.version) {
      this.#remembered.clear();
      this.#rememberedVersion = this.#functions.version;
    }
    const key = JSON.stringify([namespace, function_id]);
    const known = this.#remembered.get(key);
    if (known) return known;
    if (!this.#searches.allow(this.#clock.now())) return [];
    const similar = similarNames(function_id, this.#candidates(namespace, function_id));
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear();
    this.#remembered.set(key, similar);
    return similar;
  }

  *#candidates(namespace: string, wanted: string): Generator<string> {
    const isReserved = wanted.startsWith("engine::");
    for (const id of this.#functions.visibleIds(namespace)) {
      // A function whose workers are all draining is not found either, and no suggestion for
      // itself.
      if (id !== wanted && (isReserved || !id.startsWith("engine::"))) yield id;
    }
  }
}

/** An error of the engine. */
export function failure(code: ErrorCode, message: string, details?: JsonObject): ErrorBody {
  return errorBody(code, message, details);
}

/** The remainder of a result with an error. */
export function errorRemainder(function_id: string, error: ErrorBody): string {
  return `","function_id":${JSON.stringify(function_id)},"error":${JSON.stringify(error)}}`;
}

/** A call that was never opened, for the observer; without `frame` its payload is unknown. */
export function unopenedCallOf(
  caller: Peer,
  call: InvokeFunction,
  frame?: RawFields,
): UnopenedCall {
  const { function_id, namespace = DEFAULT_NAMESPACE, traceparent, baggage, timeout_ms = 0 } = call;
  return {
    function_id,
    namespace,
    caller: caller.endpoint,
    caller_invocation_id: call.action === undefined ? call.invocation_id : undefined,
    traceparent,
    baggage,
    timeout_ms,
    request: () => frame?.field("data"),
  };
}
