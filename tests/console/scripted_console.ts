/**
 * A console without an engine: serves the page and speaks `wire.ts`, with functions a test wrote.
 *
 * For looks and for sizes that a real engine would take long to reach; what the page and the real
 * console do together is tested with `console_browser.ts`.
 *
 * @module
 */
import type { Json } from "../../mod.ts";
import {
  type BrowserMessage,
  type ConsoleMessage,
  type WatchedQuery,
  type WatchedTrigger,
  WRONG_TOKEN_CLOSE,
} from "../../workers/console/wire.ts";
import { pageResponse, preparePage } from "../../workers/console/server.ts";

/** Answers a call; what it throws becomes an error with its `code`. */
export type Scripted = (payload: Json) => Json | Promise<Json>;

/** See the module. */
export class ScriptedConsole implements AsyncDisposable {
  /** By function id; a test may change them while the page is open. */
  readonly functions = new Map<string, Scripted>();
  /** All that was called, in order. */
  readonly called: { readonly function_id: string; readonly payload: Json }[] = [];
  /** The rights that pages get. */
  operator = true;
  readonly #lines = new Set<Line>();
  readonly #html: string;
  readonly #token: string;
  #server!: Deno.HttpServer<Deno.NetAddr>;
  #connected = true;

  private constructor(html: string, token: string) {
    this.#html = html;
    this.#token = token;
  }

  /** Serves on a free port. `inPage: false`: the token has to be typed in. */
  static async start(
    html: string,
    { token = "scripted", inPage = true, port = 0 } = {},
  ): Promise<ScriptedConsole> {
    const it = new ScriptedConsole(html, token);
    const page = await preparePage(html, inPage ? token : "");
    const options = { port, hostname: "127.0.0.1", onListen: () => {} };
    it.#server = Deno.serve(options, (request) => {
      if (new URL(request.url).pathname !== "/live") return pageResponse(page, request);
      const { socket, response } = Deno.upgradeWebSocket(request);
      it.#accept(socket);
      return response;
    });
    return it;
  }

  /** Such as `http://127.0.0.1:40123`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The port it is on. */
  get port(): number {
    return this.#server.addr.port;
  }

  /** A trigger fires: watches of it hear that, and queries that hang on it are asked again. */
  fire(type: string, payload: Json): void {
    for (const line of this.#lines) line.fire(type, payload);
  }

  /** The engine is lost, or back. */
  setConnected(connected: boolean): void {
    this.#connected = connected;
    for (const line of this.#lines) line.sayEngine(connected);
  }

  /** Closes every line, as a console that ends does. */
  drop(): void {
    for (const line of this.#lines) line.close();
  }

  /** Answers one call. */
  async answer(function_id: string, payload: Json): Promise<Json> {
    this.called.push({ function_id, payload });
    const scripted = this.functions.get(function_id);
    if (scripted) return await scripted(payload);
    throw Object.assign(new Error(`Function ${function_id} not found`), {
      code: "function_not_found",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    await this.#server.shutdown();
  }

  #accept(socket: WebSocket): void {
    const line = new Line(socket, this);
    socket.onmessage = async ({ data }) => {
      const message = JSON.parse(data) as BrowserMessage;
      if (message.type !== "hello") return await line.hear(message);
      if (message.token !== this.#token) return socket.close(WRONG_TOKEN_CLOSE);
      this.#lines.add(line);
      const engine_url = "ws://127.0.0.1:49134";
      line.say({ type: "welcome", version: "0.1.0", engine_url, operator: this.operator });
      line.sayEngine(this.#connected);
    };
    socket.onclose = () => this.#lines.delete(line);
  }
}

/** One browser's line. */
class Line {
  readonly #socket: WebSocket;
  readonly #console: ScriptedConsole;
  readonly #triggers = new Map<number, WatchedTrigger>();
  readonly #queries = new Map<number, { query: WatchedQuery; on: readonly WatchedTrigger[] }>();

  constructor(socket: WebSocket, scripted: ScriptedConsole) {
    this.#socket = socket;
    this.#console = scripted;
  }

  say(message: ConsoleMessage): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  sayEngine(connected: boolean): void {
    this.say({ type: "engine", connected, since_ms: Date.now() });
  }

  close(): void {
    this.#socket.close();
  }

  fire(type: string, payload: Json): void {
    for (const [id, trigger] of this.#triggers) {
      if (trigger.type === type) this.say({ type: "fired", id, payload });
    }
    for (const [id, { on }] of this.#queries) {
      if (on.some((trigger) => trigger.type === type)) void this.#ask(id);
    }
  }

  async hear(message: Exclude<BrowserMessage, { type: "hello" }>): Promise<void> {
    switch (message.type) {
      case "call":
        return await this.#call(message.id, message.function_id, message.payload ?? null);
      case "watch_trigger":
        this.#triggers.set(message.id, message.trigger);
        return;
      case "watch_query":
        this.#queries.set(message.id, message);
        return await this.#ask(message.id);
      case "http":
        return await this.#call(message.id, "http", { ...message } as Json);
      case "end":
        this.#triggers.delete(message.id);
        this.#queries.delete(message.id);
    }
  }

  async #call(id: number, function_id: string, payload: Json): Promise<void> {
    try {
      const result = await this.#console.answer(function_id, payload);
      if (function_id === "http") {
        this.say({ ...result as object, type: "http_answer", id } as never);
      } else this.say({ type: "result", id, result, duration_ms: 1.25, trace_id: "ab".repeat(16) });
    } catch (thrown) {
      this.#fail(id, thrown);
    }
  }

  async #ask(id: number): Promise<void> {
    const { query } = this.#queries.get(id)!;
    try {
      const value = await this.#console.answer(query.function_id, query.payload ?? {});
      if (query.items === undefined) this.say({ type: "value", id, value });
      else {
        const items = (value as Record<string, Json[]>)[query.items] ?? [];
        this.say({ type: "snapshot", id, items });
      }
    } catch (thrown) {
      this.#queries.delete(id);
      this.#fail(id, thrown);
    }
  }

  #fail(id: number, thrown: unknown): void {
    const { code = "invocation_failed", message } = thrown as Error & { code?: string };
    this.say({ type: "error", id, error: { code, message }, duration_ms: 1, trace_id: null });
  }
}
