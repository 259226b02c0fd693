/**
 * Connects the command line to a running engine, or says quickly why it cannot.
 *
 * The command line is a worker without functions and uses the same public API as any other. It may
 * manage workers because it sends a key that the engine wrote to a file of the same user.
 *
 * @module
 */
import { CONTROL_HEADER, readControlKey } from "../engine/mod.ts";
import {
  type Action,
  type Dial,
  type Json,
  type JsonObject,
  registerWorker,
  type Worker,
} from "../mod.ts";
import { ENGINE_URL_DEFAULT, readEngineUrl } from "./arguments.ts";
import { CommandError, ConnectionLost, UsageError } from "./failure.ts";
import { renderDuration } from "./render.ts";

/** A connection to an engine; disposing of it closes it. */
export interface EngineConnection extends AsyncDisposable {
  /**
   * Calls a function; `undefined` when it returned nothing.
   *
   * @throws {InvocationError} When the call failed.
   */
  call(function_id: string, payload: Json, options?: CallOptions): Promise<Json | undefined>;
  /**
   * Calls `hear` with each message of a topic or pattern. Resolves when it is subscribed, with
   * what tells that the connection is lost.
   *
   * @throws {InvocationError} When the topic is not valid, or no worker has topics.
   */
  subscribe(topic: string, hear: (data: Json) => void): Promise<Subscribed>;
  /**
   * Calls `hear` with each event of a trigger type of a built-in worker, as
   * {@linkcode EngineConnection.subscribe} does with messages.
   *
   * @throws {InvocationError} When the config is not valid, or no worker provides the type.
   */
  follow(type: FollowedType, config: JsonObject, hear: (event: Json) => void): Promise<Subscribed>;
}

/** Trigger types that a command follows, and functions that are there when the type is. */
const FOLLOWED = {
  "engine::functions-available": "engine::triggers::list",
  "engine::workers-available": "engine::triggers::list",
  log: "engine::health::check",
  stream: "engine::stream::stats",
  subscribe: "engine::pubsub::list",
} as const;

/** See {@linkcode EngineConnection.follow}. */
export type FollowedType = keyof typeof FOLLOWED;

/** A subscription. */
export interface Subscribed {
  /** Rejects with a {@linkcode CommandError} when the connection is lost; never resolves. */
  readonly lost: Promise<never>;
}

/** How a call is made. */
export interface CallOptions {
  /** Milliseconds to wait for the result. Default: 30,000. */
  readonly timeout_ms?: number | undefined;
  /** Runs the function in another way, such as through a queue. */
  readonly action?: Action | undefined;
  /** W3C trace context. Default: none, and the engine begins a trace. */
  readonly traceparent?: string;
  /** Cancels the call when aborted. */
  readonly signal?: AbortSignal;
  /** Receives the progress that the handler reports, in order. */
  readonly onProgress?: (data: Json) => void;
}

/** Which engine to connect to. */
export interface EngineAddress {
  /** Such as `ws://127.0.0.1:49134`. Default: `ENGINE_URL`, else as `find_engine.ts` finds it. */
  readonly url?: string | undefined;
  /** Default: `ENGINE_TOKEN`, else that of the project's config.yaml. */
  readonly token?: string | undefined;
  /** The connection lasts a moment: it opens faster and sends no pings. Default `false`. */
  readonly isShort?: boolean | undefined;
}

/** An address, and what tests replace. */
export interface ConnectOptions extends EngineAddress {
  /** Default: a WebSocket. */
  readonly dial?: Dial;
  /** How long to wait for the engine, in milliseconds. Default: 10,000. */
  readonly patienceMs?: number;
  /** Finds the key that allows to manage workers. Default: in the file that the engine wrote. */
  readonly findKey?: (url: string) => Promise<string | undefined>;
}

/** Enough for an engine on a busy machine; without a listener the connection fails at once. */
const CONNECT_MS_MAX = 10_000;

/**
 * Connects, without a second attempt.
 *
 * @throws {CommandError} Not reachable, not an engine, or a token is missing or wrong.
 * @throws {UsageError} The URL is invalid, or no header can hold the token.
 */
