/**
 * The console's port: serves the one page and accepts the WebSockets of open pages.
 *
 * The server does not know what pages show. Every path without a dot is the page, so that each
 * place in it has an address that can be bookmarked. The page is sent with a token in it,
 * compressed, and under a Content-Security-Policy that runs nothing but what was built into it.
 *
 * @module
 */
import { Hono } from "hono";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { type HttpServer, listenHttp } from "../kit/listen.ts";
import { derive, isSameText, requestProblem, rightsOf, type Token } from "./access.ts";
import { BrowserConnection, type BrowserServices } from "./browser_connection.ts";
import builtPage from "./dist/console.html" with { type: "text" };

/** The built page: HTML with all scripts and styles inside. */
export const consolePage: string = builtPage;

/** Open pages that one console serves at once. */
export const BROWSERS_MAX = 64;
const TOKEN_META = /<meta\s+name="engine-console-token"\s+content="">/;
const GOING_AWAY_CLOSE = 1001;

const SETTINGS = { port: "port of engine-console", address: "host or port of engine-console" };

/** Headers of every response. */
const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** What to serve, and where. */
export interface ConsoleServerOptions {
  /** Address to listen on. One that other machines can reach needs `accessToken`. */
  readonly host: string;
  /** 0 is any free port. */
  readonly port: number;
  /** The built page. */
  readonly page: string;
  /** What a person must type in before the page shows anything; left out: nothing. */
  readonly accessToken?: Token;
  /** Secret that page tokens are derived from: the same secret gives the same tokens. */
  readonly secret: string;
  /** The `?key=…` that makes a page the operator's; `undefined`: there is none now. */
  operatorKey(): Promise<string | undefined>;
  /** What connections of pages use. */
  readonly services: Omit<BrowserServices, "rightsOf">;
}

/** The page, once with each token. */
interface Pages {
  readonly guest: ServedPage;
  readonly operator: ServedPage;
}

/** An open console. Disposing of it closes the connections of all pages. */
export class ConsoleServer implements AsyncDisposable {
  readonly #options: ConsoleServerOptions;
  readonly #pages: Pages;
  readonly #services: BrowserServices;
  readonly #connections = new Set<BrowserConnection>();
  readonly #isLocal: boolean;
  readonly #http: HttpServer;

  private constructor(options: ConsoleServerOptions, tokens: readonly Token[], pages: Pages) {
    this.#options = options;
    this.#pages = pages;
    this.#isLocal = isLoopback(options.host);
    this.#services = { ...options.services, rightsOf: (offered) => rightsOf(offered, tokens) };
    const app = this.#makeApp();
    this.#http = listenHttp(options, SETTINGS, (request) => app.fetch(request));
  }

  /**
   * Opens the port.
   *
   * @throws {EngineError} `address_in_use`, `address_not_available`, `INVALID_ARGUMENTS` when other
   * machines could reach it without an access token.
   */
  static async open(options: ConsoleServerOptions): Promise<ConsoleServer> {
    const { host, page, accessToken, secret } = options;
    if (!accessToken && !isLoopback(host)) {
      const message = `Other machines can reach ${host}; set token of engine-console`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const operator: Token = { text: await derive(secret, "operator"), rights: "operator" };
    const guest: Token = { text: await derive(secret, "guest"), rights: "guest" };
    const pages = {
      guest: await preparePage(page, accessToken ? "" : guest.text),
      operator: await preparePage(page, operator.text),
    };
    return new ConsoleServer(options, [operator, accessToken ?? guest], pages);
  }

  /** Such as `http://127.0.0.1:3113`. */
  get url(): string {
    return this.#http.url;
  }

  /** How many pages are connected. */
  get browsers(): number {
    return this.#connections.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of [...this.#connections]) {
      connection.close(GOING_AWAY_CLOSE, "the console stops");
    }
    await this.#http.server.shutdown();
  }

