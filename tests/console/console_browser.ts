/**
 * A whole engine in this process, real workers on WebSockets, its console, and a real browser in
 * front of it: for tests of pages.
 *
 * The ports stay the same when the engine is started again, so that pages can come back.
 *
 * @module
 */
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { type Engine, operatorUrl, startEngine } from "../../engine/mod.ts";
import { type Json, registerWorker, type Worker } from "../../mod.ts";
import { PATIENCE_MS } from "../fakes/until.ts";

/** How a page is opened. */
export interface PageOptions {
  /** Default: 1280 by 800. */
  readonly viewport?: { readonly width: number; readonly height: number };
  /** What the browser says its person likes; default: light. */
  readonly colorScheme?: "light" | "dark";
  /** Opened with the key of the engine's user; default: yes. */
  readonly operator?: boolean;
  /** For `emulateMedia`; default: no preference. */
  readonly reducedMotion?: "reduce" | "no-preference";
  /** A finger instead of a mouse. */
  readonly hasTouch?: boolean;
}

/** What the engine of a test runs. */
export interface WorldOptions {
  /** YAML of further keys of `engine`, each line indented by two spaces. */
  readonly settings?: string;
  /** YAML of further entries under `workers:`, each line indented by two spaces. */
  readonly workers?: string;
  /** YAML of the config of `engine-observability`, indented by six spaces. */
  readonly observability?: string;
  /** Text files to write below the project, by path, before the engine starts. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Where a Chromium lies; `undefined`: there is none, and tests of pages cannot run. */
export const chromiumHere: string | undefined = findChromium();

/** Options of a test with a browser: skipped without one. What a browser leaves open is its own. */
export const browserTest: Pick<
  Deno.TestDefinition,
  "ignore" | "sanitizeOps" | "sanitizeResources"
> = { ignore: chromiumHere === undefined, sanitizeOps: false, sanitizeResources: false };

/** See the top of this file. */
export class ConsoleWorld implements AsyncDisposable {
  /** Folder of the project, with its config.yaml. */
  readonly directory: string;
  /** Where workers connect. */
  readonly url: string;
  /** Where the console is. */
  readonly consoleUrl: string;
  /** Where HTTP triggers are served. */
  readonly httpUrl: string;
  /** What went wrong in pages: errors of scripts, and what the policy of the page forbade. */
  readonly problems: string[] = [];
  readonly #workers: Worker[] = [];
  readonly #contexts: BrowserContext[] = [];
  #engine: Engine | undefined;
  #browser: Browser | undefined;

  private constructor(directory: string, ports: readonly number[]) {
    const [workers, http, page] = ports;
    this.directory = directory;
    this.url = `ws://127.0.0.1:${workers}`;
    this.httpUrl = `http://127.0.0.1:${http}`;
    this.consoleUrl = `http://127.0.0.1:${page}`;
  }

  /** Starts an engine with state, HTTP and a console, on free ports. */
  static async start(options: WorldOptions = {}): Promise<ConsoleWorld> {
    const directory = await Deno.makeTempDir({ prefix: "engine-console-" });
    const ports = [freePort(), freePort(), freePort()];
    const world = new ConsoleWorld(directory, ports);
    await world.write("config.yaml", configText(ports, options));
    for (const [path, text] of Object.entries(options.files ?? {})) await world.write(path, text);
    await world.startEngine();
    return world;
  }

  /** The engine that runs. */
  get engine(): Engine {
    if (!this.#engine) throw new Error("the engine of this test is stopped");
    return this.#engine;
  }

  /** Starts the engine again. */
  async startEngine(): Promise<void> {
    this.#engine = await startEngine({
      configPath: `${this.directory}/config.yaml`,
      logLevel: "error",
    });
  }

  /** Stops the engine; workers and pages stay and notice. */
  async stopEngine(): Promise<void> {
    const engine = this.#engine;
    this.#engine = undefined;
    await engine?.stop({ drain: false });
  }

