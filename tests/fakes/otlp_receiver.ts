/**
 * A receiver of OTLP over HTTP on a port of this machine that keeps what comes.
 *
 * @module
 */

import { PATIENCE_MS } from "./until.ts";

/** One request as it came. */
export interface Received {
  /** Such as `/v1/traces`. */
  readonly path: string;
  readonly headers: Headers;
  /** Unpacked. */
  readonly body: Uint8Array;
}

/** See the top of this file. */
export class OtlpReceiver implements AsyncDisposable {
  readonly received: Received[] = [];
  /** Answers with these statuses first; then all is well. */
  readonly statuses: number[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #waiting = new Set<() => void>();

  constructor() {
    this.#server = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      (request) => this.#take(request),
    );
  }

  /** Such as `http://127.0.0.1:40000`. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** The first request for a path that fits; waits for it. */
  async next(path: string, fits: (text: string) => boolean = () => true): Promise<Received> {
    const end = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = this.received.find((each) =>
        each.path === path && fits(new TextDecoder().decode(each.body))
      );
      if (found) return found;
      if (performance.now() > end) throw new Error(`nothing fitting came for ${path}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      const timer = setTimeout(resolve, 1_000);
      await promise;
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }

  async #take(request: Request): Promise<Response> {
    const isPacked = request.headers.get("content-encoding") === "gzip";
    const stream = isPacked
      ? request.body!.pipeThrough(new DecompressionStream("gzip"))
      : request.body!;
    const body = new Uint8Array(await new Response(stream).arrayBuffer());
    const status = this.statuses.shift() ?? 200;
    if (status === 200) {
      const { pathname } = new URL(request.url);
      this.received.push({ path: pathname, headers: request.headers, body });
      for (const wake of this.#waiting) wake();
    }
    return new Response("{}", { status });
  }
}
