/**
 * One WebSocket of a client: its messages go to the function of its route, one after another.
 *
 * While a function runs for one message a few more are read and wait; then the connection is not
 * read any further, so that TCP holds the client back. What cannot be delivered is never dropped in
 * silence: the connection ends with a code that says why. The close is the last event, after the
 * message that was being handled, and comes once.
 *
 * @module
 */
import type { Clock } from "../../../engine/ports/clock.ts";
import type { Connection, ConnectionEvents } from "../../../engine/ports/connection.ts";
import type { Log } from "../../../engine/ports/log.ts";
import type { MemoryBudget } from "../../../engine/ports/memory.ts";
import { SOCKET_FREE_BYTES } from "../../../engine/ports/web_sockets.ts";
import { EngineError, isTimeout, thrownText } from "../../../sdk/typescript/wire/errors.ts";
import { isTooDeep } from "../../../sdk/typescript/wire/json_depth.ts";
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { HeldMemory } from "../../kit/held_memory.ts";
import type { Client } from "../../kit/http/clients.ts";
import type { FunctionCall } from "../handler.ts";
import { CallSignal } from "../request.ts";
import { plainMessage } from "../response.ts";
import { type Frame, frameOfValue, isCloseCode, sendFrame } from "./frame.ts";
import { type LiveRoute, RETURN_MS, type SocketTarget } from "./live_routes.ts";
import type { EventSpans, SocketEvent } from "./spans.ts";

/** Messages that wait while a function runs for the one before; then nothing is read. */
export const WAITING_MESSAGES_MAX = 16;
/** The same in bytes; the message that passes it is the last that is read. */
export const WAITING_BYTES_MAX: number = 64 * 1024;
/** With more unsent, a client is behind: what is sent to it is refused, or it is closed. */
export const UNSENT_BYTES_MAX: number = 1024 * 1024;
/** How often an event is tried that no function could take. */
export const RETRY_MS = 250;

const TEXT = new TextDecoder("utf-8", { ignoreBOM: true });

/** What all connections share. */
export interface SocketServices {
  readonly clock: Clock;
  readonly log: Log;
  readonly memory: MemoryBudget;
  readonly spans: EventSpans;
  /** For each call of a function, unless its route says otherwise. */
  readonly timeoutMs: number;
  /** Whether the engine stops: nothing is tried again. */
  readonly isDraining: boolean;
  call(request: FunctionCall): Promise<Json | undefined>;
  /** It has ended: nothing can be sent to it, and it is in no group. */
  closed(socket: ClientSocket): void;
  /** Its close was delivered. */
  ended(socket: ClientSocket): void;
}

/** What is known of a connection when it is accepted. */
export interface SocketIdentity {
  readonly id: string;
  readonly route: LiveRoute;
  readonly path_params: JsonObject;
  readonly context: JsonObject | undefined;
  readonly subprotocol: string | undefined;
  readonly client: Client;
  /** The memory that belongs to it. */
  readonly held: HeldMemory;
}

interface Waiting {
  readonly payload: JsonObject;
  readonly bytes: number;
}

/** An accepted connection. */
export class ClientSocket implements ConnectionEvents {
  readonly identity: SocketIdentity;
  readonly groups: Set<string> = new Set();
  /** Its place in lists; later ones are larger. */
  readonly seq: number;
  /** When it was accepted, in milliseconds since 1970. */
  readonly openedAtMs: number;
  /** When a message last came or was sent, on the clock. */
  activeAt: number;
  readonly #services: SocketServices;
  readonly #signal = new CallSignal();
  #connection: Connection | undefined;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #isPaused = false;
  #isDelivering = false;
  #end: { readonly code: number; readonly reason: string } | undefined;
  #wake: (() => void) | undefined;

  constructor(identity: SocketIdentity, seq: number, services: SocketServices) {
    this.identity = identity;
    this.seq = seq;
    this.#services = services;
    this.openedAtMs = services.clock.wall();
    this.activeAt = services.clock.now();
  }

  /** Whether something can be sent to it. */
  get isOpen(): boolean {
    return this.#end === undefined;
  }

  /** Bytes that the client has not taken. */
  get unsentBytes(): number {
    return this.#connection?.queuedBytes ?? 0;
  }

  /** Its upgrade was answered. */
  open(connection: Connection): void {
    this.#connection = connection;
    const { code, reason } = this.#end ?? {};
    if (code !== undefined) connection.close(code, reason!); // Closed meanwhile, as by a drain.
  }

