/**
 * Whether the console is accessible: axe looks at every page, light and dark, wide and narrow,
 * with data on it and without.
 *
 * @module
 */
import assert from "node:assert/strict";
import axe from "axe-core";
import type { Page } from "playwright-core";
import { until } from "../fakes/until.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { letCustomersCome, openShop, SHOP_OPTIONS } from "./demo_shop.ts";

const PATHS = [
  "/overview",
  "/workers",
  "/workers/mailer",
  "/workers/reports",
  "/workers/mailer?tab=functions",
  "/workers/mailer?tab=logs",
  "/functions",
  "/functions/default/orders%3A%3Aplace",
  "/triggers",
  "/flow",
  "/traces",
  "/traces?view=map",
  "/logs",
  "/metrics",
  "/cluster",
  "/state",
  "/state/orders",
  "/queues",
  "/streams",
  "/streams/orders/today",
  "/streams/orders/today/7",
  "/configuration",
  "/configuration/orders",
  "/configuration/orders?tab=history",
  "/settings",
  "/nowhere",
];

/** Colours are all that is another in the dark, and where things are on a phone. */
const SIGHTS = [
  { colorScheme: "light", viewport: { width: 1280, height: 800 }, rules: null },
  { colorScheme: "dark", viewport: { width: 1280, height: 800 }, rules: ["color-contrast"] },
  { colorScheme: "light", viewport: { width: 390, height: 844 }, rules: null },
] as const;

Deno.test({
  name: "axe finds no serious fault on any page of a console with data",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start(SHOP_OPTIONS);
    const worker = await openShop(world);
    const over = new AbortController();
    const customers = letCustomersCome(worker, world, over.signal);
    const faults: string[] = [];
    for (const sight of SIGHTS) {
      const page = await world.openPage("/workers", { ...sight, reducedMotion: "reduce" });
      for (const path of PATHS) {
        await go(page, path);
        const where = `${path} ${sight.colorScheme} ${sight.viewport.width}`;
        faults.push(...(await faultsOf(page, sight.rules)).map((fault) => `${where}: ${fault}`));
      }
      await page.context().close();
    }
    over.abort();
    await customers;

    assert.deepEqual(faults, []);
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "axe finds no serious fault on empty pages, in the palette and in the list of keys",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/workers", { reducedMotion: "reduce" });
    const faults: string[] = [];
    for (const path of PATHS) {
      await go(page, path);
      faults.push(...(await faultsOf(page)).map((fault) => `${path} empty: ${fault}`));
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("option").first().waitFor();
    faults.push(...(await faultsOf(page)).map((fault) => `palette: ${fault}`));
    await page.keyboard.press("Escape");
    await page.getByRole("combobox").waitFor({ state: "detached" });
    // The palette gives the focus back a moment after it is gone; until then keys are its own.
    await until(async () => {
      if (await page.getByRole("dialog").isVisible()) return true;
      await page.keyboard.press("?");
      await page.getByRole("dialog").waitFor({ timeout: 1_000 });
      return true;
    });
    faults.push(...(await faultsOf(page)).map((fault) => `keys: ${fault}`));

    assert.deepEqual(faults, []);
  },
});

/** Goes to a place of the console and waits until nothing of it is about to come. */
async function go(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new Event("popstate"))`,
  );
  await page.locator(".foot .dot.ok").waitFor({ state: "attached" });
  await page.locator(".skeleton").first().waitFor({ state: "detached" });
}

/** Serious and critical faults, each with its rule and the elements. */
async function faultsOf(page: Page, rules: readonly string[] | null = null): Promise<string[]> {
  const options = { resultTypes: ["violations"], ...rules && { runOnly: rules } };
  await page.evaluate(`globalThis.axe ?? (() => {${axe.source}})()`);
  const results = await page.evaluate<axe.AxeResults>(
    `axe.run(document, ${JSON.stringify(options)})`,
  );
  return results.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => {
      const few = nodes.slice(0, 3).map(({ html, failureSummary }) =>
        `${html.slice(0, 160)} (${failureSummary?.split("\n")[1]?.trim()})`
      );
      return `${id}: ${few.join(" | ")}`;
    });
}
