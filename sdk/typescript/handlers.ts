/**
 * Runs the handlers of inbound calls and sends their results on the connection of the call.
 *
 * Handlers run concurrently. Each receives a {@linkcode CallContext} with the deadline, an abort
 * signal and `progress()`; calls that it makes inherit the deadline.
 *
 * @module
 */
import { checkSize } from "./arguments.ts";
import { writeResult } from "./call_frames.ts";
import { sendStream, streamedResponse } from "./channels/http_stream.ts";
import type { Connection } from "./connection.ts";
import { toJson } from "./json_text.ts";
import type { CallContext, Handler } from "./options.ts";
import type { Gauge } from "./otlp.ts";
import type { WorkerClock } from "./platform.ts";
import type { CallScopes } from "./trace_context.ts";
import { TurnoverMap } from "./turnover_map.ts";
import { encodeMessage } from "./wire/codec.ts";
import { describeThrown, EngineError } from "./wire/errors.ts";
import { isTooDeep } from "./wire/json_depth.ts";
import { memberText } from "./wire/member_text.ts";
import type {
  CancelInvocation,
  ErrorBody,
  InvokeFunction,
  Json,
  JsonInput,
  JsonObject,
} from "./wire/protocol.ts";

/** What {@linkcode Handlers} work with. */
export interface HandlerSetup {
  readonly clock: WorkerClock;
  readonly scopes: CallScopes;
  /** The handler of a function, if it is registered. */
  find(namespace: string | undefined, function_id: string): Handler | undefined;
  /** Receives errors of calls without a result. */
  report(error: EngineError): void;
  /** Receives the stack of a handler that failed unexpectedly, in the scope of its call. */
  readonly failed?: ((function_id: string, stacktrace: string) => void) | undefined;
  /**
   * Called when a handler starts, at `now` on the clock; the returned function is called when it
   * ends. Must not throw.
   */
  observe?(
    message: InvokeFunction,
    now: number,
  ): ((error: ErrorBody | undefined) => void) | undefined;
}

/** The text of a member of the payload as it came; `undefined` if there is none. */
export type MemberText = (name: string) => string | undefined;

/** A handler that passes a part of its payload on as it came, with all digits of its numbers. */
export type TextHandler = (
  payload: Json,
  textOf: MemberText,
  context: CallContext,
) => unknown;

/** The key of the {@linkcode TextHandler} of a handler. */
const OF_TEXT = Symbol("TextHandler");

/** Makes a handler of a {@linkcode TextHandler}; only for workers in the engine's process. */
export function handlerOfText(own: TextHandler): Handler {
  const withoutText: Handler = (payload, _metadata, context) =>
    own(
      payload,
      (name) => JSON.stringify((payload as Partial<JsonObject> | null)?.[name]),
      context,
    );
  return Object.assign(withoutText, { [OF_TEXT]: own });
}

/** Functions that run past their deadline and are reported, the latest first. */
const OVERDUE_MAX = 20;

/** The running handlers of one worker. */
export class Handlers {
  /** Whether the engine forwards progress. */
  engineForwardsProgress = false;
  readonly #setup: HandlerSetup;
  readonly #running = new TurnoverMap<string, RunningCall>();

  constructor(setup: HandlerSetup) {
    this.#setup = setup;
  }

  /** Number of running handlers whose callers wait for a result. */
  get size(): number {
    return this.#running.size;
  }

  /** Gauges of the handlers that run past their deadline, by function (PROTOCOL 9). */
  load(): Gauge[] {
    const now = this.#setup.clock.now();
    const overdue = new Map<string, number>();
    for (const { deadline, function_id } of this.#running.values()) {
      if (deadline === undefined || deadline >= now) continue;
      const seconds = (now - deadline) / 1_000;
      overdue.set(function_id, Math.max(seconds, overdue.get(function_id) ?? 0));
    }
    const latest = [...overdue].sort(([, one], [, other]) => other - one).slice(0, OVERDUE_MAX);
    return [
      // No call waits for a thread; a report begins with this one.
      { name: "engine.handlers.waiting", unit: "1", value: 0 },
      ...latest.map(([functionId, value]) => {
        return { name: "engine.handlers.overdue", unit: "s", value, functionId };
      }),
    ];
  }