export async function connectToEngine(options: ConnectOptions): Promise<EngineConnection> {
  const url = readEngineUrl(options.url ?? ENGINE_URL_DEFAULT);
  const token = readToken(options.token);
  const key = await (options.findKey ?? readControlKey)(url);
  const dial = options.dial ?? (options.isShort ? shortDial : undefined);
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  let reason = "";
  /** Why the engine closes the connection, as it says in a frame before. */
  let refusal: string | undefined;
  const worker = registerWorker(url, {
    workerName: "engine-cli",
    telemetry: false, // A command ends before its telemetry is of use.
    reconnect: { maxAttempts: 1 },
    onError: (error) => {
      reason ||= error.message;
      if ((error as { code?: unknown }).code === "AUTH_ERROR") refusal = error.message;
    },
    ...token === undefined ? {} : { token },
    ...key === undefined ? {} : { headers: { [CONTROL_HEADER]: key } },
    ...dial === undefined ? {} : { dial },
  });
  const stopListening = worker.onConnectionState((state) => {
    if (state === "connected") resolve();
    if (state === "failed" || state === "reconnecting") reject(connectError(url, reason));
  });
  const patienceMs = options.patienceMs ?? CONNECT_MS_MAX;
  const timer = setTimeout(() => reject(silenceError(url, patienceMs)), patienceMs);
  if (worker.connectionState === "connected") resolve();
  try {
    await opened;
  } catch (thrown) {
    await worker.shutdown();
    throw thrown;
  } finally {
    clearTimeout(timer);
    stopListening();
  }
  return connectionOf(worker, () => refusal);
}

/** A token that was read from a file often ends with a line break, which is not part of it. */
function readToken(text: string | undefined): string | undefined {
  const token = text?.trim();
  if (token === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(token)) return token;
  // The platform's own message may contain the token, so it is never shown.
  throw new UsageError(
    "The token contains a character that cannot be sent; check --token and ENGINE_TOKEN",
  );
}

function connectError(url: string, reason: string): CommandError {
  const shown = withoutSecrets(url);
  if (/\b401\b/.test(reason)) {
    return new CommandError(
      `The engine at ${shown} rejected the token; give one with --token or ENGINE_TOKEN`,
    );
  }
  // The SDK appends what to do about TLS to the platform's message.
  const hint = /; (the (?:engine|certificate) there .*?)(?:; trying again)?$/.exec(reason)?.[1];
  if (hint !== undefined) return new CommandError(`Cannot reach the engine at ${shown}: ${hint}`);
  const status = /\b(?:HTTP |response: |status code: )(\d{3})\b/.exec(reason)?.[1];
  if (status !== undefined) {
    return new CommandError(`What listens at ${shown} refused the connection with HTTP ${status}`);
  }
  return new CommandError(
    `The engine is not running at ${shown}; start it with: engine --config config.yaml`,
  );
}

function silenceError(url: string, patienceMs: number): CommandError {
  return new CommandError(
    `Nothing at ${withoutSecrets(url)} has answered for ${renderDuration(patienceMs)}; ` +
      "the engine there is busy or does not listen there, see what it prints",
  );
}

function withoutSecrets(text: string): string {
  const url = new URL(text);
  for (const key of url.searchParams.keys()) url.searchParams.set(key, "…");
  const { protocol, host, pathname, search } = url;
  return `${protocol}//${host}${pathname === "/" && search === "" ? "" : pathname + search}`;
}

function connectionOf(worker: Worker, refusal: () => string | undefined): EngineConnection {
  const connection: EngineConnection = {
    async call(function_id: string, payload: Json, options: CallOptions = {}) {
      try {
        return await worker.trigger<Json, Json | undefined>({ function_id, payload, ...options });
      } catch (thrown) {
        const { code } = thrown as { code?: unknown };
        // The SDK uses this code for a lost connection, the engine for a worker that ended.
        const isLost = code === "invocation_stopped" && worker.connectionState !== "connected";
        if (!isLost) throw thrown;
        const why = refusal();
        if (why === undefined) throw new ConnectionLost(function_id);
        throw new CommandError(`The engine closed the connection: ${why}`);
      }
    },
    subscribe: (topic, hear) => connection.follow("subscribe", { topic }, hear),
    async follow(trigger_type, config, hear) {
      await connection.call(FOLLOWED[trigger_type], {}); // Fails where no worker has the type.
      const lost = lossOf(worker, refusal);
      const function_id = `engine-cli::${crypto.randomUUID()}`;
      worker.registerFunction(function_id, hear, { metadata: { internal: true } });
      await connection.call("engine::register_trigger", { trigger_type, function_id, config });
      return { lost };
    },
    [Symbol.asyncDispose]: () => worker.shutdown(),
  };
  return connection;
}

