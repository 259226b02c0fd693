/**
 * Calls this worker makes: checked, written, sent or queued, and ended exactly once.
 *
 * A call goes out at once when the line is open, else it waits in a bounded queue while its time
 * runs. Calls that had left when the line dropped fail at once: the engine has ended them, and
 * whether their handler ran is not known, so nothing is ever sent twice.
 *
 * @module
 */
import { checkCallable, checkId, checkNamespace, checkTimeout, toJson } from "./arguments.ts";
import type { CallScope, CallScopes } from "./call_scope.ts";
import type { WorkerClock } from "./clock.ts";
import { encodeMessage } from "./codec.ts";
import { EngineError, errorBody, InvocationError, thrownText } from "./errors.ts";
import { OFFLINE_QUEUE_BYTES_MAX } from "./limits.ts";
import { OfflineQueue } from "./offline_queue.ts";
import type { CallRequest } from "./options.ts";
import { newId } from "./platform.ts";
import type { ErrorBody, InvocationProgress, InvocationResult, Json } from "./protocol.ts";
import type { Line } from "./reconnect.ts";
import { type OpenCall, timeoutError, Waiting } from "./waiting.ts";

/** What outbound calls need. */
export interface OutboundSetup {
  readonly clock: WorkerClock;
  readonly scopes: CallScopes;
  /** Time-out of calls that name none. */
  readonly timeoutMs: number;
  /** The line, if one is open. */
  line(): Line | undefined;
  /** Hears of failures in user code that nobody else hears of. */
  report(error: EngineError): void;
}

/** Room that the envelope of a queued frame is counted with. */
const ENVELOPE_BYTES = 200;

/** The calls of one worker. */
export class OutboundCalls {
  readonly #setup: OutboundSetup;
  readonly #waiting: Waiting;
  readonly #queue = new OfflineQueue(OFFLINE_QUEUE_BYTES_MAX);
  /** The part of all ids that is random; the rest counts. */
  readonly #idStart = newId().slice(0, 24);
  #calls = 0;
  #engineCancels = false;
  #ended: ErrorBody | undefined;

  /** Stores. */
  constructor(setup: OutboundSetup) {
    this.#setup = setup;
    this.#waiting = new Waiting(setup.clock, (call) => this.#withdraw(call, "timeout"));
  }

  /** Calls that have no result yet. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Makes a call; see `Worker.trigger()` for how it ends. */
  call(request: CallRequest<unknown>): Promise<Json | undefined> {
    return new Promise((resolve, reject) => this.#start(request, resolve, reject));
  }

  /** What the engine can do, as it says at the start of every line. */
  useCapabilities(capabilities: readonly string[]): void {
    this.#engineCancels = capabilities.includes("cancel");
    this.#waiting.engineEndsCalls = capabilities.includes("timeout");
  }

  /** A result came. */
  settle(result: InvocationResult): void {
    this.#waiting.settle(result);
  }

  /** A call ends because its result could not be read. */
  fail(invocation_id: string, error: ErrorBody): void {
    this.#waiting.fail(invocation_id, error);
  }

  /** News of a call came. */
  progress({ invocation_id, data }: InvocationProgress): void {
    const call = this.#waiting.get(invocation_id);
    try {
      call?.onProgress?.(data);
    } catch (cause) {
      const message = `onProgress of a call to ${call?.function_id} failed: ${thrownText(cause)}`;
      this.#setup.report(new EngineError("invocation_failed", message, { cause }));
    }
  }

  /** A line is open: sends what waited for one. */
  sendQueued(line: Line): void {
    for (const frame of this.#queue.takeAll()) {
      const text = frame.write();
      if (text !== undefined) line.send(text);
    }
  }

  /** The line is lost: what was sent on it will not be answered. */
  lost(): void {
    this.useCapabilities([]);
    this.#waiting.failAll(errorBody("invocation_stopped", "Invocation stopped"), "sent");
  }

  /** No line will come any more: ends all calls, and those made later, with `error`. */
  end(error: ErrorBody): void {
    this.#ended ??= error;
    this.#queue.takeAll();
    this.#waiting.failAll(error, "all");
    this.#waiting.stop();
  }

  #start(
    request: CallRequest<unknown>,
    resolve: (value: Json | undefined) => void,
    reject: (error: InvocationError) => void,
  ): void {
    const own = request.timeout_ms ?? request.timeoutMs ?? this.#setup.timeoutMs;
    checkRequest(request, own);
    const { function_id, onProgress, signal } = request;
    const tail = writeTail(request);
    const scope = this.#setup.scopes.current();
    if (this.#ended) throw new InvocationError(this.#ended, function_id);
    if (request.action?.type === "void") {
      this.#send(function_id, undefined, tail, () => envelope(request, scope, {}));
      resolve(undefined);
      return;
    }
    const timeoutMs = this.#shorten(own, scope, function_id);
    if (signal?.aborted) throw cancelled(function_id);

    const invocation_id = this.#nextId();
    const deadline = this.#setup.clock.now() + timeoutMs;
    const call: OpenCall = {
      invocation_id,
      function_id,
      timeoutMs,
      deadline,
      sent: false,
      resolve,
      reject,
      onProgress,
      release: undefined,
    };
    this.#send(function_id, call, tail, () => {
      const timeout_ms = Math.max(1, Math.floor(deadline - this.#setup.clock.now()));
      return envelope(request, scope, { invocation_id, timeout_ms });
    });
    this.#waiting.add(call);
    if (signal) this.#listen(call, signal);
  }

  /** A UUID of which the last part counts: a random one costs more than the rest of a call. */
  #nextId(): string {
    return this.#idStart + (++this.#calls).toString(16).padStart(12, "0");
  }

