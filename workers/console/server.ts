/**
 * The console's port: serves the one page and accepts the WebSockets of open pages.
 *
 * The server does not know what pages show. Every path without a dot is the page, so that each
 * place in it has an address that can be bookmarked. The page is sent with a token in it,
 * compressed, and under a Content-Security-Policy that runs nothing but what was built into it.
 *
 * Every user of this machine, and every worker in a microVM, can connect here. So connections
 * without a `hello` have few places, of which a new one takes the oldest, and pages that are not
 * the operator's leave a part of the others free.
 *
 * @module
 */
import { Hono } from "hono";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { MemoryBudget } from "../../engine/ports/memory.ts";
import { AllowedHosts } from "../kit/allowed_hosts.ts";
import { HeldMemory } from "../kit/held_memory.ts";
import { HttpPort } from "../kit/http/port.ts";
import { RefusedOrigins } from "../kit/refused_origins.ts";
import type { ServedRequest, ServedResponse } from "../kit/http/response.ts";
import {
  derive,
  isSameText,
  OTHER_PAGE,
  requestProblem,
  type Rights,
  rightsOf,
  type Token,
} from "./access.ts";
import { BrowserConnection, type BrowserServices } from "./browser_connection.ts";
import { type PageSocket, WebSockets } from "./web_socket.ts";
import builtPage from "./dist/console.html" with { type: "text" };

/** The built page: HTML with all scripts and styles inside. */
export const consolePage: string = builtPage;

/** Open pages that one console serves at once. */
export const BROWSERS_MAX = 64;
/** Of these, pages that are not the operator's. */
export const GUESTS_MAX = 48;
/** Connections whose `hello` has not come. */
export const GREETINGS_MAX = 32;
/** How often a page has to give a sign of life. */
const PING_MS = 20_000;
/** Time for pages to take the end of their WebSocket. */
const CLOSE_MS = 500;
const TOKEN_META = /<meta\s+name="engine-console-token"\s+content="">/;
const GOING_AWAY_CLOSE = 1001;
const TRY_LATER_CLOSE = 1013;

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
  /** Names at which the page may be opened, beside addresses and those of this machine. */
  readonly allowedHosts?: readonly string[];
  readonly log: Log;
  readonly memory: MemoryBudget;
  /** Sockets that may be open at once. */
  readonly socketsMax: number;
  /** What connections of pages use. */
  readonly services: Omit<BrowserServices, "rightsOf" | "admit">;
}

/** What the app gets beside the request. */
interface Bindings {
  /** Set by the app: the connection becomes a WebSocket. */
  upgrade?: NonNullable<ServedResponse["upgrade"]>;
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
  readonly #clock: Clock;
  readonly #connections = new Map<BrowserConnection, PageSocket>();
  readonly #isLocal: boolean;
  readonly #hosts: AllowedHosts;
  readonly #refused: RefusedOrigins;
  readonly #webSockets = new WebSockets();
  readonly #port: HttpPort;
  #cancelPing: (() => void) | undefined;
  #whenGone: (() => void) | undefined;

