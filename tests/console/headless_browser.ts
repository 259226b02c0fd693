/**
 * A headless Chromium for tests of the console's page.
 *
 * @module
 */
import { type Browser, chromium, type Page } from "playwright-core";
import { PATIENCE_MS } from "../fakes/until.ts";
import { chromiumHere } from "./console_browser.ts";

/** How a page is seen. */
export interface Sight {
  readonly width?: number;
  readonly height?: number;
  readonly theme?: "light" | "dark";
  readonly scale?: number;
  readonly stillness?: boolean;
}

/** One browser for a file of tests. */
export class HeadlessBrowser implements AsyncDisposable {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Starts it. */
  static async start(): Promise<HeadlessBrowser> {
    if (chromiumHere === undefined) {
      throw new Error("There is no Chromium here; install it or name it in CHROMIUM");
    }
    const args = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"];
    const options = { executablePath: chromiumHere, args, timeout: PATIENCE_MS };
    return new HeadlessBrowser(await chromium.launch(options));
  }

  /** A page of its own at an address; what goes wrong inside it is in `problems`. */
  async open(url: string, sight: Sight = {}): Promise<OpenPage> {
    const context = await this.#browser.newContext({
      viewport: { width: sight.width ?? 1280, height: sight.height ?? 800 },
      colorScheme: sight.theme ?? "light",
      deviceScaleFactor: sight.scale ?? 1,
      reducedMotion: sight.stillness === false ? "no-preference" : "reduce",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    await page.goto(url);
    return { page, problems, [Symbol.asyncDispose]: () => context.close() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** A page that is open. */
export interface OpenPage extends AsyncDisposable {
  readonly page: Page;
  /** Uncaught errors, and errors in the browser's console. */
  readonly problems: readonly string[];
}
