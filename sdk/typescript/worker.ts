/**
 * A worker: functions, triggers and trigger types it offers, and calls to functions of others.
 *
 * It keeps all that was registered and says it again on every new line, so user code registers
 * once and never hears of reconnects. It does no work of its own: {@linkcode OutboundCalls} makes
 * calls, {@linkcode Handlers} and {@linkcode TriggerTypes} answer what comes in, and
 * {@linkcode ReconnectingLine} carries both.
 *
 * @module
 */
import {
  checkCallable,
  checkId,
  checkNamespace,
  checkReconnect,
  checkTimeout,
  readUrl,
  withoutSecrets,
} from "./arguments.ts";
import { CallScopes } from "./trace_context.ts";
import { environment, newId, platformClock } from "./platform.ts";
import { encodeMessage } from "./wire/codec.ts";
import { ConnectionListeners, type Line, ReconnectingLine } from "./connection.ts";
import { EngineError, errorBody } from "./wire/errors.ts";
import { Handlers } from "./handlers.ts";
import { describeWorker } from "./identity.ts";
import { type InboundSetup, receive } from "./inbound.ts";
import { CALL_TIMEOUT_MS, ENGINE_URL_DEFAULT } from "./wire/limits.ts";
import { logFor, markOutput, printFailure, sendLogsTo } from "./logger.ts";
import type {
  CallRequest,
  ConnectionState,
  FunctionOptions,
  Handler,
  Registration,
  TriggerHandlers,
  TriggerInput,
  TriggerTypeInput,
  WorkerOptions,
} from "./options.ts";
import { OutboundCalls } from "./calls.ts";
import { dialPlatform, headersOf, withTlsHint } from "./dial.ts";
import {
  ANNOUNCE_FUNCTION_ID,
  type Announcement,
  type InvokeFunction,
  type Json,
  type WorkerRegistered,
} from "./wire/protocol.ts";
import { Registrations } from "./registrations.ts";
import { makeTelemetry, type Telemetry } from "./telemetry.ts";
import { TriggerTypes } from "./trigger_types.ts";

/**
 * Makes a worker and starts to connect it, without waiting: what is registered and called meanwhile
 * goes out as soon as the line is open.
 *
 * @param url Address of the engine; left out: ENGINE_URL, else `ws://127.0.0.1:49134`.
 * @throws {EngineError} `INVALID_ARGUMENTS` for an address or an option that cannot be used.
 *
 * @example
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * const worker = registerWorker("ws://127.0.0.1:49134", { workerName: "math" });
 * worker.registerFunction("math::add", ({ a, b }: { a: number; b: number }) => ({ c: a + b }));
 * await worker.shutdown(); // Else it serves until the process ends.
 * ```
 */
export function registerWorker(url?: string, options: WorkerOptions = {}): Worker {
  const address = readUrl(url ?? environment("ENGINE_URL") ?? ENGINE_URL_DEFAULT);
  return Worker.connect(address, options);
}

/** Offers functions to an engine and calls those of others. Made by {@linkcode registerWorker}. */
export class Worker implements AsyncDisposable {
  /** Its name in listings and logs. */
  readonly name: string;
  readonly #announcement: Announcement;
  readonly #calls: OutboundCalls;
  readonly #inbound: InboundSetup;
  readonly #line: ReconnectingLine;
  readonly #listeners: ConnectionListeners;
  readonly #onError: (error: EngineError) => void;
  readonly #registrations: Registrations;
  readonly #scopes = new CallScopes();
  readonly #telemetry: Telemetry | undefined;
  readonly #url: string;
  #identity: WorkerRegistered | undefined;
  #lastFailure: string | undefined;