  private constructor(options: ConsoleServerOptions, tokens: readonly Token[], pages: Pages) {
    this.#options = options;
    this.#pages = pages;
    this.#isLocal = isLoopback(options.host);
    this.#hosts = new AllowedHosts([options.host, ...options.allowedHosts ?? []]);
    this.#refused = new RefusedOrigins(options.log, null);
    this.#clock = options.services.clock;
    this.#services = {
      ...options.services,
      rightsOf: (offered) => rightsOf(offered, tokens),
      admit: (rights) => this.#hasRoomFor(rights),
    };
    const app = this.#makeApp();
    this.#port = new HttpPort({
      host: options.host,
      port: options.port,
      name: "engine-console",
      settings: SETTINGS,
      clock: this.#clock,
      log: options.log,
      memory: options.memory,
      socketsMax: options.socketsMax,
      handle: (request) => serve(app, request),
    });
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
    return this.#port.url;
  }

  /** How many pages are connected. */
  get browsers(): number {
    return this.#connections.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cancelPing?.();
    const closed = [...this.#connections.values()];
    for (const connection of [...this.#connections.keys()]) {
      connection.close(GOING_AWAY_CLOSE, "the console stops");
    }
    this.#port.drain();
    let cancel = (): void => {};
    const late = new Promise<void>((resolve) => cancel = this.#clock.after(CLOSE_MS, resolve));
    await Promise.race([Promise.all([this.#port.quiet(), this.#gone()]), late]);
    cancel();
    for (const socket of closed) socket.terminate();
    await this.#port.close();
    this.#port.destroy();
  }

  /** Resolves when no WebSocket is open. */
  #gone(): Promise<void> {
    if (this.#connections.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#whenGone = resolve);
  }

  #makeApp(): Hono<{ Bindings: Bindings }> {
    const app = new Hono<{ Bindings: Bindings }>();
    app.use("*", async (context, next) => {
      const { raw, path, method } = context.req;
      const isUpgrade = path === "/live";
      const problem = requestProblem(raw, {
        isLoopback: this.#isLocal,
        isUpgrade,
        hosts: this.#hosts,
      });
      if (problem === OTHER_PAGE) this.#refused.report(raw.headers.get("origin") ?? "");
      if (problem !== undefined) return refuse(403, problem);
      if (method !== "GET" && method !== "HEAD") {
        return refuse(405, "The console answers only GET requests");
      }
      return await next();
    });
    app.get("/live", ({ req, env }) => this.#upgrade(req.raw, env));
    app.get("*", ({ req }) => this.#page(req.raw, req.path, req.query("key")));
    app.onError(() => refuse(500, "The console could not answer; see the engine's log"));
    return app;
  }

  async #page(request: Request, path: string, key: string | undefined): Promise<Response> {
    if (path.includes(".")) {
      return refuse(404, "There is no page at this path; the console is at /");
    }
    if (key === undefined) return pageResponse(this.#pages.guest, request);
    const expected = await this.#options.operatorKey();
    const isOperator = expected !== undefined && isSameText(key, expected);
    return pageResponse(isOperator ? this.#pages.operator : this.#pages.guest, request);
  }

  #upgrade({ headers }: Request, env: Bindings): Response {
    const problem = upgradeProblem(headers);
    if (problem !== undefined) return refuse(426, problem);
    if (this.#admitted().length >= this.#pagesMax) {
      return refuse(503, `${this.#pagesMax} pages are open already, the maximum; close one`);
    }
    const held = new HeldMemory(this.#options.memory, this.#clock);
    env.upgrade = (stream, rest) =>
      this.#webSockets.accept({
        stream,
        rest,
        held,
        headers: Object.fromEntries(headers),
        opened: (socket) => this.#opened(socket),
      });
    return new Response(null);
  }

  #opened(socket: PageSocket) {
    this.#makeRoom();
    const connection = new BrowserConnection(this.#services, socket);
    this.#connections.set(connection, socket);
    this.#cancelPing ??= this.#clock.after(PING_MS, () => this.#ping());
    return {
      text: (text: string) => {
        connection.receive(text);
        if (connection.rights) socket.welcome();
      },
      binary: () => connection.receiveBinary(),
      closed: () => {
        this.#connections.delete(connection);
        connection.closed();
        if (this.#connections.size > 0) return;
        this.#cancelPing?.();
        this.#cancelPing = undefined;
        this.#whenGone?.();
      },
    };
  }

  /** Connections whose `hello` was accepted. */
  #admitted(): BrowserConnection[] {
    return [...this.#connections.keys()].filter(({ rights }) => rights !== undefined);
  }

  /** Under a low limit of descriptors there are fewer. */
  get #pagesMax(): number {
    return Math.min(BROWSERS_MAX, Math.floor(this.#options.socketsMax / 2));
  }

  #hasRoomFor(rights: Rights): boolean {
    const pages = this.#admitted();
    if (pages.length >= this.#pagesMax) return false;
    const guestsMax = Math.floor(this.#pagesMax * GUESTS_MAX / BROWSERS_MAX);
    return rights === "operator" ||
      pages.filter((page) => page.rights === "guest").length < guestsMax;
  }

  /** The oldest connection that has said nothing makes room for a new one. */
  #makeRoom(): void {
    const max = Math.min(GREETINGS_MAX, Math.floor(this.#options.socketsMax / 4));
    const silent = [...this.#connections].filter(([{ rights }]) => rights === undefined);
    for (const [connection, socket] of silent.slice(0, Math.max(0, silent.length - max + 1))) {
      this.#connections.delete(connection);
      connection.close(
        TRY_LATER_CLOSE,
        "the console closed it to make room for others; connect again",
      );
      socket.terminate();
    }
  }

  #ping(): void {
    for (const socket of this.#connections.values()) socket.ping();
    this.#cancelPing = this.#clock.after(PING_MS, () => this.#ping());
  }
}

/** Responds by the app, which knows Web requests. */
async function serve(
  app: Hono<{ Bindings: Bindings }>,
  { method, target, headers }: ServedRequest,
): Promise<ServedResponse> {
  const url = `http://${headers.host ?? "localhost"}${target}`;
  if (!URL.canParse(url)) return toServed(refuse(400, "The path is not well formed"), undefined);
  const bindings: Bindings = {};
  const response = await app.fetch(new Request(url, { method, headers }), bindings);
  return await toServed(response, bindings.upgrade);
}

async function toServed(
  response: Response,
  upgrade: ServedResponse["upgrade"],
): Promise<ServedResponse> {
  const { status, headers, body } = response;
  return {
    status,
    headers: [...headers],
    body: body === null ? null : new Uint8Array(await response.arrayBuffer()),
    ...upgrade && { upgrade },
  };
}

/** Why this is no handshake of a WebSocket; `undefined`: it is one. */
function upgradeProblem(headers: Headers): string | undefined {
  const isUpgrade = headers.get("upgrade")?.toLowerCase() === "websocket" &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers.get("sec-websocket-key") ?? "") &&
    headers.get("sec-websocket-version") === "13";
  return isUpgrade ? undefined : "This address is for the console's pages";
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
