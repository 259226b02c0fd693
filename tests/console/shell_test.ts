/**
 * What stands around every page of the console: ways from page to page, keys, palette, theme,
 * notices that the engine is gone, and what strangers' text may do to it.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../mod.ts";
import { consolePage } from "../../workers/console/server.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { ScriptedConsole } from "./scripted_console.ts";
import { workerStatus } from "../fakes/samples.ts";

const EVIL = `<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>`;

/** A console that knows two workers, in front of a browser. */
async function scripted(options: { inPage?: boolean } = {}) {
  const stack = new AsyncDisposableStack();
  const it = stack.use(await ScriptedConsole.start(consolePage, options));
  const browser = stack.use(await HeadlessBrowser.start());
  const workers = [workerStatus(), workerStatus({ name: "shop", pid: 77 })];
  it.functions.set("engine::supervisor::list", () => ({ workers } as unknown as Json));
  it.functions.set("engine::workers::list", () => ({ workers: [] }));
  it.functions.set("engine::functions::list", () => ({ functions: [] }));
  const dispose = () => stack.disposeAsync();
  return { it, browser, [Symbol.asyncDispose]: dispose };
}

Deno.test({
  name: "the console of a real engine opens on the overview and leads to every page",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    await world.connect("shop");
    const page = await world.openPage("/");
    const foreign: string[] = [];
    page.on("request", (request) => {
      if (!request.url().startsWith(world.consoleUrl)) foreign.push(request.url());
    });

    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await page.getByRole("link", { name: "shop", exact: true }).first().waitFor();
    assert.match(page.url(), /\/overview$/);
    const places = page.locator(".groups .place");
    const names = await places.allInnerTexts();
    assert.deepEqual(names.slice(0, 2), ["Overview", "Workers"]);
    for (const [at, name] of names.entries()) {
      await places.nth(at).click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
      assert.equal(await page.title(), `${name} · Engine`);
    }
    await page.goBack();
    await page.getByRole("heading", { name: names.at(-2)!, level: 1 }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: names.at(-2)!, level: 1 }).waitFor();

    assert.deepEqual(foreign, []);
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the page says that the engine is gone and continues when it is back",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const worker = await world.connect("shop");
    const page = await world.openPage("/workers");
    await page.getByRole("link", { name: "shop" }).waitFor();

    await world.stopEngine();
    await page.getByText("unreachable for").waitFor();
    assert.ok(await page.getByRole("link", { name: "shop" }).isVisible(), "what was known stays");

    await world.startEngine();
    await page.locator(".banner").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "shop" }).waitFor();
    await worker.shutdown();
    await page.getByRole("link", { name: "shop" }).waitFor({ state: "detached" });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "a console that lost the engine says so, and takes it back",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    await using open = await world.browser.open(`${world.it.url}/workers`);
    await open.page.getByRole("link", { name: "shop" }).waitFor();

    world.it.setConnected(false);
    await open.page.getByText("The engine is unreachable").waitFor();
    world.it.setConnected(true);
    await open.page.locator(".banner").waitFor({ state: "detached" });

    assert.deepEqual(open.problems, []);
  },
});

Deno.test({
  name: "a page whose token was refused asks for one, and says when that is wrong too",
  ...browserTest,
  async fn() {
    await using world = await scripted({ inPage: false });
    await using open = await world.browser.open(`${world.it.url}/workers`);
    const { page } = open;

    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Open the console" }).click();
    await page.getByText("does not take the token").waitFor();
    await page.getByLabel("Token").fill("scripted");
    await page.keyboard.press("Enter");

    await page.getByRole("link", { name: "shop" }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: "shop" }).waitFor();
  },
});

Deno.test({
  name: "the command palette finds workers and pages, with the keyboard alone",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    await using open = await world.browser.open(`${world.it.url}/settings`);
    const { page } = open;

    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "shop" }).waitFor();
    await page.keyboard.type("sho");
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Worker shop" }).waitFor();
    assert.match(page.url(), /\/workers\/shop$/);

    await page.keyboard.press("Control+k");
    await page.keyboard.type("zzzz");
    await page.getByText("Nothing is called").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("combobox").waitFor({ state: "detached" });

    assert.deepEqual(open.problems, []);
  },
});

