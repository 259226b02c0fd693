/**
 * Executes functions whose implementation is a URL: PROTOCOL 2.2.
 *
 * Each worker that registers such functions has a connection here, on which their calls arrive as
 * frames, and from which the results leave. The payload goes out and the answer comes back byte for
 * byte. A call ends with its answer, with the time limit of its function, or when the core cancels
 * it: for its own deadline, its caller or the worker that owns the function.
 *
 * @module
 */
import dns from "node:dns";
import { describeThrown, EngineError, errorBody } from "../../sdk/typescript/wire/errors.ts";
import { DEFAULT_NAMESPACE, type InvokeFunction } from "../../sdk/typescript/wire/protocol.ts";
import type {
  ErrorBody,
  JsonObject,
  RegisterFunction,
} from "../../sdk/typescript/wire/protocol.ts";
import { parseFrame } from "../core/wire/parsed_frame.ts";
import { TaskQueue } from "../platform/task_queue.ts";
import type { Clock } from "../ports/clock.ts";
import type { HttpFunctionSettings } from "../ports/config.ts";
import type { Accept, Connection, ConnectionEvents } from "../ports/connection.ts";
import type { MemoryBudget } from "../ports/memory.ts";
import type { FindInvocation, ServedFunctions, ServedOwner } from "../ports/served.ts";
import type { Turns } from "../ports/turns.ts";
import { readAnswer } from "./answer.ts";
import { HttpClient } from "./http_client.ts";
import { requestHeaders } from "./request_headers.ts";
import { RequestSlots } from "./request_slots.ts";
import { type HttpTarget, readTarget, rulesOf, targetProblem, type TargetRules } from "./target.ts";

/** What {@linkcode HttpFunctions} works with. */
export interface HttpFunctionsOptions {
  readonly clock: Clock;
  readonly turns: Turns;
  readonly memory: MemoryBudget;
  readonly settings: HttpFunctionSettings;
  /** Largest answer. */
  readonly maxMessageBytes: number;
  /** Reads the variables of the engine's environment and of `.env`. */
  readonly variables: () => Variables;
  /** The addresses of a host. Default: those that the system knows. */
  resolve?(host: string): Promise<readonly string[]>;
  /** Certificates of authorities besides the known ones, as PEM. */
  readonly ca?: string;
}

/** The value of a variable; `undefined`: it is not set. */
type Variables = (name: string) => string | undefined;

/** What all connections of an engine share. */
interface Shared extends HttpFunctionsOptions {
  readonly client: HttpClient;
  readonly slots: RequestSlots;
  readonly checks: TaskQueue;
  rules: TargetRules;
  /** As of the last registration with `auth`, so that requests do not read a file each. */
  secrets: Variables;
}

/** A call that arrived. */
interface ArrivedCall extends InvokeFunction {
  readonly invocation_id: string;
}

/** Serves the functions of one engine. */
export class HttpFunctions implements ServedFunctions, Disposable {
  readonly #shared: Shared;

  constructor(options: HttpFunctionsOptions) {
    const { clock, turns, settings, resolve = addressesOf, ca } = options;
    const client = new HttpClient({ clock, turns, resolve, ...ca !== undefined && { ca } });
    const [slots, checks, rules] = [new RequestSlots(), new TaskQueue(), rulesOf(settings)];
    const secrets = () => undefined;
    this.#shared = { ...options, client, slots, checks, rules, secrets };
  }

  /** Applies new settings to later registrations and calls. */
  applySettings(settings: HttpFunctionSettings): void {
    this.#shared.rules = rulesOf(settings);
  }