  #makeApp(): Hono {
    const app = new Hono();
    app.use("*", async (context, next) => {
      const { raw, path, method } = context.req;
      const isUpgrade = path === "/live";
      const problem = requestProblem(raw, { isLoopback: this.#isLocal, isUpgrade });
      if (problem !== undefined) return refuse(403, problem);
      if (method !== "GET" && method !== "HEAD") return refuse(405, "Only GET is answered here");
      return await next();
    });
    app.get("/live", ({ req }) => this.#upgrade(req.raw));
    app.get("*", ({ req }) => this.#page(req.raw, req.path, req.query("key")));
    app.onError(() => refuse(500, "The console could not answer"));
    return app;
  }

  async #page(request: Request, path: string, key: string | undefined): Promise<Response> {
    if (path.includes(".")) return refuse(404, "There is nothing here; the console is at /");
    if (key === undefined) return pageResponse(this.#pages.guest, request);
    const expected = await this.#options.operatorKey();
    const isOperator = expected !== undefined && isSameText(key, expected);
    return pageResponse(isOperator ? this.#pages.operator : this.#pages.guest, request);
  }

  #upgrade(request: Request): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return refuse(426, "This address is for the console's pages");
    }
    if (this.#connections.size >= BROWSERS_MAX) {
      return refuse(503, `${BROWSERS_MAX} pages are open, which is the most; close one`);
    }
    const { socket, response } = Deno.upgradeWebSocket(request);
    const connection = new BrowserConnection(this.#services, socket);
    this.#connections.add(connection);
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") connection.receive(data);
      else connection.receiveBinary();
    };
    socket.onclose = () => {
      this.#connections.delete(connection);
      connection.closed();
    };
    socket.onerror = () => {}; // `close` follows and says the same.
    return response;
  }
}

function refuse(status: number, text: string): Response {
  return new Response(`${text}\n`, {
    status,
    headers: { ...SAFE_HEADERS, "content-type": "text/plain; charset=utf-8" },
  });
}

/** A page, ready to be sent. */
export interface ServedPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/**
 * Prepares a page for {@linkcode pageResponse}.
 *
 * @param html The built file.
 * @param token For its `<meta name="engine-console-token">`; letters and digits only, or empty.
 */
export async function preparePage(html: string, token: string): Promise<ServedPage> {
  const text = html.replace(TOKEN_META, `<meta name="engine-console-token" content="${token}">`);
  const plain = new TextEncoder().encode(text);
  return {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": await policyFor(html),
      // The page holds a token.
      "cache-control": "no-store",
      ...SAFE_HEADERS,
    },
    plain,
    gzipped: await gzip(plain),
    etag: `"${(await sha256(plain)).replaceAll(/\W/g, "").slice(0, 22)}"`,
  };
}

/** The response to a request for a page: compressed if the browser takes that, or 304. */
export function pageResponse(page: ServedPage, request: Request): Response {
  const headers = { ...page.headers, etag: page.etag, vary: "accept-encoding" };
  if (request.headers.get("if-none-match") === page.etag) {
    return new Response(null, { status: 304, headers });
  }
  const takesGzip = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  return new Response(takesGzip ? page.gzipped : page.plain, {
    headers: takesGzip ? { ...headers, "content-encoding": "gzip" } : headers,
  });
}

/** A policy that allows only the page's own inline scripts and styles, by their hashes. */
async function policyFor(html: string): Promise<string> {
  const [scripts, styles] = await Promise.all([
    hashesOf(html, /<script\b[^>]*>([\s\S]*?)<\/script>/gi),
    hashesOf(html, /<style\b[^>]*>([\s\S]*?)<\/style>/gi),
  ]);
  return [
    "default-src 'none'",
    `script-src ${scripts}`,
    `style-src ${styles}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

async function hashesOf(html: string, element: RegExp): Promise<string> {
  const hashes = new Set<string>();
  for (const [, body] of html.matchAll(element)) {
    if (body) hashes.add(`'sha256-${await sha256(new TextEncoder().encode(body))}'`);
  }
  return hashes.size > 0 ? [...hashes].join(" ") : "'none'";
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toBase64();
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