  private constructor(url: string, options: WorkerOptions) {
    const { clock = platformClock, timeoutMs = CALL_TIMEOUT_MS } = options;
    checkTimeout("timeoutMs", timeoutMs);
    checkReconnect(options.reconnect ?? {});
    if (options.onError) checkCallable("onError", options.onError);
    this.#url = url;
    this.#onError = options.onError ?? printFailure;
    this.#announcement = describeWorker(options);
    this.name = this.#announcement.name;
    const scopes = this.#scopes;
    const report = (error: EngineError): void => this.#report(error);
    this.#listeners = new ConnectionListeners(report);
    this.#telemetry = makeTelemetry(url, options, this.#announcement);
    const line = (): Line | undefined => this.#line.line;
    this.#calls = new OutboundCalls({ clock, scopes, timeoutMs, line, report });
    const find = (namespace: string | undefined, id: string) =>
      this.#registrations.handler(namespace, id);
    const observe = (call: InvokeFunction, now: number) => this.#telemetry?.begin(call, now);
    const handlers = new Handlers({ clock, scopes, find, report, observe });
    const triggerTypes = new TriggerTypes({
      find: (namespace, id) => this.#registrations.triggerHandlers(namespace, id),
      report,
    });
    this.#registrations = new Registrations(
      (text) => line()?.send(text),
      (gone) => triggerTypes.unregisterAll(gone),
    );
    this.#inbound = {
      calls: this.#calls,
      handlers,
      triggerTypes,
      registered: (message) => this.#registered(message),
      rejected: (error) => this.#giveUp(error),
      report,
    };
    this.#line = new ReconnectingLine({
      url,
      dial: options.dial ?? dialPlatform,
      dialOptions: { headers: headersOf(options), batch: true },
      clock,
      reconnect: options.reconnect ?? {},
      random: Math.random,
    }, {
      opened: (opened) => this.#opened(opened),
      text: (message, from) => receive(message, from, this.#inbound),
      lost: () => this.#lost(),
      failed: (reason, retryMs) => this.#failed(reason, retryMs),
      state: (state) => this.#listeners.tell(state),
    });
  }

  /** As {@linkcode registerWorker}, for an address that has been checked. */
  static connect(url: string, options: WorkerOptions): Worker {
    const worker = new Worker(url, options);
    // A worker with a line of its own lives inside another program, which logs for itself.
    if (!options.dial) {
      logFor(worker);
      worker.#scopes.show();
      markOutput();
    }
    if (worker.#telemetry) sendLogsTo(worker, worker.#telemetry);
    worker.#line.start();
    return worker;
  }

  /** Where the line to the engine stands. */
  get connectionState(): ConnectionState {
    return this.#line.state;
  }

  /**
   * Offers a function under an id such as `math::add`; the same id again replaces it.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options JSON cannot hold.
   */
  registerFunction<In = Json, Out = unknown>(
    id: string,
    handler: Handler<In, Out>,
    options: FunctionOptions = {},
  ): Registration {
    checkId("A function's id", id, "math::add");
    checkCallable(`The handler of ${id}`, handler);
    checkNamespace(options.namespace);
    const { description, request_format, response_format, metadata, namespace } = options;
    return this.#registrations.addFunction({
      type: "registerfunction",
      id,
      ...description !== undefined && { description },
      ...request_format !== undefined && { request_format },
      ...response_format !== undefined && { response_format },
      ...metadata !== undefined && { metadata },
      ...namespace !== undefined && { namespace },
    }, handler as unknown as Handler);
  }

  /**
   * Asks for a function to be called when something happens. A trigger that the engine or the
   * provider of its type refuses is reported to `onError`; one of an unknown type waits for it.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a config JSON cannot hold.
   */
  registerTrigger(trigger: TriggerInput): Registration {
    const { type, function_id, config, metadata, namespace, trigger_namespace } = trigger;
    checkId("A trigger's type", type, "http");
    checkId("A trigger's function_id", function_id, "math::add");
    checkNamespace(namespace);
    checkNamespace(trigger_namespace);
    return this.#registrations.addTrigger({
      type: "registertrigger",
      id: newId(),
      trigger_type: type,
      function_id,
      ...namespace !== undefined && { namespace },
      ...trigger_namespace !== undefined && { trigger_namespace },
      ...metadata !== undefined && { metadata },
      ...config !== undefined && { config },
    });
  }

  /**
   * Offers a kind of trigger: the engine hands over every trigger of the type, and this worker
   * calls `trigger.function_id` when it happens.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for formats JSON cannot hold.
   */
  registerTriggerType<Config = Json>(
    type: TriggerTypeInput,
    handlers: TriggerHandlers<Config>,
  ): Registration {
    const { id, description, trigger_request_format, call_request_format, namespace } = type;
    checkId("A trigger type's id", id, "file-watch");
    checkNamespace(namespace);
    checkCallable(`registerTrigger of ${id}`, handlers?.registerTrigger);
    checkCallable(`unregisterTrigger of ${id}`, handlers?.unregisterTrigger);
    return this.#registrations.addType({
      type: "registertriggertype",
      id,
      description: description ?? "",
      ...trigger_request_format !== undefined && { trigger_request_format },
      ...call_request_format !== undefined && { call_request_format },
      ...namespace !== undefined && { namespace },
    }, handlers as unknown as TriggerHandlers);
  }

  /**
   * Calls a function, wherever it runs, and resolves with what it returned; with `undefined` when
   * it returned nothing. Made while there is no line, the call waits for one within its time.
   *
   * @throws {InvocationError} The failure of the function, or of reaching it:
   * `function_not_found`, `invocation_stopped` (whether it ran is not known), `TIMEOUT` and
   * `timeout` (see `isTimeout`), `cancelled`, `overloaded`, `SHUTDOWN`, `engine_unreachable`.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a payload that JSON
   * cannot hold.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * const payload = { a: 2, b: 3 };
   * const sum = await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 })
   *   .catch((error) => error.code); // Such as `TIMEOUT` when no engine is there.
   * console.log(sum);
   * await worker.shutdown();
   * ```
   */
  trigger<In = Json, Out = Json>(request: CallRequest<In>): Promise<Out> {
    return this.#calls.call(request) as Promise<Out>;
  }

  /** Hears of every new state from now on; call the result to stop. */
  onConnectionState(listener: (state: ConnectionState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Leaves the engine at once: its functions and triggers are no longer offered, calls that wait
   * fail with `SHUTDOWN`. Resolves when the line is closed; a second time does nothing more.
   */
  shutdown(): Promise<void> {
    this.#end(errorBody("SHUTDOWN", "engine client is shutting down"));
    const telemetry = this.#telemetry?.stop(this.#line.line);
    return Promise.all([this.#line.stop("disconnected"), telemetry]).then(() => {});
  }

  /** As {@linkcode Worker.shutdown}, at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  #opened(line: Line): void {
    this.#lastFailure = undefined;
    if (this.#identity) {
      const { worker_id, reattach_token } = this.#identity;
      line.send(encodeMessage({ type: "reattach", previous_worker_id: worker_id, reattach_token }));
    }
    line.send(encodeMessage({
      type: "invokefunction",
      function_id: ANNOUNCE_FUNCTION_ID,
      action: { type: "void" },
      data: this.#announcement as unknown as Json,
    }));
    for (const frame of this.#registrations.frames()) line.send(frame);
    this.#calls.sendQueued(line);
    this.#telemetry?.open();
  }

  #registered(message: WorkerRegistered): void {
    this.#identity = message;
    if (this.#telemetry) this.#telemetry.workerId = message.worker_id;
    this.#calls.useCapabilities(message.capabilities);
    this.#inbound.handlers.engineForwardsProgress = message.capabilities.includes("progress");
  }

  #lost(): void {
    this.#calls.lost();
    this.#inbound.handlers.abortAll("The line to the engine is lost");
    this.#inbound.triggerTypes.unregisterAll();
  }

  #failed(reason: string, retryMs: number | undefined): void {
    const text = `Cannot reach the engine at ${withoutSecrets(this.#url)}: ${withTlsHint(reason)}`;
    if (retryMs === undefined) {
      this.#giveUp(new EngineError("engine_unreachable", text));
    } else if (text !== this.#lastFailure) {
      this.#lastFailure = text; // Said once, not with every attempt.
      this.#report(new EngineError("engine_unreachable", `${text}; trying again`));
    }
  }

  #giveUp(error: EngineError): void {
    this.#report(error);
    this.#end(error.toJSON());
    void this.#telemetry?.stop(this.#line.line);
    void this.#line.stop("failed");
  }

  /** No line will come any more. */
  #end(error: ReturnType<typeof errorBody>): void {
    this.#scopes.hide();
    this.#calls.end(error);
    this.#inbound.handlers.abortAll(error.message);
    this.#inbound.triggerTypes.unregisterAll();
  }

  #report(error: EngineError): void {
    try {
      this.#onError(error);
    } catch (cause) {
      console.error("[engine] onError failed:", cause);
    }
  }
}
