/**
 * Pictures of every page of the console, light and dark, wide and on a phone: `deno task shots`.
 *
 * They show a real engine with a small shop on it. `--out=` names the folder, `--only=` is a
 * pattern of pictures' names, `--warm=` the seconds of traffic before the first one.
 *
 * @module
 */
import type { Page } from "playwright-core";
import { parseArgs } from "node:util";
import { ConsoleWorld } from "./console_browser.ts";
import { letCustomersCome, openShop, SHOP_OPTIONS } from "./demo_shop.ts";

/** A picture: where, and what is done there before it is taken. */
interface Shot {
  readonly name: string;
  readonly path: string;
  readonly prepare?: (page: Page) => Promise<void>;
}

const SHOTS: readonly Shot[] = [
  { name: "overview", path: "/overview" },
  { name: "workers", path: "/workers" },
  { name: "worker", path: "/workers/mailer" },
  { name: "worker-logs", path: "/workers/mailer?tab=logs" },
  { name: "functions", path: "/functions" },
  { name: "function", path: "/functions/default/orders%3A%3Aplace" },
  { name: "triggers", path: "/triggers" },
  { name: "state", path: "/state/orders" },
  { name: "queues", path: "/queues" },
  { name: "queue", path: "/queues/invoices" },
  { name: "dead-letters", path: "/queues/invoices?tab=dead", prepare: openLetter },
  { name: "cron", path: "/triggers", prepare: openCron },
  { name: "streams", path: "/streams" },
  { name: "stream", path: "/streams/orders/today" },
  { name: "traces", path: "/traces" },
  { name: "trace", path: "/traces?status=ok", prepare: openTrace },
  { name: "failed", path: "/traces?status=error", prepare: openFailed },
  { name: "map", path: "/traces?view=map" },
  { name: "logs", path: "/logs" },
  { name: "metrics", path: "/metrics" },
  { name: "metrics-functions", path: "/metrics?tab=functions" },
  { name: "cluster", path: "/cluster" },
  { name: "flow", path: "/flow" },
  { name: "configuration", path: "/configuration/orders", prepare: openEditor },
  { name: "settings", path: "/settings" },
  { name: "palette", path: "/workers", prepare: openPalette },
];

const SIGHTS = [
  { name: "light", colorScheme: "light", viewport: { width: 1440, height: 900 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1440, height: 900 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 844 } },
  { name: "phone-dark", colorScheme: "dark", viewport: { width: 390, height: 844 } },
] as const;

async function takeAll(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: new URL("../../docs/console", import.meta.url).pathname },
      only: { type: "string", default: "" },
      warm: { type: "string", default: "20" },
    },
  });
  await Deno.mkdir(values.out, { recursive: true });
  await using world = await ConsoleWorld.start(SHOP_OPTIONS);
  const worker = await openShop(world);
  const over = new AbortController();
  const customers = letCustomersCome(worker, world, over.signal);
  await new Promise((resolve) => setTimeout(resolve, Number(values.warm) * 1_000));
  for (const sight of SIGHTS) {
    for (const shot of SHOTS) {
      const name = `${shot.name}-${sight.name}`;
      if (new RegExp(values.only).test(name)) {
        await take(world, shot, sight, `${values.out}/${name}.png`);
      }
    }
  }
  over.abort();
  await customers;
  for (const problem of new Set(world.problems)) console.error(problem);
}

async function take(
  world: ConsoleWorld,
  shot: Shot,
  sight: typeof SIGHTS[number],
  file: string,
): Promise<void> {
  const page = await world.openPage(shot.path, { ...sight, reducedMotion: "reduce" });
  await page.waitForTimeout(2_500);
  await shot.prepare?.(page);
  await page.screenshot({ path: file });
  await page.context().close();
  console.log(file);
}

/** Opens a trace of several calls that has ended. */
async function openTrace(page: Page): Promise<void> {
  await page.getByRole("searchbox").first().fill("orders::place");
  await page.waitForTimeout(1_000);
  const rows = page.locator("[role=grid] .virtual-all [role=row]").filter({
    hasNotText: "running",
  });
  await rows.nth(3).click();
  await page.waitForTimeout(1_000);
}

/** Opens a trace that failed by an error with a stack, which leads to its span. */
async function openFailed(page: Page): Promise<void> {
  await page.locator("[role=grid] .virtual-all [role=row]")
    .filter({ hasText: "orders::audit" }).first().click();
  await page.waitForTimeout(1_500);
}

/** Opens the oldest dead letter to edit it. */
async function openLetter(page: Page): Promise<void> {
  await page.getByRole("button", { name: /^Dead letter / }).first().click();
  await page.getByRole("button", { name: "Edit and retry" }).click();
  await page.waitForTimeout(500);
}

async function openCron(page: Page): Promise<void> {
  await page.getByRole("searchbox").first().fill("payments::report");
  await page.getByText("payments::report", { exact: true }).first().click();
  await page.waitForTimeout(2_500);
}

async function openEditor(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.waitForTimeout(500);
}

async function openPalette(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("orde");
  await page.waitForTimeout(500);
}

await takeAll();