  problem({ invocation = {} }: RegisterFunction, { isLimited }: ServedOwner): string | undefined {
    const target = readTarget(invocation);
    if (typeof target === "string") return target;
    // A guest would make the engine show the operator's secrets for it.
    if (target.auth && isLimited) return "access rules apply to its worker, so it may not use auth";
    const { rules, variables } = this.#shared;
    if (target.auth) this.#shared.secrets = variables();
    return targetProblem(target, rules, this.#shared.secrets);
  }

  open(find: FindInvocation, accept: Accept): void {
    const line = new ServedLine(this.#shared, find);
    line.events = accept(line);
  }

  /** Closes idle connections. */
  [Symbol.dispose](): void {
    this.#shared.client.close();
  }
}

/** The connection for the functions of one worker. */
class ServedLine implements Connection {
  readonly id: string = crypto.randomUUID();
  readonly isBatching = false;
  /** Nothing waits here: calls count as in flight at once. */
  readonly queuedBytes = 0;
  readonly #shared: Shared;
  readonly #find: FindInvocation;
  readonly #running = new Map<string, AbortController>();
  /** The receiver of results. */
  events: ConnectionEvents | undefined;

  constructor(shared: Shared, find: FindInvocation) {
    this.#shared = shared;
    this.#find = find;
  }

  /** Of the messages that are not calls, only a cancellation concerns this connection. */
  send(text: string): void {
    const { type, invocation_id, reason } = JSON.parse(text) as JsonObject;
    if (type !== "cancelinvocation") return;
    // After the call, which is taken in a microtask, too.
    queueMicrotask(() => {
      this.#running.get(String(invocation_id))?.abort(new Cancelled(String(reason)));
    });
  }

  forward(
    prefix: Uint8Array,
    prefixBytes: number,
    memory: Uint8Array,
    start: number,
    end: number,
  ): void {
    const frame = new Uint8Array(prefixBytes + end - start);
    frame.set(prefix.subarray(0, prefixBytes));
    frame.set(memory.subarray(start, end), prefixBytes);
    const isTaken = this.#shared.memory.take("queues", frame.length);
    // Not at once: the core is handling a message.
    queueMicrotask(() => void this.#take(frame, isTaken));
  }

  sendBinary(): void {}

  pause(): boolean {
    return false;
  }

  resume(): void {}

  close(_code: number, reason: string): void {
    this.events = undefined;
    for (const controller of this.#running.values()) controller.abort(new Cancelled(reason));
  }

  async #take(frame: Uint8Array, isTaken: boolean): Promise<void> {
    try {
      if (!this.events) return; // Closed since.
      const read = parseFrame(frame, 0, frame.length);
      if ("error" in read) {
        // Its payload is nested too deeply, or is no JSON.
        const { invocation_id, function_id } = read.fields;
        const error = errorBody("invalid_payload", read.error.message);
        return this.#reply(String(invocation_id), String(function_id ?? ""), error);
      }
      const call = read.message as ArrivedCall;
      if (!isTaken) {
        const error = errorBody("overloaded", "The engine's memory is used up (engine.memory_mb)");
        return this.#reply(call.invocation_id, call.function_id, error);
      }
      const { payload } = read;
      await this.#run(call, payload ? frame.subarray(payload.start, payload.end) : dataOf(read));
    } finally {
      // The frame is not freed: an answer may come before all of the payload was written.
      if (isTaken) this.#shared.memory.release("queues", frame.length);
    }
  }

  async #run(call: ArrivedCall, payload: Uint8Array | undefined): Promise<void> {
    const { clock } = this.#shared;
    const { invocation_id, function_id } = call;
    const controller = new AbortController();
    this.#running.set(invocation_id, controller);
    let cancelTimer = (): void => {};
    try {
      const target = this.#targetOf(call);
      cancelTimer = clock.after(target.timeout_ms, () => {
        controller.abort(timedOut(function_id, target));
      });
      await this.#request(call, target, payload, controller.signal);
    } catch (thrown) {
      if (thrown instanceof Cancelled) return; // The core has ended the call.
      const { code, message, details, retryable } = describeThrown(thrown) as ErrorBody;
      const error = errorBody(code, message, details, retryable ?? false);
      this.#reply(invocation_id, function_id, error);
    } finally {
      cancelTimer();
      this.#running.delete(invocation_id);
    }
  }

  /** What a call requests, by what is registered and allowed now. */
  #targetOf({ function_id, namespace = DEFAULT_NAMESPACE }: InvokeFunction): HttpTarget {
    const { rules, secrets } = this.#shared;
    const invocation = this.#find(function_id, namespace);
    if (!invocation) throw new EngineError("function_not_found", "Function not found");
    const target = readTarget(invocation);
    const problem = typeof target === "string" ? target : targetProblem(target, rules, secrets);
    if (problem === undefined) return target as HttpTarget;
    throw new EngineError("http_request_failed", `${function_id} is not requested: ${problem}`);
  }

  async #request(
    call: ArrivedCall,
    target: HttpTarget,
    payload: Uint8Array | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, slots, checks, rules, clock, memory, maxMessageBytes, secrets } = this.#shared;
    const { function_id, invocation_id, traceparent, baggage } = call;
    const { url, method, auth } = target;
    const mayBeEmpty = method === "GET" || method === "DELETE";
    const body = payload ?? (mayBeEmpty ? undefined : NULL);
    const release = await slots.acquire(url.host, signal);
    try {
      const now = clock.wall();
      const served = { function_id, invocation_id, traceparent, baggage, body, now };
      const headers = requestHeaders(target, served, auth && secrets(auth.variable));
      const answer = await client.request({ url, method, ...headers, body, rules, signal });
      const head = `${headOf(invocation_id, function_id)},"result":`;
      const ports = { limitBytes: maxMessageBytes, memory, signal, checks };
      using frame = await readAnswer(url, answer, head, ports);
      if (frame.bytes) this.events?.textBytes(frame.bytes, 0, frame.bytes.length, false);
      else this.events?.text(`${headOf(invocation_id, function_id)}}`);
    } finally {
      release();
    }
  }

  #reply(invocation_id: string, function_id: string, error: ErrorBody): void {
    this.events?.text(`${headOf(invocation_id, function_id)},"error":${JSON.stringify(error)}}`);
  }
}

/** Ends a request whose call has ended already. */
class Cancelled extends Error {}

const NULL = new TextEncoder().encode("null");

/** A result up to its value. */
function headOf(invocation_id: string, function_id: string): string {
  return `{"type":"invocationresult","invocation_id":${JSON.stringify(invocation_id)}` +
    `,"function_id":${JSON.stringify(function_id)}`;
}

/** The payload of a frame that was parsed as a whole, as it was written; `undefined` for null. */
function dataOf(frame: { field(name: string): string | undefined }): Uint8Array | undefined {
  const text = frame.field("data");
  return text === undefined || text.trim() === "null" ? undefined : new TextEncoder().encode(text);
}

function timedOut(function_id: string, { timeout_ms, url }: HttpTarget): EngineError {
  const message = `Invocation of ${function_id} timed out after ${timeout_ms} ms`;
  const reason = `${url.origin} did not answer within the timeout_ms of the function`;
  return new EngineError("timeout", message, { details: { url: url.origin, reason } });
}

/** The addresses of a host that the system knows. */
async function addressesOf(host: string): Promise<string[]> {
  const found = await dns.promises.lookup(host, { all: true });
  return found.map(({ address }) => address);
}
