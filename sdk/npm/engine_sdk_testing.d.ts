/// <reference lib="esnext.disposable" />
/**
 * Tests of workers without an engine: one in the process, whose functions are faked and whose time
 * the test controls.
 *
 * @example A job that is repeated after a failure
 * ```ts
 * import { registerWorker } from "engine-sdk";
 * import { startTestEngine } from "engine-sdk/testing";
 *
 * await using engine = startTestEngine();
 * let attempts = 0;
 * registerWorker().registerFunction("mail::send", () => {
 *   if (++attempts < 2) throw new Error("busy");
 * });
 *
 * await engine.enqueue("mail::send", { to: "a@b.c" });
 * await engine.advance(1_000); // the delay before the second attempt
 *
 * console.log(engine.jobs()[0]?.state); // "done"
 * ```
 *
 * @module
 */

/** A fake function. */
interface FakeFunction {
    /** Its calls so far. */
    readonly calls: readonly SeenCall[];
    /** Removes it: a function of a worker with this id is called again. */
    remove(): void;
}

/** A call that came to a function. */
interface SeenCall {
    /** The function. */
    readonly function_id: string;
    /** What it got; `null` if the caller sent none. */
    readonly payload: Json;
    /** Second argument of the handler. */
    readonly metadata: Json | undefined;
    /** Name of the worker that called; `test` for calls and firings of the test. */
    readonly caller: string;
    /** What it returned; `undefined` while it runs, and if it returned nothing. */
    readonly result: Json | undefined;
    /** What it failed with. */
    readonly error: ErrorBody | undefined;
}

/** Any JSON value. */
type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. */
interface JsonObject {
    /** Any member. */
    [key: string]: Json;
}

/** An error as it is sent. */
interface ErrorBody {
    /** Identifies the kind of error for programs, such as `function_not_found`. */
    code: string;
    /** Describes the error for people, in one sentence. */
    message: string;
    /** Stack trace of the handler; never sent to HTTP clients. */
    stacktrace?: string;
    /** Values for programs, such as the id that was not found. */
    details?: JsonObject;
    /** `true`: the handler did not start, and the same call can succeed later. */
    retryable?: boolean;
}

/** What a fake does: returns this value, or is called with payload and metadata. */
type FakeImplementation = JsonInput | ((payload: Json, metadata: Json | undefined) => unknown);

/**
 * A value to be sent as JSON. As {@linkcode Json}, but of any object type: TypeScript accepts an
 * interface for no type that has an index signature.
 */
type JsonInput = null | boolean | number | string | object;

/**
 * Starts an engine for one test. Until it is stopped, each `registerWorker()` in this process
 * connects to it instead of to an address.
 *
 * @example A function that calls another worker's, which the test fakes
 * ```ts
 * import { registerWorker } from "engine-sdk";
 * import { startTestEngine } from "engine-sdk/testing";
 *
 * await using engine = startTestEngine();
 * const worker = registerWorker();
 * worker.registerFunction("orders::create", async ({ to }: { to: string }) => {
 *   await worker.trigger({ function_id: "mail::send", payload: { to } });
 *   return { ok: true };
 * });
 * engine.fake("mail::send", null);
 *
 * const result = await engine.call("orders::create", { to: "a@b.c" });
 *
 * engine.assertCalled("mail::send", { to: "a@b.c" });
 * console.log(result); // { ok: true }
 * ```
 */
declare function startTestEngine(options?: TestEngineOptions): TestEngine;

/** Options of a test engine. */
interface TestEngineOptions {
    /** The time at the beginning. @default 2026-01-01T00:00:00Z */
    readonly now?: Date | number | undefined;
    /** Names of queues of the configuration; `default`, and those of functions, are there anyway. */
    readonly queues?: readonly string[] | undefined;
}