  /** Sends a message; `false`, and nothing is sent, when the client is behind. */
  send(frame: Frame): boolean {
    const connection = this.#connection;
    if (!connection || !this.isOpen) return false;
    const unsent = connection.queuedBytes;
    const room = this.#services.memory.isTight ? SOCKET_FREE_BYTES : UNSENT_BYTES_MAX;
    if (unsent > 0 && unsent + frame.bytes.length > room) return false;
    this.activeAt = this.#services.clock.now();
    sendFrame(connection, frame);
    return true;
  }

  /** Sends a message, or closes a client that is behind; whether it was sent. */
  sendOrClose(frame: Frame): boolean {
    if (this.send(frame)) return true;
    this.close(1013, "the client reads too slowly");
    return false;
  }

  /** Closes the connection; messages that wait are still delivered. */
  close(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.#connection?.close(code, reason);
    this.closed(code, reason);
  }

  /** Closes it and drops the messages that wait. */
  refuse(code: number, reason: string): void {
    this.#waiting.length = Math.min(this.#waiting.length, this.#isDelivering ? 1 : 0);
    this.close(code, reason);
  }

  /** Ends what still runs, because the engine cannot wait any longer. */
  stop(): void {
    this.refuse(1001, "the engine is stopping");
    this.#signal.abort(new Error("stopped"));
    this.#wake?.();
  }

  text(text: string): void {
    this.#receiveText(text, text.length);
  }

  textBytes(memory: Uint8Array, start: number, end: number): void {
    this.#receiveText(TEXT.decode(memory.subarray(start, end)), end - start);
  }

  binary(bytes: Uint8Array): void {
    this.#receive({ data_base64: bytes.toBase64() }, bytes.length);
  }

  drained(): void {}

  suspected(): void {}

  closed(code: number, reason: string): void {
    if (!this.isOpen) return;
    this.#end = { code, reason };
    this.#services.closed(this);
    this.#wake?.();
    void this.#deliver();
  }