  /** Connects a worker of this process over a WebSocket; it is up when this resolves. */
  async connect(workerName: string, description?: string): Promise<Worker> {
    const worker = registerWorker(this.url, {
      workerName,
      description,
      reconnect: { firstMs: 50, maxMs: 200 },
      onError: () => {}, // Pages are what is tested.
    });
    this.#workers.push(worker);
    await worker.trigger({ function_id: "engine::workers::list", payload: {} });
    return worker;
  }

  /** Calls a function, from a worker without functions of its own. */
  async call(function_id: string, payload: Json = {}): Promise<Json | undefined> {
    await using worker = await this.connect("test-caller");
    this.#workers.pop();
    return await worker.trigger<Json, Json | undefined>({ function_id, payload });
  }

  /**
   * Opens a page of the console.
   *
   * @param path Such as `/workers`, with its query.
   */
  async openPage(path = "/", options: PageOptions = {}): Promise<Page> {
    const page = await this.blankPage(options);
    const asked = options.operator === false ? path : await this.operatorPath(path);
    await page.goto(this.consoleUrl + asked);
    return page;
  }

  /** The path of a page with the key of the engine's user. */
  async operatorPath(path = "/"): Promise<string> {
    const { searchParams } = new URL(await operatorUrl(this.consoleUrl, this.url));
    const url = new URL(path, this.consoleUrl);
    url.searchParams.set("key", searchParams.get("key") ?? "");
    return url.pathname + url.search;
  }

  /** A page at nothing yet, whose problems are collected. */
  async blankPage(options: PageOptions = {}): Promise<Page> {
    const { viewport = { width: 1280, height: 800 }, colorScheme = "light" } = options;
    this.#browser ??= await chromium.launch({
      executablePath: chromiumHere!,
      timeout: PATIENCE_MS,
      // Names of strangers lead here, as they do for a page that has its own name led to us.
      args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP *.test 127.0.0.1"],
    });
    const context = await this.#browser.newContext({
      viewport,
      colorScheme,
      reducedMotion: options.reducedMotion ?? "no-preference",
      hasTouch: options.hasTouch ?? false,
      permissions: ["clipboard-read", "clipboard-write"],
    });
    this.#contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => this.problems.push(String(error.stack ?? error)));
    page.on("console", (message) => {
      // A line that is refused while the engine is away is no fault of the page.
      const text = message.text();
      if (message.type() === "error" && !/WebSocket|ERR_CONNECTION/.test(text)) {
        this.problems.push(text);
      }
    });
    return page;
  }

  /** Writes a text file below the project. */
  async write(path: string, text: string): Promise<void> {
    const full = `${this.directory}/${path}`;
    await Deno.mkdir(full.slice(0, full.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(full, text);
  }

  /** Ends browser, workers and engine, and removes the project. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const context of this.#contexts) await context.close();
    await this.#browser?.close();
    await Promise.all(this.#workers.map((worker) => worker.shutdown()));
    await this.stopEngine();
    await Deno.remove(this.directory, { recursive: true });
  }
}

/** The texts of all WebSocket messages that a page gets from now on. */
export function framesOf(page: Page): string[] {
  const frames: string[] = [];
  page.on("websocket", (socket) => {
    socket.on("framereceived", ({ payload }) => frames.push(String(payload)));
  });
  return frames;
}

function configText([workers, http, page]: readonly number[], options: WorldOptions): string {
  const { workers: more = "", settings = "", observability } = options;
  return `engine:
  port: ${workers}
${settings}workers:
  - name: engine-state
  - name: engine-http
    config:
      port: ${http}
  - name: engine-console
    config:
      port: ${page}
${observability ? `  - name: engine-observability\n    config:\n${observability}` : ""}${more}`;
}

function findChromium(): string | undefined {
  const named = Deno.env.get("CHROMIUM");
  if (named) return named;
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const folders = (Deno.env.get("PATH") ?? "").split(":");
  const paths = names.flatMap((name) => folders.map((folder) => `${folder}/${name}`));
  return paths.find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false; // Not there.
    }
  });
}

function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}
