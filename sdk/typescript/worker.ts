/**
 * A worker: registers functions, triggers and trigger types, and calls the functions of others.
 *
 * It keeps all registrations and sends them again on each new connection, so that user code
 * registers once. It only connects its parts: {@linkcode OutboundCalls} makes calls,
 * {@linkcode Handlers} and {@linkcode ProvidedTriggers} handle messages of the engine, and
 * {@linkcode ReconnectingConnection} keeps the connection.
 *
 * @module
 */
import { checkOptions, withoutSecrets } from "./arguments.ts";
import {
  type Channel,
  type ChannelOptions,
  Channels,
  CREATE_CHANNEL,
} from "./channels/channels.ts";
import { openSocket } from "./channels/open_socket.ts";
import { OutboundCalls } from "./calls.ts";
import { type Connection, ConnectionListeners, ReconnectingConnection } from "./connection.ts";
import { dialPlatform, headersOf, startHint, withTlsHint } from "./dial.ts";
import { Handlers } from "./handlers.ts";
import { describeWorker } from "./identity.ts";
import { planFunction, planTrigger, planTriggerType, withQueue } from "./implementation.ts";
import { type InboundSetup, receive } from "./inbound.ts";
import {
  type ConfigurationOptions,
  followConfiguration,
  type LiveConfiguration,
} from "./builtin/live_configuration.ts";
import { failurePrinter, markOutput, printError, setDefaultWorker, setLogSink } from "./logger.ts";
import {
  type CallRequest,
  type ConnectionState,
  type EnqueueReceipt,
  type EnqueueRequest,
  type FunctionOptions,
  type Handler,
  type HttpInvocation,
  type Registration,
  type SchemaOptions,
  TriggerAction,
  type TriggerHandlers,
  type TriggerInput,
  type TriggerTypeInput,
  type WorkerOptions,
} from "./options.ts";
import { platformClock, type WorkerClock } from "./platform.ts";
import { ProvidedTriggers } from "./provided_triggers.ts";
import { Registrations } from "./registrations.ts";
import {
  type StateChanges,
  type StatePlace,
  type WatchOptions,
  type WatchSetup,
  watchState,
} from "./builtin/state_watch.ts";
import { subscribeTo } from "./builtin/subscriptions.ts";
import { createStream, type Stream, streamOf, type StreamSource } from "./builtin/streams.ts";
import { createTelemetry, type Telemetry } from "./telemetry.ts";
import type { SchemaInput, SchemaOutput, StandardSchema } from "./typed/standard_schema.ts";
import { CallScopes } from "./trace_context.ts";
import type { ChannelRefs } from "./wire/channels.ts";
import { encodeMessage } from "./wire/codec.ts";
import { EngineError, errorBody } from "./wire/errors.ts";
import { CALL_TIMEOUT_MS } from "./wire/limits.ts";
import {
  ANNOUNCE_FUNCTION_ID,
  type Announcement,
  type InvokeFunction,
  type Json,
  type WorkerRegistered,
} from "./wire/protocol.ts";

/** The function of `engine-pubsub`. */
const PUBLISH = "publish";

/**
 * A worker: registers functions and triggers with an engine, and calls functions of other workers.
 * Created by `registerWorker()`.
 *
 * @example A worker that ends with a block
 * ```ts
 * import { registerWorker } from "engine-sdk";
 *
 * {
 *   await using worker = registerWorker();
 *   worker.registerFunction("hello::greet", ({ name }: { name: string }) => `Hello ${name}`);
 *   worker.registerTrigger({
 *     type: "http",
 *     function_id: "hello::greet",
 *     config: { api_path: "/hello", http_method: "POST" },
 *   });
 * } // Calls shutdown().
 * ```
 */
export class Worker implements AsyncDisposable {
  /** Name in listings and logs. */
  readonly name: string;
  readonly #announcement: Announcement;
  readonly #calls: OutboundCalls;
  readonly #channels: Channels;
  readonly #clock: WorkerClock;
  readonly #inbound: InboundSetup;
  readonly #connection: ReconnectingConnection;
  readonly #listeners: ConnectionListeners;
  readonly #onError: (error: EngineError) => void;
  readonly #registrations: Registrations;
  readonly #scopes = new CallScopes();
  readonly #telemetry: Telemetry | undefined;
  readonly #url: string;
  #identity: WorkerRegistered | undefined;
  #lastFailure: string | undefined;