  /**
   * Runs the handler of a call and sends its result. Never rejects.
   *
   * @param frame The text of the message, for handlers that pass a part of it on.
   */
  run(message: InvokeFunction, connection: Connection, frame?: string): Promise<void> {
    return this.#run(message, connection, this.#find(message, frame));
  }

  /** The handler of a call; only one that wants the frame keeps it. */
  #find(
    { namespace, function_id }: InvokeFunction,
    frame: string | undefined,
  ): Handler | undefined {
    const handler = this.#setup.find(namespace, function_id);
    const own = (handler as { [OF_TEXT]?: TextHandler } | undefined)?.[OF_TEXT];
    if (!own || frame === undefined) return handler;
    const textOf: MemberText = (name) => memberText(memberText(frame, "data") ?? "", name);
    return (payload, _metadata, context) => own(payload, textOf, context);
  }

  async #run(
    message: InvokeFunction,
    connection: Connection,
    handler: Handler | undefined,
  ): Promise<void> {
    const { clock, scopes } = this.#setup;
    const now = clock.now();
    const call = new RunningCall(message, connection, this.engineForwardsProgress, now);
    if (message.invocation_id) this.#running.set(message.invocation_id, call);
    const ended = this.#setup.observe?.(message, now);
    let failure: ErrorBody | undefined;
    try {
      if (!handler) throw new EngineError("function_not_found", "Function not found");
      const { traceparent, baggage } = message;
      let result = scopes.run(
        { deadline: call.deadline, traceparent, baggage },
        () => handler(message.data ?? null, message.metadata, call),
      );
      if (isThenable(result)) result = await result;
      const streamed = streamedResponse(message.data, result);
      if (streamed) {
        void sendStream(streamed, () => call.abort("cancelled", "The client has left"));
        result = undefined;
      }
      const late = this.#answer(call, result);
      if (late) await late; // An await of nothing would cost every call a tick.
    } catch (thrown) {
      failure = describeThrown(thrown);
      this.#show(call, failure);
      this.#fail(call, failure, thrown);
    } finally {
      call.isOver = true;
      this.#forget(call);
      ended?.(call.abortError ?? failure);
    }
  }

  /** Aborts the handler of a cancelled call; ignored if it does not run. */
  cancel({ invocation_id, reason }: CancelInvocation): void {
    this.#running.get(invocation_id)?.abort("cancelled", reason ?? "Invocation cancelled");
  }

  /** Aborts all handlers, because the connection is lost. */
  abortAll(reason: string): void {
    for (const call of this.#running.values()) call.abort("invocation_stopped", reason);
    this.#running.clear();
  }

  /** Passes on the stack of an error without a code of its own, which no handler meant. */
  #show({ isAborted, message }: RunningCall, { code, stacktrace }: ErrorBody): void {
    const { failed, scopes } = this.#setup;
    if (!failed || isAborted || code !== "invocation_failed" || stacktrace === undefined) return;
    const { function_id, traceparent, baggage } = message;
    const scope = { deadline: undefined, traceparent, baggage };
    scopes.run(scope, () => failed(function_id, stacktrace));
  }

  /** Removes a call, unless a later one has the same id. */
  #forget(call: RunningCall): void {
    const id = call.invocation_id;
    if (id && this.#running.get(id) === call) this.#running.take(id);
  }

  #answer(call: RunningCall, result: unknown): void | Promise<void> {
    if (call.isAborted || call.invocation_id === undefined) return;
    if (call.connection.isFull) return this.#answerLate(call, result);
    const what = `The result of ${call.function_id}`;
    const frame = writeResult(call.message, resultText(what, result));
    checkSize(what, frame);
    call.connection.send(frame);
  }

  /** Waits until the engine has read what was sent before. */
  #answerLate(call: RunningCall, result: unknown): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (): void => {
        const message = `The result of ${call.function_id} is dropped: the engine does not read`;
        reject(new EngineError("overloaded", message, { retryable: false }));
      };
      const send = (): void => {
        try {
          // Its connection may be full again, but then what is unsent has changed.
          resolve(this.#answer(call, result));
        } catch (thrown) {
          reject(thrown);
        }
      };
      if (call.connection.sendLate) call.connection.sendLate({ send, fail });
      else fail();
    });
  }

  #fail(call: RunningCall, error: ErrorBody, thrown: unknown): void {
    if (call.isAborted) return;
    if (call.invocation_id === undefined) {
      const message = `${call.function_id} failed: ${error.message}`;
      this.#setup.report(new EngineError(error.code, message, { cause: thrown }));
      return;
    }
    call.connection.send(encodeFailure(call.message, error));
  }
}