/** An engine for one test; made by {@linkcode startTestEngine}. */
declare class TestEngine implements AsyncDisposable {
    #private;
    /** Connects a worker, as `dial` of its options: for tests with several engines. */
    readonly dial: Dial;
    /** The time of the test, as `clock` of a worker's options. */
    readonly clock: TestClock;
    /** Use {@linkcode startTestEngine}. */
    constructor({ now, queues }: TestEngineOptions);
    /** Calls a function of a worker, a fake or a built-in one, such as `state::get`. */
    call<Out = unknown>(function_id: string, payload?: JsonInput, options?: TestCallOptions): Promise<Out>;
    /**
     * Provides a function, in place of any worker's with this id.
     *
     * @param implementation A value that it returns, or a function, which may be async and throw.
     */
    fake(function_id: string, implementation: FakeImplementation, namespace?: string): FakeFunction;
    /** The calls that came to a function so far, or to all functions. */
    calls(function_id?: string): readonly SeenCall[];
    /**
     * Fails unless a function was called with a payload that has these members.
     *
     * @throws {EngineError} `assertion_failed`, with the calls that there were.
     */
    assertCalled(function_id: string, payload?: JsonInput): void;
    /** Fails if a function was called. @throws {EngineError} `assertion_failed` */
    assertNotCalled(function_id: string): void;
    /** Sends an HTTP request to the triggers of type `http`, such as `("POST", "/orders?dry=1")`. */
    http(method: string, path: string, options?: TestRequest): Promise<TestResponse>;
    /** Puts a call into a queue; {@linkcode TestEngine.settle} waits until it has run. */
    enqueue(function_id: string, payload?: JsonInput, { queue, ...options }?: TestEnqueueOptions): Promise<TestJob>;
    /** The jobs of a queue, or of all queues, in the order in which they came. */
    jobs(queue?: string): readonly TestJob[];
    /** Publishes a message, and waits until its subscribers have handled it. */
    publish(topic: string, data?: JsonInput): Promise<void>;
    /**
     * Fires the triggers of any type, such as one that a worker provides, with a payload, and waits
     * until their functions have ended.
     *
     * @param where Only the triggers of this function, or with these members in their config.
     * @throws {EngineError} `trigger_not_found` if there is none.
     */
    fire(type: string, payload: JsonInput, where?: {
        readonly function_id?: string;
        readonly config?: JsonInput;
    }): Promise<void>;
    /** The time, in milliseconds since 1970. */
    get now(): number;
    /**
     * Lets time pass: what is due runs in its order, each thing after what it causes has ended.
     * Timers of the program itself (`setTimeout`) are not those of the engine.
     */
    advance(ms: number): Promise<void>;
    /**
     * Waits until all calls have ended, also those of queues and triggers.
     *
     * @throws {EngineError} `timeout` if one has not ended after 10 s of real time.
     */
    settle(): Promise<void>;
    /**
     * Forgets calls, fakes, jobs and the state, for the next test of a file whose worker is imported
     * once. Workers, their functions and triggers stay, and so does the time.
     */
    reset(): void;
    /**
     * Ends the calls that run. Workers stay as they are, with nothing to do; further ones connect to
     * their address again.
     */
    stop(): Promise<void>;
    /** Calls {@linkcode TestEngine.stop} at the end of an `await using` block. */
    [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to an address and returns at once; the outcome arrives as an event. `opened` may come
 * before it returns.
 */
type Dial = (url: string, events: TransportEvents, options: DialOptions) => Transport;

/** The events of a transport. `closed` comes once and last, also if it never opened. */
interface TransportEvents {
    /** The connection is open: messages can be sent. */
    opened(): void;
    /** A text message arrived. */
    text(message: string): void;
    /** A binary message arrived. */
    binary(bytes: Uint8Array): void;
    /**
     * The connection is closed. `code` is the WebSocket close code, 1006 when the connection failed;
     * `reason` describes the cause, such as `HTTP 401`.
     */
    closed(code: number, reason: string): void;
}

/** Options of a {@linkcode Dial}. */
interface DialOptions {
    /** Headers of the upgrade request; browsers send none. */
    readonly headers?: Readonly<Record<string, string>>;
    /** Propose batches: several messages in one frame. @default false */
    readonly batch?: boolean;
    /** Subprotocols to offer, where a browser's `WebSocket` is used. @default none */
    readonly protocols?: readonly string[];
}

/** One connection as the SDK holds it. No method blocks or throws. */
interface Transport {
    /** Sends a message: a string as a text frame, bytes as a binary one. Ignored unless open. */
    send(message: string | Uint8Array): void;
    /** Bytes that were sent but have not left this process; absent if the platform cannot tell. */
    readonly queuedBytes?: number;
    /** Closes the connection; `closed` follows. The default code is 1000, without a reason. */
    close(code?: number, reason?: string): void;
}

/** A clock with timers, for the engine and for the workers that are connected to it. */
declare class TestClock implements WorkerClock {
    #private;
    /** A clock that begins at `startMs`, in milliseconds since 1970. */
    constructor(startMs: number);
    /** Milliseconds since the beginning. */
    now(): number;
    /** Milliseconds since 1970. */
    wall(): number;
    /** Runs `task` once, when so many milliseconds have passed; the result cancels it. */
    after(ms: number, task: () => void): () => void;
    /** Lets time pass up to the next timer, and runs it; `false` if none is due by `untilMs`. */
    step(untilMs: number): boolean;
}

/**
 * The clock of a worker: the source of time and of all timers except those of the WebSocket
 * transports. Tests pass one that they control as `WorkerOptions.clock`.
 */
interface WorkerClock {
    /** Milliseconds since an unspecified start; never decreases. */
    now(): number;
    /** Runs `task` once after `ms` milliseconds; the returned function cancels it. */
    after(ms: number, task: () => void): () => void;
    /** Milliseconds since 1970, with fractions. @default that of the platform */
    wall?(): number;
}

/** How a test calls a function. */
interface TestCallOptions {
    /** Second argument of the handler. */
    readonly metadata?: JsonInput | undefined;
    /** Namespace of the function. @default `default` */
    readonly namespace?: string | undefined;
    /** On the clock of the test. @default none */
    readonly timeout_ms?: number | undefined;
}

/** What a request has beside method and path. */
interface TestRequest {
    /** A text is sent as it is, anything else as JSON. */
    readonly body?: JsonInput | undefined;
    /** Names may be of any case. */
    readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A response. */
interface TestResponse {
    /** Such as 200. */
    readonly status: number;
    /** Names are lower case; of several headers of one name the values are joined. */
    readonly headers: Readonly<Record<string, string>>;
    /** Parsed, if it is JSON; otherwise a text. */
    readonly body: unknown;
}

/** Options of a job. */
interface TestEnqueueOptions extends EnqueueOptions {
    /** Name of the queue. @default `default` */
    readonly queue?: string | undefined;
}

/** How a queue keeps a job and begins it; an engine without an option ignores it (extension). */
interface EnqueueOptions {
    /** The same id again within a day is the same job: nothing is added. */
    id?: string;
    /** The job begins after so many milliseconds at the earliest. */
    delay_ms?: number;
    /** The job begins at this time at the earliest, in milliseconds since 1970. */
    run_at_ms?: number;
    /** 0 to 255; higher ones begin first. Not in a fifo queue. @default 0 */
    priority?: number;
    /** A job that has not begun so many milliseconds after it may is a dead letter. */
    expires_ms?: number;
    /** How long one attempt may take, in milliseconds. */
    timeout_ms?: number;
    /** `engine::queue::result` returns the result for so many milliseconds. */
    keep_result_ms?: number;
}

/** A job of a queue. */
interface TestJob {
    /** Its id, as in the receipt. */
    readonly id: string;
    /** Name of its queue. */
    readonly queue: string;
    /** The function it calls. */
    readonly function_id: string;
    /** What the function gets. */
    readonly payload: Json;
    /** `waiting`: its function is not there, or another job of its group runs. */
    readonly state: "waiting" | "delayed" | "running" | "done" | "dead";
    /** Attempts that have begun. */
    readonly attempts: number;
    /** What the last attempt failed with. */
    readonly error: ErrorBody | undefined;
}

export {
  TestEngine,
  startTestEngine,
  type FakeFunction,
  type FakeImplementation,
  type SeenCall,
  type TestCallOptions,
  type TestClock,
  type TestEngineOptions,
  type TestEnqueueOptions,
  type TestJob,
  type TestRequest,
  type TestResponse,
};
