/**
 * The calls that a worker makes: checks, sends or queues them, and settles each exactly once.
 *
 * A call is sent at once if the connection is open; otherwise it is queued until its deadline, or
 * fails at once, as `whenDisconnected` says. When the connection is lost, calls that were sent fail
 * at once: whether their handler ran is unknown, so no call is ever sent twice.
 *
 * @module
 */
import {
  checkCallable,
  checkEnqueue,
  checkId,
  checkNamespace,
  checkSize,
  checkTimeout,
} from "./arguments.ts";
import {
  CallIds,
  type CallParts,
  countAt,
  countEnd,
  readResult,
  writeCall,
  writeParts,
} from "./call_frames.ts";
import type { Connection } from "./connection.ts";
import type { CallRequest } from "./options.ts";
import { type PendingCall, PendingCalls, timeoutError } from "./pending_calls.ts";
import type { WorkerClock } from "./platform.ts";
import type { CallScope, CallScopes } from "./trace_context.ts";
import { encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody, InvocationError, thrownText } from "./wire/errors.ts";
import type { ErrorBody, InvocationProgress, InvocationResult, Json } from "./wire/protocol.ts";

/** What {@linkcode OutboundCalls} work with. */
export interface OutboundSetup {
  readonly clock: WorkerClock;
  readonly scopes: CallScopes;
  /** Timeout of calls that name none. */
  readonly timeoutMs: number;
  /** The open connection, if there is one. */
  connection(): Connection | undefined;
  /** Whether a call fails now that there is no connection, instead of being queued. */
  failsNow(): boolean;
  /** Receives errors in user code that fail no call. */
  report(error: EngineError): void;
}

/** The text between the two ids of a result. */
const FUNCTION_ID = '","function_id":';
/** Size of the envelope of a queued frame, as it is counted. */
const ENVELOPE_BYTES = 200;
/** Most bytes of calls that are queued while there is no connection. */
const OFFLINE_QUEUE_BYTES_MAX = 64 * 1024 * 1024;
/** Most calls that are queued while there is no connection. */
const OFFLINE_QUEUE_CALLS_MAX = 10_000;

/** The calls that one worker makes. */
export class OutboundCalls {
  readonly #setup: OutboundSetup;
  readonly #pending: PendingCalls;
  readonly #queue = new OfflineQueue(OFFLINE_QUEUE_BYTES_MAX, OFFLINE_QUEUE_CALLS_MAX);
  readonly #ids = new CallIds();
  /** The start of the frames of results, as the engine writes them. */
  readonly #resultStart = `{"type":"invocationresult","invocation_id":"${this.#ids.start}`;
  #calls = 0;
  #engineCancels = false;
  #ended: ErrorBody | undefined;

  constructor(setup: OutboundSetup) {
    this.#setup = setup;
    this.#pending = new PendingCalls(setup.clock, (call) => this.#withdraw(call, "timeout"));
  }

  /** Number of calls without a result. */
  get size(): number {
    return this.#pending.size;
  }

