/**
 * The console's port: gives out the one page, and takes in the lines of browsers that have it.
 *
 * It knows nothing of what pages show. Every path without a dot is the page, so that the address
 * of anything in it can be kept.
 *
 * @module
 */
import { Hono } from "hono";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import { derive, isSameText, problemOf, rightsOf, type Token } from "./access.ts";
import { BrowserLine, type BrowserSetup } from "./browser_connection.ts";
import { CONSOLE_BROWSERS_MAX } from "./limits.ts";

/** What to serve, and where. */
export interface ConsoleServerOptions {
  /** Address to listen on. Others than this machine's need `typed`. */
  readonly host: string;
  /** 0 is any free one. */
  readonly port: number;
  /** The built page. */
  readonly page: string;
  /** What a person has to type in; left out: nothing, since the page holds a token of its own. */
  readonly typed?: Token;
  /** What the tokens in pages are made of: the same one makes the same ones. */
  readonly secret: string;
  /** The `key` in the address that makes a page the operator's; `undefined`: there is none now. */
  operatorKey(): Promise<string | undefined>;
  /** What browsers are served with. */
  readonly browsers: Omit<BrowserSetup, "rightsOf">;
}

/** The pages, each with another token in it. */
interface Pages {
  readonly guest: ServedPage;
  readonly operator: ServedPage;
}

/** An open console. Disposing of it ends the lines of all browsers. */
export class ConsoleServer implements AsyncDisposable {
  /** Such as `http://127.0.0.1:3113`. */
  readonly url: string;
  readonly #options: ConsoleServerOptions;
  readonly #pages: Pages;
  readonly #setup: BrowserSetup;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #lines = new Set<BrowserLine>();
  readonly #isLocal: boolean;

  private constructor(options: ConsoleServerOptions, tokens: readonly Token[], pages: Pages) {
    this.#options = options;
    this.#pages = pages;
    this.#isLocal = isLoopback(options.host);
    this.#setup = { ...options.browsers, rightsOf: (offered) => rightsOf(offered, tokens) };
    const app = this.#makeApp();
    this.#server = listen(options, (request) => app.fetch(request));
    const { hostname, port } = this.#server.addr;
    this.url = `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;
  }

  /**
   * Opens the port.
   *
   * @throws {EngineError} `address_in_use`, `address_not_available`, `INVALID_ARGUMENTS` when other
   * machines could reach it without a token.
   */
  static async open(options: ConsoleServerOptions): Promise<ConsoleServer> {
    const { host, page, typed, secret } = options;
    if (!typed && !isLoopback(host)) {
      const message = `Other machines can reach ${host}; set token of engine-console`;
      throw new EngineError("INVALID_ARGUMENTS", message);
    }
    const operator: Token = { text: await derive(secret, "operator"), rights: "operator" };
    const guest: Token = { text: await derive(secret, "guest"), rights: "guest" };
    const pages = {
      guest: await preparePage(page, typed ? "" : guest.text),
      operator: await preparePage(page, operator.text),
    };
    return new ConsoleServer(options, [operator, typed ?? guest], pages);
  }

  /** How many browsers have a line. */
  get browsers(): number {
    return this.#lines.size;
  }

  /** Ends all lines and closes the port. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const line of [...this.#lines]) line.close(1001, "the console stops");
    await this.#server.shutdown();
  }

  #makeApp(): Hono {
    const app = new Hono();
    app.use("*", async (context, next) => {
      const { raw, path, method } = context.req;
      const isUpgrade = path === "/live";
      const problem = problemOf(raw, { isLoopback: this.#isLocal, isUpgrade });
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
    if (key === undefined) return answerWith(this.#pages.guest, request);
    const expected = await this.#options.operatorKey();
    const holds = expected !== undefined && isSameText(key, expected);
    return answerWith(holds ? this.#pages.operator : this.#pages.guest, request);
  }

  #upgrade(request: Request): Response {
    if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
      return refuse(426, "This address is for the console's pages");
    }
    if (this.#lines.size >= CONSOLE_BROWSERS_MAX) {
      return refuse(503, `${CONSOLE_BROWSERS_MAX} pages are open, which is the most; close one`);
    }
    const { socket, response } = Deno.upgradeWebSocket(request);
    const line = new BrowserLine(this.#setup, socket);
    this.#lines.add(line);
    socket.onmessage = ({ data }) => typeof data === "string" ? line.text(data) : line.binary();
    socket.onclose = () => {
      this.#lines.delete(line);
      line.closed();
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

function listen(
  { host, port }: ConsoleServerOptions,
  fetch: (request: Request) => Response | Promise<Response>,
): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve({ hostname: host, port, onListen() {} }, fetch);
  } catch (cause) {
    const details = { host, port };
    if (cause instanceof Deno.errors.AddrInUse) {
      const message = `Port ${port} is taken; stop the other program or set port of engine-console`;
      throw new EngineError("address_in_use", message, { details, cause });
    }
    const reason = cause instanceof Error ? cause.message : String(cause);
    const message = `Cannot listen on ${host}:${port}, change host or port of engine-console ` +
      `(${reason})`;
    throw new EngineError("address_not_available", message, { details, cause });
  }
}

/** Where the token goes. */
const TOKEN_META = /<meta\s+name="engine-console-token"\s+content="">/;

/** A page, ready to be sent. */
export interface ServedPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/**
 * Makes a page ready.
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
      // The token is in it.
      "cache-control": "no-store",
      ...SAFE_HEADERS,
    },
    plain,
    packed: await gzip(plain),
    etag: `"${(await sha256(plain)).replaceAll(/\W/g, "").slice(0, 22)}"`,
  };
}

/** Headers of every answer. */
export const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Answers a request for the page. */
export function answerWith(page: ServedPage, request: Request): Response {
  const headers = { ...page.headers, etag: page.etag, vary: "accept-encoding" };
  if (request.headers.get("if-none-match") === page.etag) {
    return new Response(null, { status: 304, headers });
  }
  const packed = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  return new Response(packed ? page.packed : page.plain, {
    headers: packed ? { ...headers, "content-encoding": "gzip" } : headers,
  });
}

/** Only the scripts and styles that stand in the page, known by their hashes. */
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
