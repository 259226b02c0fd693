/**
 * A small engine in the process of a test: workers connect to it without a network, functions of
 * others are faked, time passes when the test says so.
 *
 * It implements the engine's side of the wire as far as workers notice, in memory, and so runs in
 * Deno, Node and browsers alike. `docs/how-to/testing.md` says where it differs from the engine.
 *
 * @module
 */
import { EngineError } from "../typescript/wire/errors.ts";
import type { EnqueueOptions, Json, JsonInput, JsonObject } from "../typescript/wire/protocol.ts";
import type { Dial } from "../typescript/wire/transport.ts";
import { TestClock } from "./clock.ts";
import { offerConnection } from "./hook.ts";
import { sendRequest, type TestRequest, type TestResponse } from "./http.ts";
import { dialTo } from "./peers.ts";
import { Queues, type TestJob } from "./queues.ts";
import { jsonCopy, keyOf, Routing, type SeenCall } from "./routing.ts";
import { addState } from "./state.ts";
import { addSchedules, addTopics } from "./triggers.ts";

/** The platform's own timers; a test may have replaced the global ones. */
const realTimeout = globalThis.setTimeout;
/** Real time without any message after which handlers count as waiting for the test. */
const QUIET_MS = 50;
/** Real time that {@linkcode TestEngine.settle} waits at most. */
const SETTLE_MS_MAX = 10_000;

/** Options of a test engine. */
export interface TestEngineOptions {
  /** The time at the beginning. @default 2026-01-01T00:00:00Z */
  readonly now?: Date | number | undefined;
  /** Names of queues of the configuration; `default`, and those of functions, are there anyway. */
  readonly queues?: readonly string[] | undefined;
}

/** How a test calls a function. */
export interface TestCallOptions {
  /** Second argument of the handler. */
  readonly metadata?: JsonInput | undefined;
  /** Namespace of the function. @default `default` */
  readonly namespace?: string | undefined;
  /** On the clock of the test. @default none */
  readonly timeout_ms?: number | undefined;
}

/** A fake function. */
export interface FakeFunction {
  /** Its calls so far. */
  readonly calls: readonly SeenCall[];
  /** Removes it: a function of a worker with this id is called again. */
  remove(): void;
}

/** What a fake does: returns this value, or is called with payload and metadata. */
export type FakeImplementation =
  | JsonInput
  | ((payload: Json, metadata: Json | undefined) => unknown);

/** Options of a job. */
export interface TestEnqueueOptions extends EnqueueOptions {
  /** Name of the queue. @default `default` */
  readonly queue?: string | undefined;
}

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
export function startTestEngine(options: TestEngineOptions = {}): TestEngine {
  return new TestEngine(options);
}

/** An engine for one test; made by {@linkcode startTestEngine}. */
export class TestEngine implements AsyncDisposable {
  /** Connects a worker, as `dial` of its options: for tests with several engines. */
  readonly dial: Dial;
  /** The time of the test, as `clock` of a worker's options. */
  readonly clock: TestClock;
  readonly #routing: Routing;
  readonly #queues: Queues;
  readonly #takeBack: () => void;