  /** Makes a call; `Worker.trigger()` documents the outcomes. */
  call(request: CallRequest<unknown>): Promise<Json | undefined> {
    return new Promise((resolve, reject) => this.#start(request, resolve, reject));
  }

  /** Sets the capabilities of the engine, which it sends on each connection. */
  useCapabilities(capabilities: readonly string[]): void {
    this.#engineCancels = capabilities.includes("cancel");
    this.#pending.engineEndsCalls = capabilities.includes("timeout");
  }

  /** Settles the call of a result; ignored if it is not pending. */
  settle({ invocation_id, result, error }: InvocationResult): void {
    const count = this.#ids.count(invocation_id);
    if (count === undefined) return;
    if (error) this.#pending.fail(count, error);
    else this.#pending.resolve(count, result);
  }

  /**
   * Settles a call if the frame is its result in the usual form; otherwise returns `false`, and the
   * frame has to be decoded.
   */
  settleFrame(frame: string): boolean {
    if (!frame.startsWith(this.#resultStart)) return false;
    const at = this.#resultStart.length;
    const count = countAt(frame, at);
    const call = count === undefined ? undefined : this.#pending.get(count);
    if (!call) return false;
    const named = countEnd(at);
    const id = named + FUNCTION_ID.length;
    const isNamed = frame.startsWith(FUNCTION_ID, named) &&
      frame.startsWith(call.quotedFunctionId, id);
    if (!isNamed) return false;
    const result = readResult(frame, id + call.quotedFunctionId.length);
    if (!result) return false;
    this.#pending.resolve(call.count, result.value);
    return true;
  }

  /** Fails the call whose result is invalid. */
  fail(invocation_id: string, error: ErrorBody): void {
    const count = this.#ids.count(invocation_id);
    if (count !== undefined) this.#pending.fail(count, error);
  }

  /** Passes the progress of a call to its `onProgress`. */
  progress({ invocation_id, data }: InvocationProgress): void {
    const call = this.#pending.get(this.#ids.count(invocation_id) ?? 0);
    try {
      call?.onProgress?.(data);
    } catch (cause) {
      const message = `onProgress of a call to ${call?.function_id} failed: ${thrownText(cause)}`;
      this.#setup.report(new EngineError("invocation_failed", message, { cause }));
    }
  }

  /** Sends the queued calls on a new connection. */
  sendQueued(connection: Connection): void {
    for (const frame of this.#queue.takeAll()) connection.send(frame.write());
  }

  /** Fails the calls that were sent on a connection that is lost, with the reason. */
  connectionLost(reason: string): void {
    this.useCapabilities([]);
    const error = errorBody("invocation_stopped", "Invocation stopped", { reason });
    this.#pending.failAll(error, "sent");
  }

  /** Fails the calls that were queued while the worker connected for the first time. */
  failQueued(): void {
    this.#queue.takeAll();
    this.#pending.failAll(unreachable(), "all");
  }

  /** Fails all calls, and those made later, with `error`: the worker has ended. */
  end(error: ErrorBody): void {
    this.#ended ??= error;
    this.#queue.takeAll();
    this.#pending.failAll(error, "all");
    this.#pending.stop();
  }

  #start(
    request: CallRequest<unknown>,
    resolve: (value: Json | undefined) => void,
    reject: (error: InvocationError) => void,
  ): void {
    const own = request.timeout_ms ?? request.timeoutMs ?? this.#setup.timeoutMs;
    checkRequest(request, own);
    const { function_id, onProgress, signal } = request;
    const parts = writeParts(request);
    const scope = this.#setup.scopes.current();
    if (this.#ended) throw new InvocationError(this.#ended, function_id);
    if (request.action?.type === "void") {
      this.#send({ request, parts, scope });
      resolve(undefined);
      return;
    }
    const now = this.#setup.clock.now();
    const timeoutMs = shorten(own, scope, now, function_id);
    if (signal?.aborted) throw new InvocationError(cancelled(), function_id);

    const count = ++this.#calls;
    const aborted = signal && ((): void => this.#aborted(count, signal));
    const call: PendingCall = {
      count,
      invocation_id: this.#ids.text(count),
      function_id,
      quotedFunctionId: parts.function_id,
      timeoutMs,
      deadline: now + timeoutMs,
      sent: false,
      resolve,
      reject,
      onProgress,
      signal,
      aborted,
    };
    this.#send({ request, parts, scope }, call);
    this.#pending.add(call);
    if (aborted) signal.addEventListener("abort", aborted, { once: true });
  }

  /** Sends a frame, or queues it until there is a connection. */
  #send(frame: UnsentCall, call?: PendingCall): void {
    const { function_id } = frame.request;
    const text = write(frame, call, call?.timeoutMs);
    checkSize(`The call of ${function_id}`, text);
    const connection = this.#setup.connection();
    if (connection?.isFull) {
      const message = `The engine does not read; ${connection.queuedBytes} bytes wait already`;
      throw new InvocationError(errorBody("overloaded", message), function_id);
    }
    if (connection) {
      if (call) call.sent = true;
      connection.send(text);
      return;
    }
    if (this.#setup.failsNow()) throw new InvocationError(unreachable(), function_id);
    const writeLater = (): string => {
      if (!call) return write(frame, undefined, undefined);
      call.sent = true;
      const left = Math.floor(call.deadline - this.#setup.clock.now());
      return write(frame, call, Math.max(1, left));
    };
    const bytes = ENVELOPE_BYTES + frame.parts.tail.length;
    if (this.#queue.add({ invocation_id: call?.invocation_id, bytes, write: writeLater })) return;
    const { size, bytes: queued } = this.#queue;
    const message = `The engine cannot be reached; ${size} calls of ${queued} bytes wait already`;
    throw new InvocationError(errorBody("overloaded", message), function_id);
  }

  /** Cancels a call whose signal was aborted. */
  #aborted(count: number, { reason }: NonNullable<CallRequest["signal"]>): void {
    const call = this.#pending.get(count);
    if (!call) return;
    this.#pending.fail(count, cancelled());
    this.#withdraw(call, thrownText(reason));
  }

  /** Removes a call that has ended from the queue, or cancels it at the engine. */
  #withdraw({ invocation_id, sent }: PendingCall, reason: string): void {
    if (!sent) this.#queue.remove(invocation_id);
    else if (this.#engineCancels) {
      const frame = encodeMessage({ type: "cancelinvocation", invocation_id, reason });
      this.#setup.connection()?.send(frame);
    }
  }
}

/** A call whose frame is written when it is sent. */
interface UnsentCall {
  readonly request: CallRequest<unknown>;
  readonly parts: CallParts;
  readonly scope: CallScope | undefined;
}

function write(
  { request, parts, scope }: UnsentCall,
  call: PendingCall | undefined,
  timeout_ms: number | undefined,
): string {
  const { traceparent = scope?.traceparent, baggage = scope?.baggage } = request;
  const invocation_id = call?.invocation_id;
  return writeCall(parts, { invocation_id, timeout_ms, traceparent, baggage });
}

/** The timeout of a call, at most what is left of that of the handler which makes it. */
function shorten(
  own: number,
  scope: CallScope | undefined,
  now: number,
  function_id: string,
): number {
  if (scope?.deadline === undefined) return own;
  const left = Math.floor(scope.deadline - now);
  if (left < 1) throw new InvocationError(timeoutError(0), function_id);
  return Math.min(own, left);
}

function checkRequest(request: CallRequest<unknown>, timeoutMs: number): void {
  checkId("function_id", request.function_id, "math::add");
  checkNamespace(request.namespace);
  checkTimeout("timeout_ms", timeoutMs);
  if (request.onProgress) checkCallable("onProgress", request.onProgress);
  if (request.action?.type === "enqueue") checkEnqueue(request.action);
}

function unreachable(): ErrorBody {
  return errorBody("engine_unreachable", "There is no connection to the engine; try again later");
}

function cancelled(): ErrorBody {
  return errorBody("cancelled", "Invocation cancelled");
}

/** A frame in an {@linkcode OfflineQueue}. */
export interface QueuedFrame {
  /** Id of a call, by which it can be removed; `undefined` for calls without a result. */
  readonly invocation_id: string | undefined;
  /** Its size, as it is counted. */
  readonly bytes: number;
  /** Writes the frame when it is sent. */
  write(): string;
}

/**
 * Frames that wait for a connection, in order and limited in bytes and number.
 *
 * A frame is written when it is sent, since it contains the remaining time of its call.
 */
export class OfflineQueue {
  readonly #frames = new Map<string | symbol, QueuedFrame>();
  readonly #bytesMax: number;
  readonly #framesMax: number;
  #bytes = 0;

  constructor(bytesMax: number, framesMax: number) {
    this.#bytesMax = bytesMax;
    this.#framesMax = framesMax;
  }

  /** Number of frames. */
  get size(): number {
    return this.#frames.size;
  }

  /** Total size of the frames. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a frame; `false` if a limit is reached. */
  add(frame: QueuedFrame): boolean {
    if (this.#frames.size >= this.#framesMax) return false;
    if (this.#bytes + frame.bytes > this.#bytesMax) return false;
    this.#frames.set(frame.invocation_id ?? Symbol(), frame);
    this.#bytes += frame.bytes;
    return true;
  }

  /** Removes the frame of a call. */
  remove(invocation_id: string): void {
    const frame = this.#frames.get(invocation_id);
    if (!frame) return;
    this.#frames.delete(invocation_id);
    this.#bytes -= frame.bytes;
  }

  /** Removes all frames and returns them in order. */
  takeAll(): QueuedFrame[] {
    const frames = [...this.#frames.values()];
    this.#frames.clear();
    this.#bytes = 0;
    return frames;
  }
}
