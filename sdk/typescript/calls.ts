/**
 * Calls this worker makes: checked, written, sent or queued, and ended exactly once.
 *
 * A call goes out at once when the line is open, else it waits in a bounded queue while its time
 * runs. Calls that had left when the line dropped fail at once: the engine has ended them, and
 * whether their handler ran is not known, so nothing is ever sent twice.
 *
 * @module
 */
import { checkCallable, checkId, checkNamespace, checkTimeout } from "./arguments.ts";
import {
  CallIds,
  type CallParts,
  countAt,
  countEnd,
  readResult,
  writeCall,
  writeParts,
} from "./call_frames.ts";
import type { CallScope, CallScopes } from "./trace_context.ts";
import type { WorkerClock } from "./platform.ts";
import type { Line } from "./connection.ts";
import type { CallRequest } from "./options.ts";
import { type OpenCall, timeoutError, Waiting } from "./pending_calls.ts";
import { encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody, InvocationError, thrownText } from "./wire/errors.ts";
import { OFFLINE_QUEUE_BYTES_MAX } from "./wire/limits.ts";
import type { ErrorBody, InvocationProgress, InvocationResult, Json } from "./wire/protocol.ts";

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

/** What stands between the two ids of a result. */
const FUNCTION_ID = '","function_id":';
/** Room that the envelope of a queued frame is counted with. */
const ENVELOPE_BYTES = 200;

/** The calls of one worker. */
export class OutboundCalls {
  readonly #setup: OutboundSetup;
  readonly #waiting: Waiting;
  readonly #queue = new OfflineQueue(OFFLINE_QUEUE_BYTES_MAX);
  readonly #ids = new CallIds();
  /** How every result for this worker starts when the engine writes it. */
  readonly #resultStart = `{"type":"invocationresult","invocation_id":"${this.#ids.start}`;
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

  /** A result came; one that nobody waits for is ignored. */
  settle({ invocation_id, result, error }: InvocationResult): void {
    const count = this.#ids.count(invocation_id);
    if (count === undefined) return;
    if (error) this.#waiting.fail(count, error);
    else this.#waiting.resolve(count, result);
  }

  /** Reads a frame if it is the result of a call in the usual form; else says `false`. */
  settleFrame(frame: string): boolean {
    if (!frame.startsWith(this.#resultStart)) return false;
    const at = this.#resultStart.length;
    const count = countAt(frame, at);
    const call = count === undefined ? undefined : this.#waiting.get(count);
    if (!call) return false;
    const named = countEnd(at);
    const id = named + FUNCTION_ID.length;
    const isNamed = frame.startsWith(FUNCTION_ID, named) &&
      frame.startsWith(call.quotedFunctionId, id);
    if (!isNamed) return false;
    const result = readResult(frame, id + call.quotedFunctionId.length);
    if (!result) return false;
    this.#waiting.resolve(call.count, result.value);
    return true;
  }

  /** A call ends because its result could not be read. */
  fail(invocation_id: string, error: ErrorBody): void {
    const count = this.#ids.count(invocation_id);
    if (count !== undefined) this.#waiting.fail(count, error);
  }

  /** News of a call came. */
  progress({ invocation_id, data }: InvocationProgress): void {
    const call = this.#waiting.get(this.#ids.count(invocation_id) ?? 0);
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
    if (signal?.aborted) throw cancelled(function_id);

    const count = ++this.#calls;
    const aborted = signal && ((): void => this.#aborted(count, signal));
    const call: OpenCall = {
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
    this.#waiting.add(call);
    if (aborted) signal.addEventListener("abort", aborted, { once: true });
  }

  /** Sends a frame, or queues it to be written when a line is open. */
  #send(frame: UnsentCall, call?: OpenCall): void {
    const line = this.#setup.line();
    if (line) {
      if (call) call.sent = true;
      line.send(write(frame, call, call?.timeoutMs));
      return;
    }
    const late = (): string => {
      if (!call) return write(frame, undefined, undefined);
      call.sent = true;
      const left = Math.floor(call.deadline - this.#setup.clock.now());
      return write(frame, call, Math.max(1, left));
    };
    const bytes = ENVELOPE_BYTES + frame.parts.tail.length;
    if (this.#queue.add({ invocation_id: call?.invocation_id, bytes, write: late })) return;
    const message = `The engine cannot be reached and ${this.#queue.bytes} bytes wait already`;
    throw new InvocationError(errorBody("overloaded", message), frame.request.function_id);
  }

  /** The caller's signal says that it does not wait any more. */
  #aborted(count: number, { reason }: NonNullable<CallRequest["signal"]>): void {
    const call = this.#waiting.get(count);
    if (!call) return;
    this.#waiting.fail(count, errorBody("cancelled", "Invocation cancelled"));
    this.#withdraw(call, thrownText(reason));
  }

  /** Nobody waits for the call any more: takes it back from the queue, or from the engine. */
  #withdraw({ invocation_id, sent }: OpenCall, reason: string): void {
    if (!sent) this.#queue.remove(invocation_id);
    else if (this.#engineCancels) {
      this.#setup.line()?.send(encodeMessage({ type: "cancelinvocation", invocation_id, reason }));
    }
  }
}

/** A call whose frame has not been written. */
interface UnsentCall {
  readonly request: CallRequest<unknown>;
  readonly parts: CallParts;
  readonly scope: CallScope | undefined;
}

function write(
  { request, parts, scope }: UnsentCall,
  call: OpenCall | undefined,
  timeout_ms: number | undefined,
): string {
  const { traceparent = scope?.traceparent, baggage = scope?.baggage } = request;
  const invocation_id = call?.invocation_id;
  return writeCall(parts, { invocation_id, timeout_ms, traceparent, baggage });
}

/** The smaller of the call's own time and what is left of the handler's that makes it. */
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
  if (request.action?.type === "enqueue") checkId("queue", request.action.queue, '"mail"');
}

function cancelled(function_id: string): InvocationError {
  return new InvocationError(errorBody("cancelled", "Invocation cancelled"), function_id);
}

/** A frame that waits. */
export interface QueuedFrame {
  /** Names a call, so that it can be taken out; `undefined` for frames nobody waits for. */
  readonly invocation_id: string | undefined;
  /** What it counts for. */
  readonly bytes: number;
  /** The frame as it is to leave now; `undefined` for not at all. */
  write(): string | undefined;
}

/** The frames of one worker that wait for a line. */
export class OfflineQueue {
  readonly #frames = new Map<string | symbol, QueuedFrame>();
  readonly #bytesMax: number;
  #bytes = 0;

  /** Holds at most `bytesMax`. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Puts a frame at the end; `false` when there is no room. */
  add(frame: QueuedFrame): boolean {
    if (this.#bytes + frame.bytes > this.#bytesMax) return false;
    this.#frames.set(frame.invocation_id ?? Symbol(), frame);
    this.#bytes += frame.bytes;
    return true;
  }

  /** Takes a call out again. */
  remove(invocation_id: string): void {
    const frame = this.#frames.get(invocation_id);
    if (!frame) return;
    this.#frames.delete(invocation_id);
    this.#bytes -= frame.bytes;
  }

  /** Hands over all frames in order and holds none any more. */
  takeAll(): QueuedFrame[] {
    const frames = [...this.#frames.values()];
    this.#frames.clear();
    this.#bytes = 0;
    return frames;
  }
}
