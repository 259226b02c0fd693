/**
 * The page's WebSocket to the console: sends `hello`, numbers requests, reconnects after a loss.
 *
 * It knows nothing of Preact or of what is requested. A call is sent once and fails when the
 * connection is lost; a watch is sent again on every new connection. Time and the socket are passed
 * in, so tests need neither.
 *
 * @module
 */
import type { BrowserMessage, ConsoleMessage } from "../../wire.ts";
import { WRONG_TOKEN_CLOSE } from "../../wire.ts";

/** First wait before a lost connection is opened again; it doubles each time. */
export const RETRY_MS = 250;
/** Longest such wait. */
export const RETRY_MS_MAX = 5_000;
/** Calls and watches that the page has open at once. */
export const REQUESTS_MAX = 1_000;

/** A request without its id. */
export type Request = BrowserMessage extends infer M
  ? M extends { readonly id: number } ? Omit<M, "id"> : never
  : never;

/** A message that answers a request. */
export type Answer = Extract<ConsoleMessage, { readonly id: number }>;

/** A message that belongs to no request: `welcome` or `engine`. */
export type Notice = Exclude<ConsoleMessage, Answer>;

/** The part of a browser's WebSocket that is used here. */
export interface ConsoleSocket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number }) => void) | null;
}

/** `refused`: the token is wrong; nothing is retried until {@linkcode Connection.open}. */
export type ConnectionState = "connecting" | "open" | "lost" | "refused";

/** What a connection uses and reports to. */
interface ConnectionOptions {
  /** Opens a socket to the console. */
  readonly open: () => ConsoleSocket;
  /** The token for `hello`. */
  readonly token: () => string;
  /** Runs something later; the result cancels it. */
  readonly later: (ms: number, run: () => void) => () => void;
  readonly onState: (state: ConnectionState) => void;
  readonly onNotice: (notice: Notice) => void;
}

interface OpenRequest {
  readonly request: Request;
  readonly isWatch: boolean;
  readonly onAnswer: (answer: Answer) => void;
}

/** A connection that reconnects by itself. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #requests = new Map<number, OpenRequest>();
  #socket: ConsoleSocket | undefined;
  #state: ConnectionState = "connecting";
  #cancelRetry: (() => void) | undefined;
  #retryMs = RETRY_MS;
  #nextId = 1;

  /** Opens nothing before {@linkcode open}. */
  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** The state now. */
  get state(): ConnectionState {
    return this.#state;
  }

  /** Opens the socket; if there is one, it is replaced at once, such as for another token. */
  open(): void {
    this.#cancelRetry?.();
    this.#dropSocket();
    if (this.#state !== "lost") this.#enter("connecting"); // Else it stays lost until it is back.
    const socket = this.#options.open();
    this.#socket = socket;
    socket.onopen = () => this.#send({ type: "hello", token: this.#options.token() });
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code }) => this.#lost(code);
  }

  /** Closes the socket for good and drops all requests. */
  close(): void {
    this.#cancelRetry?.();
    this.#dropSocket();
    this.#requests.clear();
  }

  /**
   * Sends a request; the result ends it, after which `onAnswer` is not called any more. A watch is
   * sent again on every connection until it is ended; a call fails with `engine_unreachable` when
   * the connection is lost.
   */
  request(request: Request, isWatch: boolean, onAnswer: (answer: Answer) => void): () => void {
    const id = this.#nextId++;
    if (!isWatch && this.#state !== "open" && this.#state !== "connecting") {
      queueMicrotask(() => onAnswer(unreachable(id)));
      return () => {};
    }
    if (!isWatch && this.#requests.size >= REQUESTS_MAX) {
      queueMicrotask(() => onAnswer(tooMany(id)));
      return () => {};
    }
    this.#requests.set(id, { request, isWatch, onAnswer });
    if (this.#state === "open") this.#send({ ...request, id } as BrowserMessage);
    return () => {
      if (!this.#requests.delete(id)) return;
      if (this.#state === "open") this.#send({ type: "end", id });
    };
  }

  #receive(data: unknown): void {
    const message = parseMessage(data);
    if (message === undefined) return;
    if (message.type === "welcome") this.#welcomed();
    if (!("id" in message)) {
      this.#options.onNotice(message);
      return;
    }
    const open = this.#requests.get(message.id);
    if (open === undefined) return; // Ended by the page while the answer was under way.
    if (isLast(message)) this.#requests.delete(message.id);
    open.onAnswer(message);
  }

  #welcomed(): void {
    this.#retryMs = RETRY_MS;
    this.#enter("open");
    for (const [id, { request }] of this.#requests) {
      this.#send({ ...request, id } as BrowserMessage);
    }
  }

  #lost(code: number): void {
    this.#socket = undefined;
    if (code === WRONG_TOKEN_CLOSE) {
      this.#enter("refused");
      this.#failCalls();
      return;
    }
    this.#enter("lost");
    this.#failCalls();
    this.#cancelRetry = this.#options.later(this.#retryMs, () => this.open());
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
  }

  #failCalls(): void {
    for (const [id, { isWatch, onAnswer }] of [...this.#requests]) {
      if (isWatch) continue;
      this.#requests.delete(id);
      onAnswer(unreachable(id));
    }
  }

  #send(message: BrowserMessage): void {
    this.#socket?.send(JSON.stringify(message));
  }

  #enter(state: ConnectionState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onState(state);
  }

  #dropSocket(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#failCalls();
  }
}

/** A message; `undefined` for anything else, such as from another version. */
function parseMessage(data: unknown): ConsoleMessage | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const message: unknown = JSON.parse(data);
    const isMessage = message !== null && typeof message === "object" && "type" in message;
    return isMessage ? message as ConsoleMessage : undefined;
  } catch {
    return undefined; // Not JSON.
  }
}

function isLast(answer: Answer): boolean {
  return answer.type === "result" || answer.type === "error" || answer.type === "http_answer";
}

function unreachable(id: number): Answer {
  return failure(id, "engine_unreachable", "The console cannot be reached; the page keeps trying");
}

function tooMany(id: number): Answer {
  return failure(id, "overloaded", `${REQUESTS_MAX} requests of this page are open already`);
}

function failure(id: number, code: string, message: string): Answer {
  return { type: "error", id, error: { code, message }, duration_ms: 0, trace_id: null };
}
