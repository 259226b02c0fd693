/**
 * A TCP proxy that fails as networks do: it delays, swallows, or cuts what passes.
 *
 * @module
 */
import { pause } from "./waiting.ts";

/**
 * What happens to bytes. A `hole` takes them and passes nothing on, in either direction. `mute`
 * passes what the client sends, and cuts the connection where the answer would come.
 */
export type ProxyMode = "pass" | "delay" | "hole" | "mute";

const DELAY_MS = 100;

/** See the top of this file. */
export class Proxy implements AsyncDisposable {
  mode: ProxyMode = "pass";
  readonly port: number;
  readonly #listener: Deno.TcpListener;
  readonly #target: number;
  readonly #connections = new Set<Deno.Conn>();
  readonly #running: Promise<void>;
  #pumps: Promise<void>[] = [];

  /** Listens on a free port in front of a port of this machine. */
  constructor(target: number) {
    this.#target = target;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    this.port = this.#listener.addr.port;
    this.#running = this.#accept();
  }

  /** Ends all connections at once, without a word to either side. */
  cut(): void {
    for (const connection of this.#connections) close(connection);
    this.#connections.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    this.cut();
    await this.#running;
    await Promise.all(this.#pumps);
  }

  async #accept(): Promise<void> {
    try {
      for await (const client of this.#listener) {
        const server = await Deno.connect({ hostname: "127.0.0.1", port: this.#target });
        this.#connections.add(client).add(server);
        this.#pumps.push(this.#pump(client, server), this.#pump(server, client, true));
      }
    } catch {
      // The engine has gone, or the proxy is closed.
    }
  }

  async #pump(from: Deno.Conn, to: Deno.Conn, isAnswer = false): Promise<void> {
    const bytes = new Uint8Array(64 * 1024);
    try {
      for (;;) {
        const count = await from.read(bytes);
        if (count === null) break;
        if (this.mode === "mute" && isAnswer) break;
        if (this.mode === "hole") continue;
        if (this.mode === "delay") await pause(DELAY_MS);
        for (let at = 0; at < count;) at += await to.write(bytes.subarray(at, count));
      }
    } catch {
      // Cut.
    }
    if (this.mode === "hole") return; // The other side is not notified either.
    close(from);
    close(to);
  }
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // It was closed before.
  }
}
