/**
 * Inbound calls: finds the handler, runs it, and answers on the line that asked.
 *
 * Handlers run side by side. What one needs to know of its call besides the payload (deadline,
 * abort signal, progress) is its {@linkcode CallContext}; calls it makes inherit the deadline.
 *
 * @module
 */
import { toJson } from "./arguments.ts";
import { writeResult } from "./call_frames.ts";
import type { CallScopes } from "./trace_context.ts";
import type { WorkerClock } from "./platform.ts";
import { encodeMessage } from "./wire/codec.ts";
import { describeThrown, EngineError } from "./wire/errors.ts";
import type { CallContext, Handler } from "./options.ts";
import type { CancelInvocation, ErrorBody, InvokeFunction, Json } from "./wire/protocol.ts";
import type { Line } from "./connection.ts";
import { TurnoverMap } from "./turnover_map.ts";

/** What running handlers share. */
export interface HandlerSetup {
  readonly clock: WorkerClock;
  readonly scopes: CallScopes;
  /** The handler of a function, if this worker offers it. */
  find(namespace: string | undefined, function_id: string): Handler | undefined;
  /** Hears of failures that no caller hears of. */
  report(error: EngineError): void;
  /**
   * Hears that a handler begins, `now` on the clock, and by the result of its end and failure; must
   * not throw.
   */
  observe?(
    message: InvokeFunction,
    now: number,
  ): ((error: ErrorBody | undefined) => void) | undefined;
}

/** The inbound calls of one worker. */
export class Handlers {
  /** Whether the engine forwards progress. */
  engineForwardsProgress = false;
  readonly #setup: HandlerSetup;
  readonly #running = new TurnoverMap<string, RunningCall>();

  /** Stores. */
  constructor(setup: HandlerSetup) {
    this.#setup = setup;
  }

  /** Handlers that run now for somebody who waits. */
  get size(): number {
    return this.#running.size;
  }

  /** Runs a call; never rejects. Resolves when it is answered. */
  async run(message: InvokeFunction, line: Line): Promise<void> {
    const { clock, scopes, find } = this.#setup;
    const call = new RunningCall(message, line, this.engineForwardsProgress);
    if (message.invocation_id) this.#running.set(message.invocation_id, call);
    const now = clock.now();
    const ended = this.#setup.observe?.(message, now);
    let failure: ErrorBody | undefined;
    try {
      const handler = find(message.namespace, message.function_id);
      if (!handler) throw new EngineError("function_not_found", "Function not found");
      const { timeout_ms, traceparent, baggage } = message;
      const deadline = timeout_ms === undefined ? undefined : now + timeout_ms;
      let result = scopes.run(
        { deadline, traceparent, baggage },
        () => handler(message.data ?? null, message.metadata, call),
      );
      if (isThenable(result)) result = await result;
      this.#answer(call, result);
    } catch (thrown) {
      failure = describeThrown(thrown);
      this.#fail(call, failure, thrown);
    } finally {
      call.isOver = true;
      this.#forget(call);
      ended?.(call.abortError ?? failure);
    }
  }

  /** The caller no longer waits: signals the handler. An id that does not run is ignored. */
  cancel({ invocation_id, reason }: CancelInvocation): void {
    this.#running.get(invocation_id)?.abort("cancelled", reason ?? "Invocation cancelled");
  }

  /** The line is over, so nobody waits for anything any more: signals all handlers. */
  abortAll(reason: string): void {
    for (const call of this.#running.values()) call.abort("invocation_stopped", reason);
    this.#running.clear();
  }

  /** Unless a later call has the same id by now. */
  #forget(call: RunningCall): void {
    const id = call.invocation_id;
    if (id && this.#running.get(id) === call) this.#running.take(id);
  }

  #answer(call: RunningCall, result: unknown): void {
    if (call.isAborted || call.invocation_id === undefined) return;
    const text = toJson(`The result of ${call.function_id}`, result);
    call.line.send(writeResult(call.message, text));
  }

  #fail(call: RunningCall, error: ErrorBody, thrown: unknown): void {
    if (call.isAborted) return;
    if (call.invocation_id === undefined) {
      const message = `${call.function_id} failed: ${error.message}`;
      this.#setup.report(new EngineError(error.code, message, { cause: thrown }));
      return;
    }
    call.line.send(encodeFailure(call.message, error));
  }
}

/** Whether a result is still to come: one that is there need not wait for a turn of its own. */
function isThenable(result: unknown): boolean {
  return typeof (result as { then?: unknown } | null | undefined)?.then === "function";
}

/** The frame that ends a call with a failure. */
export function encodeFailure(message: InvokeFunction, error: ErrorBody): string {
  const head = resultHead(message);
  try {
    return encodeMessage({ ...head, error });
  } catch {
    // Only the details are the handler's own: without them the caller still learns what happened.
    const { details: _details, ...rest } = error;
    return encodeMessage({ ...head, error: rest });
  }
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

/** One call that a handler is running; also the context that the handler sees. */
class RunningCall implements CallContext {
  isOver = false;
  readonly message: InvokeFunction;
  readonly line: Line;
  readonly #forwardsProgress: boolean;
  #abort: AbortController | undefined;
  #abortReason: EngineError | undefined;

  constructor(message: InvokeFunction, line: Line, forwardsProgress: boolean) {
    this.message = message;
    this.line = line;
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

  /** Made when a handler asks for it: most never do. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#abortReason && !this.#abort.signal.aborted) this.#abort.abort(this.#abortReason);
    return this.#abort.signal;
  }

  abort(code: string, reason: string): void {
    this.#abortReason = new EngineError(code, reason);
    this.#abort?.abort(this.#abortReason);
  }

  progress(data: Json): void {
    const { invocation_id, line } = this;
    if (this.isOver || this.isAborted || !this.#forwardsProgress || !invocation_id) return;
    const text = toJson(`Progress of ${this.function_id}`, data) ?? "null";
    line.send(
      `{"type":"invocationprogress","invocation_id":${JSON.stringify(invocation_id)},` +
        `"data":${text}}`,
    );
  }
}