  #receiveText(text: string, bytes: number): void {
    if (this.identity.route.last.config.format === "text") {
      return this.#receive({ data: text }, bytes);
    }
    const value = parsed(text);
    if (value === undefined) return this.refuse(1007, "the messages of this route are JSON");
    this.#receive({ data: value }, bytes);
  }

  #receive(content: JsonObject, bytes: number): void {
    if (!this.isOpen) return;
    this.activeAt = this.#services.clock.now();
    if (!this.identity.held.take(bytes)) {
      return this.refuse(1013, "the memory of the engine has no room for the message");
    }
    this.#waiting.push({ payload: content, bytes });
    this.#waitingBytes += bytes;
    if (this.#isFull()) {
      this.#isPaused = true;
      this.#connection?.pause();
    }
    void this.#deliver();
  }

  #isFull(): boolean {
    return this.#waiting.length > WAITING_MESSAGES_MAX || this.#waitingBytes > WAITING_BYTES_MAX;
  }

  /** Delivers what waits, one after another, and then the close. Never rejects. */
  async #deliver(): Promise<void> {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    while (this.#waiting.length > 0) {
      const { payload, bytes } = this.#waiting[0]!;
      await this.#deliverMessage(payload);
      this.#waiting.shift();
      this.#waitingBytes = Math.max(0, this.#waitingBytes - bytes);
      this.identity.held.give(bytes);
      if (!this.#isPaused || this.#isFull()) continue;
      this.#isPaused = false;
      this.#connection?.resume();
    }
    if (this.#end) return await this.#deliverClose(this.#end);
    this.#isDelivering = false;
  }

  async #deliverMessage(content: JsonObject): Promise<void> {
    try {
      const result = await this.#call("message", content, ({ function_id }) => function_id);
      if (result !== undefined && result !== null) this.sendOrClose(frameOfValue(result));
    } catch (error) {
      this.#fail(error);
    }
  }

  async #deliverClose({ code, reason }: { code: number; reason: string }): Promise<void> {
    try {
      const { groups } = this;
      await this.#call("close", { code, reason, groups: [...groups] }, ({ config }) => {
        return config.close_function_id;
      });
    } catch (error) {
      this.#warn("the close of a WebSocket could not be delivered", error);
    }
    this.identity.held.release();
    this.#services.ended(this);
  }

  /**
   * Calls a function of the route. One that is not there now is waited for, up to `RETURN_MS`: its
   * worker may be starting anew.
   */
  async #call(
    event: SocketEvent,
    content: JsonObject,
    functionOf: (target: SocketTarget) => string | undefined,
  ): Promise<Json | undefined> {
    const { clock } = this.#services;
    const { route } = this.identity;
    const endAt = clock.now() + RETURN_MS;
    for (;;) {
      const target = event === "close" ? route.last : route.target;
      const mayWait = clock.now() < endAt && !this.#services.isDraining && !this.#signal.aborted;
      if (target) {
        const function_id = functionOf(target);
        if (function_id === undefined) return undefined;
        try {
          return await this.#callOnce(event, content, target, function_id);
        } catch (error) {
          if (!mayWait || !hasNotStarted(error, function_id)) throw error;
        }
      } else if (!mayWait) throw new EngineError("function_not_found", "The route is gone");
      await this.#pause(RETRY_MS);
    }
  }

  #callOnce(
    event: SocketEvent,
    content: JsonObject,
    target: SocketTarget,
    function_id: string,
  ): Promise<Json | undefined> {
    const { id } = this.identity;
    const { config, namespace, metadata } = target;
    const payload = this.#payloadOf(event, content, config.route.api_path);
    const subject = { event, connection_id: id, path: config.route.api_path, function_id };
    return this.#services.spans.run(subject, null, (traceparent) => {
      return this.#services.call({
        function_id,
        payload,
        timeout_ms: config.route.timeout_ms ?? this.#services.timeoutMs,
        signal: this.#signal,
        ...traceparent !== undefined && { traceparent },
        ...namespace !== undefined && { namespace },
        ...metadata !== undefined && { metadata },
      });
    });
  }

  #payloadOf(event: SocketEvent, content: JsonObject, path: string): JsonObject {
    const { id, path_params, context, subprotocol } = this.identity;
    return {
      event,
      connection_id: id,
      path,
      path_params,
      groups: [...this.groups],
      ...context !== undefined && { context },
      ...subprotocol !== undefined && { subprotocol },
      ...content,
      trigger: { type: "websocket", path },
    };
  }

  /** A message could not be handled: the connection ends, since the next may depend on it. */
  #fail(error: unknown): void {
    if (!this.isOpen) {
      this.#warn("a message of a WebSocket could not be handled", error);
      return;
    }
    const details = error instanceof EngineError ? error.details : undefined;
    if (error instanceof EngineError && isCloseCode(details?.close_code)) {
      return this.refuse(details.close_code, plainMessage(error));
    }
    if (isUnreachable(error)) {
      return this.refuse(1013, "the function of the route cannot be reached; try again");
    }
    const error_id = this.#warn("a message of a WebSocket could not be handled", error);
    const what = isTimeout(error) ? "did not end in time" : "failed";
    this.refuse(1011, `the function of the route ${what} (${error_id})`);
  }

  #warn(text: string, error: unknown): string {
    const error_id = crypto.randomUUID();
    const { id, route } = this.identity;
    const { function_id, config } = route.last;
    const known = error instanceof EngineError;
    this.#services.log.warn(text, {
      error_id,
      code: known ? error.code : "invocation_error",
      problem: known ? plainMessage(error) : thrownText(error),
      route: config.route.api_path,
      function_id,
      connection_id: id,
      stacktrace: (error as { stacktrace?: string }).stacktrace,
    });
    return error_id;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#services.clock.after(ms, () => this.#wake?.());
      this.#wake = () => {
        this.#wake = undefined;
        cancel();
        resolve();
      };
    });
  }
}

/** Whether a call was refused before its function started, and may be made again. */
function hasNotStarted(error: unknown, function_id: string): boolean {
  if (!(error instanceof EngineError)) return false;
  // A function that calls another one may pass on an error of that.
  const isAbsent = error.code === "function_not_found" &&
    plainMessage(error) === `Function ${function_id} not found`;
  return isAbsent || error.retryable;
}

function isUnreachable(error: unknown): boolean {
  return error instanceof EngineError &&
    ["function_not_found", "invocation_stopped", "overloaded", "SHUTDOWN"].includes(error.code);
}

/** `undefined`: it is not JSON, or nested too deeply. */
function parsed(text: string): Json | undefined {
  if (isTooDeep(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