  private constructor(url: string, options: WorkerOptions) {
    const { clock = platformClock, timeoutMs = CALL_TIMEOUT_MS, whenDisconnected } = options;
    checkOptions(options);
    this.#url = url;
    this.#clock = clock;
    this.#onError = options.onError ?? printError;
    this.#announcement = describeWorker(options);
    this.name = this.#announcement.name;
    const scopes = this.#scopes;
    const report = (error: EngineError): void => this.#report(error);
    this.#listeners = new ConnectionListeners(report);
    this.#telemetry = createTelemetry(url, options, this.#announcement);
    const connection = (): Connection | undefined => this.#connection.current;
    const failsNow = (): boolean =>
      whenDisconnected === "fail" && this.#connection.state !== "connecting";
    this.#calls = new OutboundCalls({ clock, scopes, timeoutMs, connection, failsNow, report });
    const find = (namespace: string | undefined, id: string) =>
      this.#registrations.handler(namespace, id);
    const observe = (call: InvokeFunction, now: number) => this.#telemetry?.startSpan(call, now);
    const failed = failurePrinter(options);
    const handlers = new Handlers({ clock, scopes, find, report, observe, failed });
    if (this.#telemetry) this.#telemetry.load = () => handlers.load();
    const triggers = new ProvidedTriggers({
      find: (namespace, id) => this.#registrations.triggerHandlers(namespace, id),
      report,
    });
    this.#registrations = new Registrations(
      (text) => connection()?.send(text),
      (removed) => triggers.unregisterAll(removed),
    );
    this.#channels = new Channels(url, openSocket);
    this.#inbound = {
      calls: this.#calls,
      handlers,
      triggers,
      // A worker in the engine's process passes references on as they are.
      channels: options.dial ? undefined : this.#channels,
      registered: (message) => this.#registered(message),
      rejected: (error) => this.#giveUp(error),
      report,
    };
    this.#connection = new ReconnectingConnection({
      url,
      dial: options.dial ?? dialPlatform,
      dialOptions: { headers: headersOf(options), batch: true },
      clock,
      reconnect: options.reconnect ?? {},
      random: Math.random,
    }, {
      opened: (opened) => this.#opened(opened),
      text: (message, from) => receive(message, from, this.#inbound),
      lost: (reason) => this.#lost(reason),
      failed: (reason, retryMs) => this.#failed(reason, retryMs),
      state: (state) => {
        if (failsNow() && state === "reconnecting") this.#calls.failQueued();
        this.#listeners.notify(state);
      },
    });
  }

  /** `registerWorker()` for an address that has been checked; use that instead. */
  static connect(url: string, options: WorkerOptions): Worker {
    const worker = new Worker(url, options);
    // A worker with its own `dial` is part of a program that has its own log.
    if (!options.dial) {
      setDefaultWorker(worker);
      worker.#scopes.attach();
      markOutput();
    }
    if (worker.#telemetry) setLogSink(worker, worker.#telemetry);
    worker.#connection.start();
    return worker;
  }

  /** State of the connection to the engine; `onConnectionState` reports its changes. */
  get connectionState(): ConnectionState {
    return this.#connection.state;
  }

  /**
   * Registers a function. The same id replaces the earlier registration of this worker.
   *
   * A registration that the engine rejects is reported to `onError`.
   *
   * @param id `<group>::<name>`, such as `math::add`; at most 1,024 characters. `engine::*` is
   * reserved.
   * @param handler Runs the calls, concurrently.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options that JSON cannot
   * represent.
   *
   * @example A function whose payload the engine checks
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * worker.registerFunction("math::half", (n: number) => n / 2, {
   *   description: "Halves a number",
   *   request_format: { type: "number" },
   * });
   * await worker.shutdown();
   * ```
   */
  registerFunction<In extends StandardSchema, Out extends StandardSchema = StandardSchema>(
    id: string,
    handler: Handler<SchemaOutput<In>, SchemaInput<Out>>,
    options: SchemaOptions<In, Out> & { readonly input: In },
  ): Registration;

  /** Registers a function whose result has a schema. */
  registerFunction<Out extends StandardSchema, In = Json>(
    id: string,
    handler: Handler<In, SchemaInput<Out>>,
    options: SchemaOptions<never, Out> & { readonly output: Out },
  ): Registration;

  /** Registers a function without schemas of a library; its payload has the type you write. */
  registerFunction<In = Json, Out = unknown>(
    id: string,
    handler: Handler<In, Out>,
    options?: FunctionOptions,
  ): Registration;

  /**
   * Registers a function whose implementation is a URL: the engine makes the request, and callers
   * see no difference. The function exists while this worker is connected.
   *
   * The engine's configuration has to allow the host; what it refuses is reported to `onError`.
   *
   * @param invocation The URL and how to request it.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for options that JSON cannot
   * represent.
   *
   * @example A service that knows nothing of the engine
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * worker.registerFunction("legacy::quote", { url: "https://api.example.com/quote" });
   * await worker.shutdown();
   * ```
   */
  registerFunction(
    id: string,
    invocation: HttpInvocation,
    options?: FunctionOptions,
  ): Registration;

  registerFunction(
    id: string,
    implementation: Handler<never> | HttpInvocation,
    options: SchemaOptions = {},
  ): Registration {
    const { message, handler } = planFunction(id, implementation, options);
    return withQueue(this, this.#registrations.addFunction(message, handler), options);
  }

  /**
   * Registers a trigger: its function is called on events of its type.
   *
   * A trigger that the engine or the provider of the type rejects is reported to `onError`. A
   * trigger of an unknown type becomes live when a worker provides the type.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a config that JSON cannot
   * represent.
   *
   * @example An HTTP route
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * worker.registerFunction("orders::create", ({ body }: { body: unknown }) => {
   *   return { status_code: 201, body };
   * });
   * worker.registerTrigger({
   *   type: "http",
   *   function_id: "orders::create",
   *   config: { api_path: "/orders", http_method: "POST" },
   * });
   * await worker.shutdown();
   * ```
   */
  registerTrigger(trigger: TriggerInput): Registration {
    return this.#registrations.addTrigger(planTrigger(trigger));
  }

  /**
   * Provides a trigger type: the engine passes every trigger of the type to `handlers`, and this
   * worker calls `trigger.function_id` on its events.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for formats that JSON cannot
   * represent.
   */
  registerTriggerType<Config = Json>(
    type: TriggerTypeInput,
    handlers: TriggerHandlers<Config>,
  ): Registration {
    const message = planTriggerType(type, handlers);
    return this.#registrations.addType(message, handlers as unknown as TriggerHandlers);
  }

  /**
   * Calls a function of any worker and resolves with its result, `undefined` if it has none.
   *
   * While there is no connection, the call is queued until its timeout or fails at once, as
   * `whenDisconnected` says; the queue holds 10,000 calls and 64 MiB.
   *
   * @throws {InvocationError} With the code that the handler threw, or one of these:
   * `function_not_found`; `invalid_payload`, if the payload does not match `request_format`;
   * `invocation_failed`, for a thrown error without a code; `TIMEOUT` and `timeout` (see
   * `isTimeout`); `cancelled`, by `signal`; `invocation_stopped`, if the worker or the connection
   * was lost and the function may have run; `overloaded`, if a limit is reached and nothing has
   * run; `engine_unreachable`, without a connection if `whenDisconnected` is `fail`, and after the
   * last attempt to connect; `SHUTDOWN`, after `shutdown()`.
   * @throws {EngineError} `INVALID_ARGUMENTS`; `serialization_error` for a payload that JSON cannot
   * represent, that is nested more deeply than 128 levels, or that takes over 64 MiB.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * const payload = { a: 2, b: 3 };
   * const sum = await worker.trigger({ function_id: "math::add", payload, timeout_ms: 500 })
   *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
   * console.log(sum);
   * await worker.shutdown();
   * ```
   */
  trigger<In = Json, Out = unknown>(request: CallRequest<In>): Promise<Out> {
    return this.#calls.call(request) as Promise<Out>;
  }

  /**
   * Puts a call into a queue, which makes it later, at least once.
   * Resolves when the job is on disk.
   *
   * @throws {InvocationError} `enqueue_error`, if there is no such queue or it cannot keep the job;
   * `deserialization_error` for a bad option; otherwise as {@linkcode Worker.trigger}.
   *
   * @example A mail in a minute
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker(undefined, { timeoutMs: 500 });
   * const payload = { to: "a@b.c" };
   * await worker.enqueue({ function_id: "mail::send", payload, queue: "mail", delay_ms: 60_000 })
   *   .catch((error) => error.code); // `TIMEOUT` if no engine runs.
   * await worker.shutdown();
   * ```
   */
  enqueue<In = Json>(request: EnqueueRequest<In>): Promise<EnqueueReceipt> {
    const { function_id, payload, namespace, queue = "default", ...options } = request;
    const action = TriggerAction.Enqueue({ queue, ...options });
    return this.trigger<In, EnqueueReceipt>({ function_id, payload, namespace, action });
  }

  /**
   * Publishes a message to all functions that are subscribed to a topic at that moment, at most
   * once; `engine-pubsub` provides it. Resolves when the engine has accepted the message, before it
   * is delivered.
   *
   * @param topic Such as `orders.created`; without `*` and `>`.
   * @param data Any JSON. Default: `null`.
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `function_not_found` without
   * `engine-pubsub`; `overloaded`; `topic_not_set`; `VALUE_TOO_LARGE`; `deserialization_error` for
   * a topic that is too long or has a wildcard.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker(undefined, { timeoutMs: 500 });
   * const code = await worker.publish("orders.created", { id: 7 }).catch((error) => error.code);
   * console.log(code); // `TIMEOUT` if no engine runs.
   * await worker.shutdown();
   * ```
   */
  async publish(topic: string, data?: unknown): Promise<void> {
    await this.trigger({ function_id: PUBLISH, payload: { topic, data } });
  }

  /**
   * Calls `handler` with each message of a topic, or of all topics that a pattern matches, until it
   * is unregistered. Every worker that subscribes gets every message; for replicas that share them,
   * register a function and a trigger of type `subscribe` instead.
   *
   * A pattern that the engine rejects is reported to `onError`.
   *
   * @param topic A topic, or a pattern: `*` stands for one part, `>` at the end for one or more.
   * @param handler Its first argument is the published data; its result is ignored.
   * @throws {EngineError} `INVALID_ARGUMENTS`.
   *
   * @example
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * const worker = registerWorker();
   * const subscription = worker.subscribe("orders.*", ({ id }: { id: number }) => console.log(id));
   * subscription.unregister();
   * await worker.shutdown();
   * ```
   */
  subscribe<Data = Json>(topic: string, handler: Handler<Data>): Registration {
    return subscribeTo(this, topic, handler);
  }

  /**
   * A stream of `engine-stream`, whose items and events this worker reads and writes; see
   * {@linkcode Stream}.
   *
   * @param name Such as `chat`.
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  stream<Item = Json>(name: string): Stream<Item> {
    return streamOf(this, name);
  }

  /**
   * Keeps the items of a stream in this worker, in place of the engine: registers the functions
   * `stream::get(<name>)`, `set`, `delete`, `list`, `list_groups`, and `update` if there is one.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  createStream<Item = Json>(name: string, source: StreamSource<Item>): Registration {
    return createStream(this, name, source);
  }

  /**
   * A value of `engine-configuration` that stays current: it is read again after every change and
   * every reconnect; see {@linkcode LiveConfiguration}.
   *
   * @param id Such as `mail`.
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `NOT_REGISTERED`; `NOT_FOUND`, if it
   * has no value; `SCHEMA_INVALID`; `EXPAND_FAILED`; `function_not_found` without
   * `engine-configuration`.
   * @throws {EngineError} `INVALID_ARGUMENTS`
   */
  configuration<Value = Json>(
    id: string,
    options: ConfigurationOptions = {},
  ): Promise<LiveConfiguration<Value>> {
    return followConfiguration(this.#following, id, options);
  }

  get #following(): WatchSetup {
    const report = (error: EngineError): void => this.#report(error);
    return { worker: this, clock: this.#clock, scopes: this.#scopes, report };
  }

  /**
   * Entries of the state, first as they are, then each that changed: {@linkcode StateChanges}.
   *
   * @param place A `scope`, such as `stock`, and a `key`; without it all keys of the scope.
   * @throws {EngineError} `INVALID_ARGUMENTS`; the first `next()`: `function_not_found` without
   * `engine-state`, and what else its first read fails with.
   */
  watchState<Value = Json>(place: StatePlace, options: WatchOptions = {}): StateChanges<Value> {
    return watchState(this.#following, place, options);
  }

  /**
   * Creates a channel: a stream of bytes and text messages between any two workers, whose ends
   * travel inside payloads. The engine forwards what is written and holds the writer back while the
   * reader is slow. An end that never connects ends the channel after 5 minutes.
   *
   * @throws {InvocationError} As {@linkcode Worker.trigger}: `overloaded`, if this worker has 1,000
   * channels open.
   *
   * @example A file is passed to a function while it is read
   * ```ts
   * import { registerWorker } from "engine-sdk";
   *
   * async function upload(file: ReadableStream<Uint8Array>) {
   *   await using worker = registerWorker();
   *   const { writer, reader } = await worker.createChannel();
   *   const size = worker.trigger({ function_id: "files::size", payload: { file: reader } });
   *   await file.pipeTo(writer.writable);
   *   return await size;
   * }
   * ```
   */
  async createChannel(options: ChannelOptions = {}): Promise<Channel> {
    const { bufferFrames } = options;
    const payload = bufferFrames === undefined ? {} : { buffer_size: bufferFrames };
    const refs = await this.trigger({ function_id: CREATE_CHANNEL, payload });
    // Ends already, unless this worker gets references as they are.
    return this.#channels.channel(JSON.parse(JSON.stringify(refs)) as ChannelRefs);
  }

  /**
   * Calls `listener` with each new state; the returned function removes it.
   *
   * @throws {EngineError} `INVALID_ARGUMENTS` if it is not a function.
   */
  onConnectionState(listener: (state: ConnectionState) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Disconnects from the engine: its functions and triggers are removed, the signals of running
   * handlers are aborted, and pending calls fail with `SHUTDOWN`. Resolves when the connection is
   * closed; has no effect the second time.
   */
  shutdown(): Promise<void> {
    this.#end(errorBody("SHUTDOWN", "engine client is shutting down"));
    const telemetry = this.#telemetry?.stop(this.#connection.current);
    return Promise.all([this.#connection.stop("disconnected"), telemetry]).then(() => {});
  }

  /** Calls {@linkcode Worker.shutdown} at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.shutdown();
  }

  #opened(connection: Connection): void {
    this.#lastFailure = undefined;
    if (this.#identity) {
      const { worker_id, reattach_token } = this.#identity;
      connection.send(
        encodeMessage({ type: "reattach", previous_worker_id: worker_id, reattach_token }),
      );
    }
    connection.send(encodeMessage({
      type: "invokefunction",
      function_id: ANNOUNCE_FUNCTION_ID,
      action: { type: "void" },
      data: this.#announcement as unknown as Json,
    }));
    for (const frame of this.#registrations.frames()) connection.send(frame);
    this.#calls.sendQueued(connection);
    this.#telemetry?.open();
  }

  #registered(message: WorkerRegistered): void {
    this.#identity = message;
    if (this.#telemetry) this.#telemetry.workerId = message.worker_id;
    this.#calls.useCapabilities(message.capabilities);
    this.#inbound.handlers.engineForwardsProgress = message.capabilities.includes("progress");
  }

  #lost(reason: string): void {
    this.#calls.connectionLost(reason);
    this.#inbound.handlers.abortAll("The connection to the engine is lost");
    this.#inbound.triggers.unregisterAll();
  }

  #failed(reason: string, retryMs: number | undefined): void {
    const text = `Cannot reach the engine at ${withoutSecrets(this.#url)}: ${withTlsHint(reason)}`;
    if (retryMs === undefined) {
      this.#giveUp(new EngineError("engine_unreachable", text));
    } else if (text !== this.#lastFailure) {
      this.#lastFailure = text; // Reported once, not with every attempt.
      this.#report(
        new EngineError(
          "engine_unreachable",
          `${text}; retrying in the background${startHint(this.#url, reason)}`,
        ),
      );
    }
  }

  #giveUp(error: EngineError): void {
    this.#report(error);
    this.#end(error.toJSON());
    void this.#telemetry?.stop(this.#connection.current);
    void this.#connection.stop("failed");
  }

  /** Ends all parts with `error`: there will be no connection again. */
  #end(error: ReturnType<typeof errorBody>): void {
    this.#scopes.detach();
    this.#channels.close();
    this.#calls.end(error);
    this.#inbound.handlers.abortAll(error.message);
    this.#inbound.triggers.unregisterAll();
  }

  #report(error: EngineError): void {
    try {
      this.#onError(error);
    } catch (cause) {
      console.error("[engine] onError failed:", cause);
    }
  }
}
