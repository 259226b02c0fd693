/**
 * An engine that follows a script instead of routing: it accepts connections, records what
 * arrives, and sends what a duty tells it to.
 *
 * It reads JSON itself rather than with the SDK's codec, so that it does not share its mistakes.
 * `ws` is used because it reports pings and can leave them unanswered.
 *
 * @module
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import { WebSocketServer } from "ws";
import type { Json, JsonObject } from "../typescript/wire/protocol.ts";
import { ChannelEnd, type ChannelSocket } from "./channel_end.ts";
import { Log, quiet, WAIT_MS } from "./log.ts";

/** What the engine announces by default. */
export const ENGINE_CAPABILITIES: readonly string[] = ["cancel", "timeout", "progress"];
/** Added to the address, to check that the SDK keeps it. */
const QUERY = "?tenant=conformance";
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
const CHANNEL_PATH = "/ws/channels/";
const NO_CHANNEL = "Channel not found";

/** How an engine behaves before a duty takes over. */
export interface EngineScript {
  /** What `workerregistered` announces. @default {ENGINE_CAPABILITIES} */
  readonly capabilities?: readonly string[];
  /** Statuses with which the first upgrades of `/` are refused. */
  readonly refusals?: readonly number[];
  /** `true`: `workerregistered` is sent only after the first frame of the worker. */
  readonly speaksLast?: boolean;
  /** `true`: pings get no pong. */
  readonly isSilent?: boolean;
}

/** One upgrade request. */
export interface Attempt {
  readonly at: number;
  readonly url: URL;
  readonly headers: IncomingMessage["headers"];
  readonly status: number;
}

/** One text frame. */
export interface Frame {
  readonly at: number;
  readonly text: string;
  readonly message: JsonObject;
}

/** A scripted engine on a free port of this machine. */
export class ScriptedEngine implements AsyncDisposable {
  readonly attempts = new Log<Attempt>();
  /** Connections of `/`. */
  readonly connections = new Log<EngineConnection>();
  /** Connections of `/otel`. */
  readonly telemetry = new Log<EngineConnection>();
  /** Sockets of `/ws/channels/…`. */
  readonly channels = new Log<ChannelEnd>();
  /** Ids of channels whose upgrades are refused with 404. */
  readonly unknownChannels = new Set<string>();
  /** Statuses with which the next upgrades of `/` are refused. */
  readonly refusals: number[];
  readonly #script: EngineScript;
  readonly #server: Server = createServer();
  readonly #sockets = new Set<ChannelSocket>();
  readonly #upgrades: InstanceType<typeof WebSocketServer>;

  private constructor(script: EngineScript) {
    this.#script = script;
    this.refusals = [...script.refusals ?? []];
    const autoPong = !script.isSilent;
    this.#upgrades = new WebSocketServer({
      noServer: true,
      autoPong,
      maxPayload: MESSAGE_BYTES_MAX,
      handleProtocols: () => false,
    });
    this.#server.on("upgrade", (request, socket, head) => {
      const url = new URL(request.url ?? "/", "ws://engine");
      const refusal = url.pathname === "/" ? this.refusals.shift() : this.#refusalOf(url);
      const status = refusal ?? 101;
      this.attempts.add({ at: performance.now(), url, headers: request.headers, status });
      if (refusal !== undefined) {
        const body = refusal === 404 ? NO_CHANNEL : "";
        const headers = `Content-Length: ${body.length}\r\nConnection: close`;
        socket.end(`HTTP/1.1 ${refusal} Refused\r\n${headers}\r\n\r\n${body}`);
        return;
      }
      this.#upgrades.handleUpgrade(request, socket, head, (opened: ChannelSocket) => {
        this.#opened(opened, url, request.headers);
      });
    });
  }

  /** Listens on a free port. */
  static async start(script: EngineScript = {}): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine(script);
    await new Promise<void>((resolve) => engine.#server.listen(0, "127.0.0.1", resolve));
    return engine;
  }

  /** The address for the SDK, with a query string. */
  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("not listening");
    return `ws://127.0.0.1:${address.port}/${QUERY}`;
  }

  /** The latest connection of `/`. */
  get connection(): EngineConnection {
    return this.connections.entries.at(-1)!;
  }

  /** Waits for the next connection of `/`. */
  next(from: number, withinMs = WAIT_MS): Promise<EngineConnection> {
    return this.connections.first("a connection", () => true, { from, withinMs });
  }

  /** Ends all connections without a close frame and stops listening. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #refusalOf({ pathname }: URL): number | undefined {
    if (!pathname.startsWith(CHANNEL_PATH)) return undefined;
    return this.unknownChannels.has(pathname.slice(CHANNEL_PATH.length)) ? 404 : undefined;
  }

  #opened(socket: ChannelSocket, url: URL, headers: IncomingMessage["headers"]): void {
    const { pathname: path } = url;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    if (path.startsWith(CHANNEL_PATH)) {
      return this.channels.add(new ChannelEnd(socket, url, headers));
    }
    const connection = new EngineConnection(socket);
    if (path !== "/") return this.telemetry.add(connection);
    const { capabilities = ENGINE_CAPABILITIES, speaksLast = false } = this.#script;
    if (!speaksLast) connection.greet(capabilities);
    else {void connection.frames.first("a frame", () => true).then(() =>
        connection.greet(capabilities)
      );}
    this.connections.add(connection);
  }
}

/** One connection, as the engine holds it. */
export class EngineConnection {
  readonly worker_id = crypto.randomUUID();
  readonly reattach_token = crypto.randomUUID();
  readonly frames = new Log<Frame>();
  readonly binaries = new Log<Uint8Array>();
  /** Times of pings. */
  readonly pings = new Log<number>();
  /** Close codes: one at most. */
  readonly closes = new Log<{ readonly code: number; readonly at: number }>();
  readonly #socket: ChannelSocket;

