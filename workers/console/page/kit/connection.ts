/**
 * One line to the console: says hello, numbers requests, comes back after a loss.
 *
 * It knows neither Preact nor what is asked. A request is either asked once (a call) and fails when
 * the line is lost, or stands (a watch) and is asked again when the line is back. Time and the
 * socket are given to it, so its whole life can be tested without either.
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

/** A request as its asker gives it: without a number. */
export type Request = BrowserMessage extends infer M
  ? M extends { readonly id: number } ? Omit<M, "id"> : never
  : never;

/** What comes for a request. */
export type Answer = Extract<ConsoleMessage, { readonly id: number }>;

/** What of a browser's WebSocket is needed. */
export interface LineSocket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  onclose: ((event: { readonly code: number }) => void) | null;
}

/** Where the line stands. `refused`: the token is wrong; nothing is tried until told. */
export type LineState = "connecting" | "open" | "lost" | "refused";

/** What the line needs and tells. */
export interface LineOptions {
  /** Opens a socket to the console. */
  readonly open: () => LineSocket;
  /** The token to say hello with. */
  readonly token: () => string;
  /** Runs something later; the result stops it. */
  readonly later: (ms: number, run: () => void) => () => void;
  /** The line's state is another. */
  readonly onState: (state: LineState) => void;
  /** Something came that belongs to no request: `welcome` or `engine`. */
  readonly onNews: (news: Exclude<ConsoleMessage, Answer>) => void;
}

interface Asked {
  readonly request: Request;
  readonly stands: boolean;
  readonly heard: (answer: Answer) => void;
}

/** See the module. */
export class LiveLine {
  readonly #options: LineOptions;
  readonly #asked = new Map<number, Asked>();
  #socket: LineSocket | undefined;
  #state: LineState = "connecting";
  #stopRetry: (() => void) | undefined;
  #retryMs = RETRY_MS;
  #nextId = 1;

  /** Makes one; nothing is opened before {@linkcode start}. */
  constructor(options: LineOptions) {
    this.#options = options;
  }

  /** Where it stands. */
  get state(): LineState {
    return this.#state;
  }

  /** Opens the line, or opens it anew at once, such as with another token. */
  start(): void {
    this.#stopRetry?.();
    this.#drop();
    if (this.#state !== "lost") this.#enter("connecting"); // Else it stays lost until it is back.
    const socket = this.#options.open();
    this.#socket = socket;
    socket.onopen = () => this.#send({ type: "hello", token: this.#options.token() });
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code }) => this.#lost(code);
  }

  /** Closes it for good. */
  stop(): void {
    this.#stopRetry?.();
    this.#drop();
    this.#asked.clear();
  }

  /**
   * Asks. `stands`: asked again whenever the line is back, until ended. Otherwise the request fails
   * with `engine_unreachable` when the line is lost. The result ends it; nothing is heard after.
   */
  ask(request: Request, stands: boolean, heard: (answer: Answer) => void): () => void {
    const id = this.#nextId++;
    if (!stands && this.#state !== "open" && this.#state !== "connecting") {
      queueMicrotask(() => heard(unreachable(id)));
      return () => {};
    }
    if (!stands && this.#asked.size >= REQUESTS_MAX) {
      queueMicrotask(() => heard(tooMany(id)));
      return () => {};
    }
    this.#asked.set(id, { request, stands, heard });
    if (this.#state === "open") this.#send({ ...request, id } as BrowserMessage);
    return () => {
      if (!this.#asked.delete(id)) return;
      if (this.#state === "open") this.#send({ type: "end", id });
    };
  }

  #receive(data: unknown): void {
    const message = read(data);
    if (message === undefined) return;
    if (message.type === "welcome") this.#welcomed();
    if (!("id" in message)) {
      this.#options.onNews(message);
      return;
    }
    const asked = this.#asked.get(message.id);
    if (asked === undefined) return; // Ended here while it was on its way.
    if (isLast(message)) this.#asked.delete(message.id);
    asked.heard(message);
  }

  #welcomed(): void {
    this.#retryMs = RETRY_MS;
    this.#enter("open");
    for (const [id, { request }] of this.#asked) this.#send({ ...request, id } as BrowserMessage);
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
    this.#stopRetry = this.#options.later(this.#retryMs, () => this.start());
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
  }

  #failCalls(): void {
    for (const [id, { stands, heard }] of [...this.#asked]) {
      if (stands) continue;
      this.#asked.delete(id);
      heard(unreachable(id));
    }
  }

  #send(message: BrowserMessage): void {
    this.#socket?.send(JSON.stringify(message));
  }

  #enter(state: LineState): void {
    if (this.#state === state) return;
    this.#state = state;
    this.#options.onState(state);
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket === undefined) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
    this.#failCalls();
  }
}

/** A message as it came; `undefined` for what is none, such as from another version. */
function read(data: unknown): ConsoleMessage | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const message: unknown = JSON.parse(data);
    const isMessage = message !== null && typeof message === "object" && "type" in message;
    return isMessage ? message as ConsoleMessage : undefined;
  } catch {
    return undefined; // Not JSON: nothing of ours.
  }
}

function isLast(answer: Answer): boolean {
  return answer.type === "result" || answer.type === "error" || answer.type === "http_answer";
}

function unreachable(id: number): Answer {
  const message = "The console cannot be reached; it is tried again by itself";
  return failure(id, "engine_unreachable", message);
}

function tooMany(id: number): Answer {
  return failure(id, "overloaded", `${REQUESTS_MAX} requests of this page are open already`);
}

function failure(id: number, code: string, message: string): Answer {
  return { type: "error", id, error: { code, message }, duration_ms: 0, trace_id: null };
}