/**
 * What a handler's result is on the wire: JSON text, or `undefined` for none. The one place that
 * tells kinds of results apart.
 *
 * @throws {EngineError} `serialization_error`
 */
function resultText(what: string, result: unknown): string | undefined {
  return toJson(what, result);
}

/** Whether a result is a promise; other results are sent without an await. */
function isThenable(result: unknown): boolean {
  return typeof (result as { then?: unknown } | null | undefined)?.then === "function";
}

/** Longest message of an error whose frame would be too large, in characters. */
const MESSAGE_CHARS_MAX = 10_000;

/** The frame of a failed call. */
export function encodeFailure(message: InvokeFunction, error: ErrorBody): string {
  const head = resultHead(message);
  try {
    const frame = encodeMessage({ ...head, error });
    checkSize("An error", frame);
    if (!isTooDeep(frame)) return frame;
  } catch {
    // The details cannot be encoded or are too large: the caller still gets code and message.
  }
  const { details: _details, stacktrace: _stacktrace, ...rest } = error;
  const short = { ...rest, message: rest.message.slice(0, MESSAGE_CHARS_MAX) };
  return encodeMessage({ ...head, error: short });
}

function resultHead(message: InvokeFunction) {
  const { invocation_id = "", function_id, traceparent, baggage } = message;
  return {
    type: "invocationresult" as const,
    invocation_id,
    function_id,
    ...traceparent !== undefined && { traceparent },
    ...baggage !== undefined && { baggage },
  };
}

/** A call that a handler runs; also the context of the handler. */
class RunningCall implements CallContext {
  isOver = false;
  /** When its caller gives up, on the clock of the worker. */
  readonly deadline: number | undefined;
  readonly message: InvokeFunction;
  readonly connection: Connection;
  readonly #forwardsProgress: boolean;
  #abort: AbortController | undefined;
  #abortReason: EngineError | undefined;

  constructor(
    message: InvokeFunction,
    connection: Connection,
    forwardsProgress: boolean,
    now: number,
  ) {
    const { timeout_ms } = message;
    this.deadline = timeout_ms === undefined ? undefined : now + timeout_ms;
    this.message = message;
    this.connection = connection;
    this.#forwardsProgress = forwardsProgress;
  }

  get invocation_id(): string | undefined {
    return this.message.invocation_id;
  }

  get function_id(): string {
    return this.message.function_id;
  }

  get caller(): string | undefined {
    return this.message.caller;
  }

  get timeout_ms(): number | undefined {
    return this.message.timeout_ms;
  }

  get traceparent(): string | undefined {
    return this.message.traceparent;
  }

  get baggage(): string | undefined {
    return this.message.baggage;
  }

  get isAborted(): boolean {
    return this.#abortReason !== undefined;
  }

  get abortError(): ErrorBody | undefined {
    return this.#abortReason?.toJSON();
  }

  /** Created on first use, since most handlers do not use it. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#abortReason && !this.#abort.signal.aborted) this.#abort.abort(this.#abortReason);
    return this.#abort.signal;
  }

  abort(code: string, reason: string): void {
    this.#abortReason = new EngineError(code, reason);
    this.#abort?.abort(this.#abortReason);
  }

  progress(data: JsonInput): void {
    const { invocation_id, connection } = this;
    if (this.isOver || this.isAborted || !this.#forwardsProgress || !invocation_id) return;
    const what = `Progress of ${this.function_id}`;
    const text = toJson(what, data) ?? "null";
    const frame = `{"type":"invocationprogress","invocation_id":${JSON.stringify(invocation_id)},` +
      `"data":${text}}`;
    checkSize(what, frame);
    if (!connection.isFull) connection.send(frame);
  }
}