  /** The smaller of the call's own time and what is left of the handler's that makes it. */
  #shorten(own: number, scope: CallScope | undefined, function_id: string): number {
    if (scope?.deadline === undefined) return own;
    const left = Math.floor(scope.deadline - this.#setup.clock.now());
    if (left < 1) throw new InvocationError(timeoutError(0), function_id);
    return Math.min(own, left);
  }

  /** Sends a frame, or queues it to be written when a line is open. */
  #send(
    function_id: string,
    call: OpenCall | undefined,
    tail: string,
    writeHead: () => string,
  ): void {
    const write = (): string => {
      if (call) call.sent = true;
      return writeHead().slice(0, -1) + tail;
    };
    const line = this.#setup.line();
    if (line) {
      line.send(write());
      return;
    }
    const bytes = ENVELOPE_BYTES + tail.length;
    if (this.#queue.add({ invocation_id: call?.invocation_id, bytes, write })) return;
    const message = `The engine cannot be reached and ${this.#queue.bytes} bytes wait already`;
    throw new InvocationError(errorBody("overloaded", message), function_id);
  }

  #listen(call: OpenCall, signal: AbortSignal): void {
    const aborted = (): void => {
      const { reason } = signal;
      this.fail(call.invocation_id, errorBody("cancelled", "Invocation cancelled"));
      this.#withdraw(call, thrownText(reason));
    };
    signal.addEventListener("abort", aborted, { once: true });
    call.release = () => signal.removeEventListener("abort", aborted);
  }

  /** Nobody waits for the call any more: takes it back from the queue, or from the engine. */
  #withdraw({ invocation_id, sent }: OpenCall, reason: string): void {
    if (!sent) this.#queue.remove(invocation_id);
    else if (this.#engineCancels) {
      this.#setup.line()?.send(encodeMessage({ type: "cancelinvocation", invocation_id, reason }));
    }
  }
}

/** What user code handed over, written at once: what it does to its objects later is its own. */
function writeTail({ function_id, payload, metadata }: CallRequest<unknown>): string {
  const data = toJson(`The payload for ${function_id}`, payload);
  const more = toJson(`The metadata for ${function_id}`, metadata);
  return (more === undefined ? "" : `,"metadata":${more}`) +
    (data === undefined ? "}" : `,"data":${data}}`);
}

/** The frame of a call without its metadata and payload, in canonical order. */
function envelope(
  request: CallRequest<unknown>,
  scope: CallScope | undefined,
  { invocation_id, timeout_ms }: { invocation_id?: string; timeout_ms?: number },
): string {
  const { function_id, namespace, action } = request;
  const { traceparent = scope?.traceparent, baggage = scope?.baggage } = request;
  return encodeMessage({
    type: "invokefunction",
    ...invocation_id !== undefined && { invocation_id },
    function_id,
    ...namespace !== undefined && { namespace },
    ...action && { action },
    ...timeout_ms !== undefined && { timeout_ms },
    ...traceparent !== undefined && { traceparent },
    ...baggage !== undefined && { baggage },
  });
}

function checkRequest(request: CallRequest<unknown>, timeoutMs: number): void {
  checkId("function_id", request.function_id, "math::add");
  checkNamespace(request.namespace);
  checkTimeout("timeout_ms", timeoutMs);
  if (request.onProgress) checkCallable("onProgress", request.onProgress);
  if (request.action?.type === "enqueue") checkId("queue", request.action.queue, '"mail"');
}

function cancelled(function_id: string): InvocationError {
  return new InvocationError(errorBody("cancelled", "Invocation cancelled"), function_id);
}