Deno.test({
  name: "keys lead from page to page, into the search, and tell of themselves",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    await using open = await world.browser.open(`${world.it.url}/workers`);
    const { page } = open;
    await page.getByRole("link", { name: "shop" }).waitFor();

    await page.keyboard.press("/");
    await page.keyboard.type("gc");
    assert.equal(await page.getByLabel("Search workers").inputValue(), "gc");
    await page.getByLabel("Search workers").fill("");
    await page.locator("#content").focus();
    await page.keyboard.press("g");
    await page.keyboard.press("c");
    await page.getByRole("heading", { name: "Configuration", level: 1 }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  },
});

Deno.test({
  name: "the theme follows the system until one is chosen, which is kept",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    await using open = await world.browser.open(`${world.it.url}/workers`, { theme: "dark" });
    const { page } = open;
    const colour = () => page.evaluate("getComputedStyle(document.documentElement).color");
    await page.getByRole("link", { name: "shop" }).waitFor();
    const dark = await colour();

    await page.getByRole("button", { name: "Theme: system, change to light" }).click();
    await page.getByRole("button", { name: "Theme: light, change to dark" }).waitFor();
    assert.notEqual(await colour(), dark);
    await page.reload();
    await page.getByRole("button", { name: "Theme: light, change to dark" }).click();

    await page.getByRole("button", { name: "Theme: dark, change to" }).waitFor();
    assert.equal(await colour(), dark);
  },
});

Deno.test({
  name: "on a phone the pages are at the bottom, and all of them behind More",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    const sight = { width: 390, height: 844 };
    await using open = await world.browser.open(`${world.it.url}/workers`, sight);
    const { page } = open;
    await page.getByRole("link", { name: "shop" }).waitFor();

    assert.equal(await page.locator(".groups").isVisible(), false);
    await page.getByRole("button", { name: "More" }).click();
    await page.locator(".groups").getByRole("link", { name: "Settings" }).click();
    await page.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
    assert.equal(await page.locator(".groups").isVisible(), false);
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");

    assert.ok(width <= 390, `the page is ${width} wide`);
  },
});

Deno.test({
  name: "text of workers is only ever text",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    const evil = workerStatus({
      name: EVIL,
      state: "failed",
      reason: EVIL,
      tail: [EVIL],
      last_error: EVIL,
      path: EVIL,
    });
    const reply = { workers: [evil] } as unknown as Json;
    world.it.functions.set("engine::supervisor::list", () => reply);
    await using open = await world.browser.open(
      `${world.it.url}/workers/${encodeURIComponent(EVIL)}`,
    );
    const { page } = open;

    await page.getByText(EVIL).first().waitFor();
    await page.getByText(EVIL).nth(2).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("img");
    await page.getByRole("option", { name: "onerror" }).waitFor();

    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate(() => "hacked" in globalThis), false);
    assert.deepEqual(open.problems, []);
  },
});

Deno.test({
  name: "a page that fails says so and leaves the others alone",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    world.it.functions.set("engine::supervisor::list", () => ({ workers: [null, 7] }));
    world.it.functions.set(
      "engine::config::list",
      () => ({ settings: [], path: "/x/config.yaml" }),
    );
    await using open = await world.browser.open(`${world.it.url}/workers`);
    const { page } = open;

    await page.getByText("Workers cannot be shown").waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByText("/x/config.yaml").waitFor();
  },
});

Deno.test({
  name: "a query that fails says why and is asked again on demand; unknown places say so",
  ...browserTest,
  async fn() {
    await using world = await scripted();
    const { it } = world;
    await using open = await world.browser.open(`${it.url}/settings`);
    const { page } = open;

    await page.getByText("The settings cannot be read").waitFor();
    await page.getByText("function_not_found").waitFor();
    it.functions.set("engine::config::list", () => ({ settings: [], path: "/x/config.yaml" }));
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("/x/config.yaml").waitFor();
    await page.goto(`${it.url}/nowhere/at/all`);
    await page.getByText("There is no such page").waitFor();
  },
});
