/**
 * A browser's line to the console without a browser: says and hears what `wire.ts` has.
 *
 * @module
 */
import type { BrowserMessage, ConsoleMessage } from "../../workers/console/wire.ts";
import { PATIENCE_MS } from "../fakes/until.ts";

/** How to open a line. */
export interface ClientOptions {
  /** Default: the token in the page. */
  readonly token?: string;
  /** Default: the console's own origin; `null`: none. */
  readonly origin?: string | null;
  /** Path and query of the page whose token is used. */
  readonly page?: string;
}

/** See the top of this file. */
export class ConsoleClient implements Disposable {
  /** All that came. */
  readonly heard: ConsoleMessage[] = [];
  readonly #socket: WebSocket;
  readonly #opened = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<number>();
  #waiting = Promise.withResolvers<void>();
  #isOver = false;
  /** What is said before the line is open. */
  #early: string[] | undefined = [];

  private constructor(url: string, origin: string | null) {
    const headers: Record<string, string> = origin === null ? {} : { origin };
    this.#socket = new WebSocket(`${url.replace("http", "ws")}/live`, { headers });
    this.#socket.onopen = () => {
      for (const text of this.#early ?? []) this.#socket.send(text);
      this.#early = undefined;
      this.#opened.resolve();
    };
    this.#socket.onmessage = ({ data }) => {
      this.heard.push(JSON.parse(data));
      this.#stir();
    };
    this.#socket.onclose = ({ code }) => {
      this.#isOver = true;
      this.#closed.resolve(code);
      this.#stir();
    };
    this.#socket.onerror = () => {}; // `close` follows.
  }

  /** Opens a line and says hello. */
  static async open(url: string, options: ClientOptions = {}): Promise<ConsoleClient> {
    const token = options.token ?? await tokenIn(url, options.page);
    const client = new ConsoleClient(url, options.origin === undefined ? url : options.origin);
    client.#early!.push(JSON.stringify({ type: "hello", token }));
    return client;
  }

  /** Opens a line and says nothing. */
  static async silent(url: string): Promise<ConsoleClient> {
    const client = new ConsoleClient(url, url);
    await client.#opened.promise;
    return client;
  }

  /** The close code of the line, once it is over. */
  get closed(): Promise<number> {
    return this.#closed.promise;
  }

  /** Says something. */
  say(message: BrowserMessage): void {
    this.text(JSON.stringify(message));
  }

  /** Sends any text. */
  text(text: string): void {
    if (this.#early) this.#early.push(text);
    else this.#socket.send(text);
  }

  /** Sends bytes. */
  bytes(bytes: Uint8Array<ArrayBuffer>): void {
    this.#socket.send(bytes);
  }

  /** The first message from the `from`-th on that is of this type and, if given, for this id. */
  async next<Type extends ConsoleMessage["type"]>(
    type: Type,
    id?: number,
    from = 0,
  ): Promise<Extract<ConsoleMessage, { type: Type }>> {
    const end = performance.now() + PATIENCE_MS;
    while (true) {
      const found = this.heard.slice(from).find((message) =>
        message.type === type && (id === undefined || (message as { id?: number }).id === id)
      );
      if (found) return found as Extract<ConsoleMessage, { type: Type }>;
      if (this.#isOver) throw new Error(`the line is over, no ${type} came`);
      const left = end - performance.now();
      if (left < 0) {
        throw new Error(`no ${type}; heard ${JSON.stringify(this.heard).slice(0, 2000)}`);
      }
      const timer = setTimeout(() => this.#stir(), left + 1);
      await this.#waiting.promise;
      clearTimeout(timer);
    }
  }

  /** Ends the line. */
  close(): Promise<number> {
    this.#socket.close();
    return this.closed;
  }

  /** As {@linkcode close}, without waiting. */
  [Symbol.dispose](): void {
    this.#socket.close();
  }

  #stir(): void {
    const waiting = this.#waiting;
    this.#waiting = Promise.withResolvers<void>();
    waiting.resolve();
  }
}

/** The token in a page of the console; empty when it holds none. */
export async function tokenIn(url: string, page = "/"): Promise<string> {
  const html = await (await fetch(url + page)).text();
  return /<meta name="engine-console-token" content="([^"]*)">/.exec(html)?.[1] ?? "";
}