  /** Records what arrives on an open socket. */
  constructor(socket: ChannelSocket) {
    this.#socket = socket;
    socket.on("message", (data, isBinary) => {
      if (isBinary) return this.binaries.add(data);
      const text = new TextDecoder().decode(data);
      this.frames.add({ at: performance.now(), text, message: parse(text) });
    });
    socket.on("ping", () => this.pings.add(performance.now()));
    socket.on("close", (code) => this.closes.add({ code, at: performance.now() }));
    socket.on("error", () => {}); // The close that follows is recorded.
  }

  /** Sends `workerregistered`. */
  greet(capabilities: readonly string[]): void {
    const { worker_id, reattach_token } = this;
    this.send({
      type: "workerregistered",
      worker_id,
      reattach_token,
      capabilities: [...capabilities],
    });
  }

  /** Sends a message, or any text. */
  send(message: JsonObject | string): void {
    this.#socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Sends a close frame. */
  close(code: number, reason = ""): void {
    this.#socket.close(code, reason);
  }

  /** Waits for a message with these fields. */
  async expect(fields: JsonObject, from = 0, withinMs = WAIT_MS): Promise<JsonObject> {
    const what = JSON.stringify(fields);
    const { message } = await this.frames.first(what, (frame) => fits(frame.message, fields), {
      from,
      withinMs,
    });
    return message;
  }

  /** Messages with these fields that have arrived since a mark. */
  received(fields: JsonObject, from = 0): JsonObject[] {
    return this.frames.matching(({ message }) => fits(message, fields), from)
      .map(({ message }) => message);
  }

  /** Invokes a function of the worker and waits for its `invocationresult`. */
  async invoke(function_id: string, data?: Json, fields: JsonObject = {}): Promise<JsonObject> {
    const from = this.frames.mark;
    const invocation_id = this.invokeOnly(function_id, data, fields);
    return await this.expect({ type: "invocationresult", invocation_id }, from);
  }

  /** Invokes a function without waiting; returns the id. */
  invokeOnly(function_id: string, data?: Json, fields: JsonObject = {}): string {
    const invocation_id = crypto.randomUUID();
    const ids = { type: "invokefunction", invocation_id, function_id };
    this.send({ ...ids, ...fields, ...data !== undefined && { data } });
    return invocation_id;
  }

  /** Answers a call of the worker. */
  answer(call: JsonObject, outcome: JsonObject): void {
    const { invocation_id, function_id } = call;
    this.send({
      type: "invocationresult",
      invocation_id: invocation_id!,
      function_id: function_id!,
      ...outcome,
    });
  }

  /** Lets time pass, then returns the messages with these fields since a mark. */
  async receivedAfterQuiet(fields: JsonObject, from: number): Promise<JsonObject[]> {
    await quiet();
    return this.received(fields, from);
  }
}

/** Whether a message has these fields with equal values; `data` fields are compared one by one. */
function fits(message: JsonObject, fields: JsonObject): boolean {
  return Object.entries(fields).every(([name, value]) => {
    const found = message[name];
    if (isObject(value) && isObject(found)) return fits(found, value);
    return JSON.stringify(found) === JSON.stringify(value);
  });
}

/** The message in a frame; a frame without one has no type. */
function parse(text: string): JsonObject {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
