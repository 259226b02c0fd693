/**
 * Opens the CLI's line to a running engine, and says quickly and plainly when there is none.
 *
 * The CLI is a worker that offers nothing: it has the same door as everybody. What lets it change
 * workers is a key that the engine of the same user, on the same machine, has left in a file.
 *
 * @module
 */
import { CONTROL_HEADER, readControlKey } from "../engine/mod.ts";
import { type Dial, type Json, registerWorker, type Worker } from "../mod.ts";
import { CommandError, LineEnded, UsageError } from "./failure.ts";
import { renderDuration } from "./render.ts";
import type { CallOptions, EngineAddress, EngineLine } from "./terminal.ts";

/** Long enough for an engine on a busy machine; where nothing listens, that is known at once. */
const CONNECT_MS_MAX = 10_000;
/** Where the engine is when nobody says otherwise; the SDK's default too. */
const URL_DEFAULT = "ws://127.0.0.1:49134";

/** For tests: another way to dial, less patience, another key. */
export interface ConnectOptions extends EngineAddress {
  /** Default: a WebSocket. */
  readonly dial?: Dial;
  /** Default: 10,000. */
  readonly patienceMs?: number;
  /** The key that proves whose command line this is; default: what the engine left in a file. */
  readonly findKey?: (url: string) => Promise<string | undefined>;
}

/**
 * Connects, once.
 *
 * @throws {CommandError} Not reachable, not an engine, or a token is missing or wrong.
 * @throws {UsageError} The address is none, or no header can hold the token.
 */
export async function connectToEngine(options: ConnectOptions): Promise<EngineLine> {
  const url = readUrl(options.url ?? URL_DEFAULT);
  const token = readToken(options.token);
  const key = await (options.findKey ?? readControlKey)(url);
  const dial = options.dial ?? (options.isShort ? shortDial : undefined);
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  let reason = "";
  const worker = registerWorker(url, {
    workerName: "engine-cli",
    telemetry: false, // A command is gone before anybody looks.
    reconnect: { maxAttempts: 1 },
    onError: (error) => reason ||= error.message,
    ...token === undefined ? {} : { token },
    ...key === undefined ? {} : { headers: { [CONTROL_HEADER]: key } },
    ...dial === undefined ? {} : { dial },
  });
  const stopListening = worker.onConnectionState((state) => {
    if (state === "connected") resolve();
    if (state === "failed" || state === "reconnecting") reject(explain(url, reason));
  });
  const patienceMs = options.patienceMs ?? CONNECT_MS_MAX;
  const timer = setTimeout(() => reject(silent(url, patienceMs)), patienceMs);
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
  return lineOf(worker);
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "ws:" || url?.protocol === "wss:") return text;
  throw new UsageError(
    `The address of the engine must look like ${URL_DEFAULT}, received ${JSON.stringify(text)}`,
  );
}

/** A file that a token was read from often ends with a line break, which is no part of it. */
function readToken(text: string | undefined): string | undefined {
  const token = text?.trim();
  if (token === undefined || /^[\t\x20-\x7e\x80-\xff]*$/.test(token)) return token;
  // What a platform says of it may hold the token itself, and is never shown.
  throw new UsageError("The token holds a sign that cannot be sent; look at --token, ENGINE_TOKEN");
}

function explain(url: string, reason: string): CommandError {
  const shown = withoutSecrets(url);
  if (/\b401\b/.test(reason)) {
    return new CommandError(
      `The engine at ${shown} wants another token; give it with --token or ENGINE_TOKEN`,
    );
  }
  // What to do about TLS the SDK knows, and says behind what the platform says.
  const hint = /; ((?:no TLS|TLS may|the certificate) .*?)(?:; trying again)?$/.exec(reason)?.[1];
  if (hint !== undefined) return new CommandError(`Cannot reach the engine at ${shown}: ${hint}`);
  const status = /\b(?:HTTP |response: |status code: )(\d{3})\b/.exec(reason)?.[1];
  if (status !== undefined) {
    return new CommandError(`What listens at ${shown} refused the line with HTTP ${status}`);
  }
  return new CommandError(
    `The engine is not running at ${shown}; start it with: engine --config config.yaml`,
  );
}

function silent(url: string, patienceMs: number): CommandError {
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

function lineOf(worker: Worker): EngineLine {
  return {
    async call(function_id: string, payload: Json, options: CallOptions = {}) {
      try {
        return await worker.trigger<Json, Json | undefined>({ function_id, payload, ...options });
      } catch (thrown) {
        const { code } = thrown as { code?: unknown };
        // The SDK says it of calls that it lost, as the engine does of a worker that ended.
        const isLost = code === "invocation_stopped" && worker.connectionState !== "connected";
        throw isLost ? new LineEnded(function_id) : thrown;
      }
    },
    [Symbol.asyncDispose]: () => worker.shutdown(),
  };
}

/** Several messages in a frame, one in a line. */
const BATCH_PROTOCOL = "engine.batch.v1";
/** As for the SDK: what goes beyond leaves alone, since an engine takes a batch as one message. */
const BATCH_CHARS_MAX = 64 * 1024;
/** An upgrade that is not answered by then has failed. */
const OPEN_MS = 10_000;

/** Opens a line that is not expected to stay. */
export const shortDial: Dial = (url, events, { headers = {} }) => {
  const socket = new WebSocket(url, { headers: { ...headers }, protocols: [BATCH_PROTOCOL] });
  let lines: string[] = [];
  let chars = 0;
  let turn: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  let problem = "no connection";
  const end = (code: number, reason: string): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    clearTimeout(turn);
    events.closed(code, reason);
  };
  const flush = (): void => {
    if (lines.length > 0 && socket.readyState === WebSocket.OPEN) socket.send(lines.join("\n"));
    clearTimeout(turn);
    lines = [];
    chars = 0;
  };
  const timer = setTimeout(() => {
    end(1006, `no answer within ${OPEN_MS} ms`);
    socket.close();
  }, OPEN_MS);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => {
    clearTimeout(timer);
    problem = "";
    if (!isOver) events.opened();
  };
  socket.onmessage = ({ data }) => {
    if (isOver) return;
    if (typeof data === "string") {
      const isBatch = socket.protocol === BATCH_PROTOCOL;
      for (const line of isBatch ? data.split("\n") : [data]) if (line !== "") events.text(line);
    } else events.binary(new Uint8Array(data));
  };
  socket.onerror = (event) => problem = (event as ErrorEvent).message || problem;
  socket.onclose = ({ code, reason }) => end(code || 1006, reason || problem);
  return {
    send(message): void {
      if (isOver || socket.readyState !== WebSocket.OPEN) return;
      if (typeof message !== "string" || socket.protocol !== BATCH_PROTOCOL) {
        flush();
        return socket.send(message as string | Uint8Array<ArrayBuffer>);
      }
      if (chars + message.length > BATCH_CHARS_MAX) flush();
      if (lines.length === 0) turn = setTimeout(flush); // What is said until then, goes with it.
      lines.push(message);
      chars += message.length + 1;
    },
    close(code = 1000, reason = ""): void {
      flush();
      if (!isOver) socket.close(code, reason);
    },
  };
};