/** Rejects when the connection is lost. */
function lossOf(worker: Worker, refusal: () => string | undefined): Promise<never> {
  const lost = new Promise<never>((_, reject) => {
    worker.onConnectionState((state) => {
      if (state === "connected") return;
      const why = refusal() ?? "to check the engine: engine doctor";
      reject(new CommandError(`The connection to the engine was lost; ${why}`));
    });
  });
  lost.catch(() => {}); // Also when nothing waits for it any more.
  return lost;
}

/** Several messages in one frame, one per line. */
const BATCH_PROTOCOL = "engine.batch.v1";
/** As in the SDK: a larger message is sent alone, since a batch is bounded like a message. */
const BATCH_CHARS_MAX = 64 * 1024;
/** How long the engine may take to answer the upgrade; a command gives up before. */
const OPEN_MS = 60_000;

/**
 * Dials with the runtime's own WebSocket, for connections that last a moment.
 *
 * The SDK's dial imports the package `ws`, which takes 26 ms, a third of `engine trigger`. This one
 * sends no pings, so it does not notice a peer that vanished; a connection that may last uses the
 * SDK's. Deno's WebSocket leaves Nagle's algorithm on, which delays a second frame by 44 ms: so all
 * messages of one tick go in one frame, if the engine accepts batches.
 */
export const shortDial: Dial = (url, events, { headers = {} }) => {
  const socket = new WebSocket(url, { headers: { ...headers }, protocols: [BATCH_PROTOCOL] });
  let batch: string[] = [];
  let chars = 0;
  let flushTimer: ReturnType<typeof setTimeout> | undefined;
  let isClosed = false;
  let problem = "no connection";
  const closed = (code: number, reason: string): void => {
    if (isClosed) return;
    isClosed = true;
    clearTimeout(openTimer);
    clearTimeout(flushTimer);
    events.closed(code, reason);
  };
  const flush = (): void => {
    if (batch.length > 0 && socket.readyState === WebSocket.OPEN) socket.send(batch.join("\n"));
    clearTimeout(flushTimer);
    batch = [];
    chars = 0;
  };
  const openTimer = setTimeout(() => {
    closed(1006, `no answer within ${OPEN_MS} ms`);
    socket.close();
  }, OPEN_MS);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    clearTimeout(openTimer);
    problem = "";
    if (!isClosed) events.opened();
  };
  socket.onmessage = ({ data }) => {
    if (isClosed) return;
    if (typeof data !== "string") return events.binary(new Uint8Array(data));
    const messages = socket.protocol === BATCH_PROTOCOL ? data.split("\n") : [data];
    for (const message of messages) if (message !== "") events.text(message);
  };
  socket.onerror = (event) => problem = (event as ErrorEvent).message || problem;
  socket.onclose = ({ code, reason }) => closed(code || 1006, reason || problem);
  return {
    send(message): void {
      if (isClosed || socket.readyState !== WebSocket.OPEN) return;
      if (typeof message !== "string" || socket.protocol !== BATCH_PROTOCOL) {
        flush();
        return socket.send(message as string | Uint8Array<ArrayBuffer>);
      }
      if (chars + message.length > BATCH_CHARS_MAX) flush();
      if (batch.length === 0) flushTimer = setTimeout(flush); // At the end of this tick.
      batch.push(message);
      chars += message.length + 1;
    },
    close(code = 1000, reason = ""): void {
      flush();
      if (!isClosed) socket.close(code, reason);
    },
  };
};