  /** Use {@linkcode startTestEngine}. */
  constructor({ now = Date.UTC(2026, 0), queues = [] }: TestEngineOptions) {
    this.clock = new TestClock(Number(now));
    this.#routing = new Routing(this.clock);
    this.#queues = new Queues(this.#routing, queues);
    addState(this.#routing);
    addTopics(this.#routing);
    addSchedules(this.#routing);
    this.dial = dialTo(this.#routing);
    this.#takeBack = offerConnection({ dial: this.dial, clock: this.clock });
  }

  /** Calls a function of a worker, a fake or a built-in one, such as `state::get`. */
  async call<Out = unknown>(
    function_id: string,
    payload?: JsonInput,
    options: TestCallOptions = {},
  ): Promise<Out> {
    await this.#connected();
    const { metadata, ...rest } = options;
    const call = { function_id, payload: payload as Json, metadata: metadata as Json, ...rest };
    return await this.#routing.call(call) as Out;
  }

  /**
   * Provides a function, in place of any worker's with this id.
   *
   * @param implementation A value that it returns, or a function, which may be async and throw.
   */
  fake(function_id: string, implementation: FakeImplementation, namespace?: string): FakeFunction {
    const own = typeof implementation === "function"
      ? implementation as (payload: Json, metadata: Json | undefined) => unknown
      : () => implementation;
    const { fakes, seen } = this.#routing;
    const key = keyOf(namespace, function_id);
    fakes.set(key, own);
    this.#routing.functionAdded();
    const from = seen.length;
    return {
      get calls() {
        return seen.slice(from).filter((call) => call.function_id === function_id);
      },
      remove: () => void (fakes.get(key) === own && fakes.delete(key)),
    };
  }

  /** The calls that came to a function so far, or to all functions. */
  calls(function_id?: string): readonly SeenCall[] {
    const { seen } = this.#routing;
    return seen.filter((call) => function_id === undefined || call.function_id === function_id);
  }

  /**
   * Fails unless a function was called with a payload that has these members.
   *
   * @throws {EngineError} `assertion_failed`, with the calls that there were.
   */
  assertCalled(function_id: string, payload?: JsonInput): void {
    const calls = this.calls(function_id);
    const wanted = payload === undefined ? undefined : jsonCopy(payload);
    if (calls.some((call) => wanted === undefined || contains(call.payload, wanted))) return;
    const how = wanted === undefined ? "" : ` with ${JSON.stringify(wanted)}`;
    const found = calls.length === 0
      ? "it was not called"
      : `its calls: ${calls.map((call) => JSON.stringify(call.payload)).join(", ")}`;
    throw new EngineError("assertion_failed", `${function_id} was not called${how}; ${found}`);
  }

  /** Fails if a function was called. @throws {EngineError} `assertion_failed` */
  assertNotCalled(function_id: string): void {
    const calls = this.calls(function_id);
    if (calls.length === 0) return;
    const payloads = calls.map(({ payload }) => JSON.stringify(payload)).join(", ");
    throw new EngineError("assertion_failed", `${function_id} was called with ${payloads}`);
  }

  /** Sends an HTTP request to the triggers of type `http`, such as `("POST", "/orders?dry=1")`. */
  async http(method: string, path: string, options: TestRequest = {}): Promise<TestResponse> {
    await this.#connected();
    return await sendRequest(this.#routing, method, path, options);
  }

  /** Puts a call into a queue; {@linkcode TestEngine.settle} waits until it has run. */
  async enqueue(
    function_id: string,
    payload?: JsonInput,
    { queue = "default", ...options }: TestEnqueueOptions = {},
  ): Promise<TestJob> {
    await this.#connected();
    const data = payload === undefined ? null : jsonCopy(payload);
    const job = { ...options, queue, function_id, data };
    const receipt = await this.#routing.call({ function_id: ENQUEUE, payload: job }) as JsonObject;
    await this.settle();
    return this.#queues.jobs.find(({ id }) => id === receipt.messageReceiptId)!;
  }

  /** The jobs of a queue, or of all queues, in the order in which they came. */
  jobs(queue?: string): readonly TestJob[] {
    return this.#queues.jobs.filter((job) => queue === undefined || job.queue === queue);
  }

  /** Publishes a message, and waits until its subscribers have handled it. */
  async publish(topic: string, data: JsonInput = null): Promise<void> {
    await this.call("publish", { topic, data });
    await this.settle();
  }

  /**
   * Fires the triggers of any type, such as one that a worker provides, with a payload, and waits
   * until their functions have ended.
   *
   * @param where Only the triggers of this function, or with these members in their config.
   * @throws {EngineError} `trigger_not_found` if there is none.
   */
  async fire(
    type: string,
    payload: JsonInput,
    where: { readonly function_id?: string; readonly config?: JsonInput } = {},
  ): Promise<void> {
    await this.#connected();
    const { function_id, config } = where;
    const found = this.#routing.triggers(type).filter((trigger) =>
      (function_id === undefined || trigger.function_id === function_id) &&
      (config === undefined || contains(trigger.config ?? {}, jsonCopy(config)))
    );
    if (found.length === 0) {
      throw new EngineError("trigger_not_found", `No trigger of the type ${type} fits`);
    }
    for (const trigger of found) this.#routing.fire({ ...trigger, payload: jsonCopy(payload) });
    await this.settle();
  }

  /** The time, in milliseconds since 1970. */
  get now(): number {
    return this.clock.wall();
  }

  /**
   * Lets time pass: what is due runs in its order, each thing after what it causes has ended.
   * Timers of the program itself (`setTimeout`) are not those of the engine.
   */
  async advance(ms: number): Promise<void> {
    await this.#connected();
    await this.#quiet();
    const until = this.clock.now() + ms;
    while (this.clock.step(until)) await this.#quiet();
    await this.#quiet();
  }

  /**
   * Waits until all calls have ended, also those of queues and triggers.
   *
   * @throws {EngineError} `timeout` if one has not ended after 10 s of real time.
   */
  async settle(): Promise<void> {
    await this.#connected();
    const limit = performance.now() + SETTLE_MS_MAX;
    await this.#quiet();
    while (this.#routing.openCalls.length > 0) {
      if (performance.now() > limit) {
        const ids = this.#routing.openCalls.map(({ function_id }) => function_id).join(", ");
        const hint = "if they wait for time to pass, call engine.advance(ms)";
        throw new EngineError("timeout", `Calls have not ended: ${ids}; ${hint}`);
      }
      await turn();
    }
  }

  /**
   * Forgets calls, fakes, jobs and the state, for the next test of a file whose worker is imported
   * once. Workers, their functions and triggers stay, and so does the time.
   */
  reset(): void {
    this.#routing.seen.length = 0;
    this.#routing.fakes.clear();
    this.#queues.jobs.length = 0;
    addState(this.#routing);
  }

  /**
   * Ends the calls that run. Workers stay as they are, with nothing to do; further ones connect to
   * their address again.
   */
  async stop(): Promise<void> {
    this.#takeBack();
    this.#routing.stop();
    await turn();
  }

  /** Calls {@linkcode TestEngine.stop} at the end of an `await using` block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /** What workers of this tick have sent is handled. */
  async #connected(): Promise<void> {
    await turn();
  }

  /** Waits until nothing happens any more, though handlers may wait for time to pass. */
  async #quiet(): Promise<void> {
    let [activity, since] = [-1, performance.now()];
    do {
      if (activity !== this.#routing.activity) since = performance.now();
      activity = this.#routing.activity;
      await turn();
    } while (
      activity !== this.#routing.activity ||
      (this.#routing.openCalls.length > 0 && performance.now() - since < QUIET_MS)
    );
  }
}

const ENQUEUE = "engine::queue::enqueue";

/** A turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => void realTimeout(resolve, 0));
}

/** Whether a value has all members of another one. */
function contains(value: Json, wanted: Json): boolean {
  if (typeof wanted !== "object" || wanted === null) return value === wanted;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(wanted)) {
    return Array.isArray(value) && value.length === wanted.length &&
      wanted.every((each, i) => contains(value[i]!, each));
  }
  return Object.entries(wanted).every(([name, each]) => {
    const found = Object.hasOwn(value, name) ? (value as JsonObject)[name] : undefined;
    return found !== undefined && contains(found, each);
  });
}
