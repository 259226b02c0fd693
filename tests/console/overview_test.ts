/**
 * The Overview page in a real browser: what it says of a system that is well, and of one that is not.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { EngineError } from "../../mod.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

const BROKEN = {
  workers: `  - name: broken
    path: ./workers/broken
    isolation: process
  - name: engine-queue
    config:
      queues:
        mails: { max_retries: 1, backoff_ms: 10 }
  - name: engine-configuration
`,
  files: {
    "workers/broken/engine.worker.yaml":
      "name: broken\nruntime:\n  kind: typescript\n  package_manager: deno\n  entry: worker.ts\n",
    "workers/broken/worker.ts": "Deno.exit(3);\n",
  },
};

const panel = (page: Page, title: string) => page.getByRole("region", { name: title });

Deno.test(
  "the console opens on the Overview page, which says that all is well",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    const shop = await world.connect("shop");
    shop.registerFunction("shop::list", () => []);
    // Calls of a function that no worker has say nothing of those that there are.
    await Promise.allSettled(
      Array.from({ length: 50 }, () => shop.trigger({ function_id: "shop::absent", payload: {} })),
    );
    const page = await world.openPage("/");

    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    assert.match(page.url(), /\/overview$/);
    const health = page.getByRole("region", { name: "Health" });
    await health.getByRole("heading", { name: "All is well" }).waitFor();
    await health.getByText(/workers are up and no alert fires/).waitFor();
    await panel(page, "Workers").getByRole("link", { name: "shop" }).waitFor();
    await panel(page, "Last changes").getByText("connected").first().waitFor();
    await panel(page, "Queues").getByText("engine-queue does not run").waitFor();

    await page.getByRole("link", { name: /Workers up/ }).click();
    await page.getByRole("heading", { name: "Workers", level: 1 }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("h");
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("the Overview page names what is broken, and leads there", browserTest, async () => {
  await using world = await ConsoleWorld.start(BROKEN);
  const shop = await world.connect("shop");
  shop.registerFunction("shop::mail", () => {
    throw new EngineError("no_address", "There is no address");
  });
  shop.registerFunction("shop::slow", async () => {
    await new Promise((resolve) => setTimeout(resolve, 30));
  });
  shop.registerTrigger({ type: "webhook", function_id: "shop::mail", config: {} });
  const configuration = { id: "shop", name: "Shop", schema: true, initial_value: { port: 1 } };
  await shop.trigger({ function_id: "configuration::register", payload: configuration });
  await shop.enqueue({ function_id: "shop::mail", payload: {}, queue: "mails" });
  const timer = setInterval(() => {
    for (const name of ["mail", "slow"]) {
      shop.trigger({ function_id: `shop::${name}`, payload: {} }).catch(() => {});
    }
  }, 50);
  try {
    const page = await world.openPage("/overview");
    const health = page.getByRole("region", { name: "Health" });

    for (
      const text of [
        "broken has failed",
        "shop::mail fails in",
        "mails has 1 dead letter",
        "A webhook trigger of shop::mail does not fire",
      ]
    ) {
      await health.getByRole("link", { name: text }).waitFor();
    }
    const slowest = panel(page, "Slowest functions").getByRole("row").nth(1);
    await slowest.getByRole("link", { name: "shop::slow" }).waitFor();
    await panel(page, "Queues").getByRole("row", { name: /mails/ }).waitFor();
    await panel(page, "Last changes").getByText("failed").waitFor();
    await panel(page, "Last changes").getByText("was registered").waitFor();

    await health.getByRole("link", { name: "broken has failed" }).click();
    await page.getByRole("complementary", { name: "Worker broken" }).waitFor();
    assert.deepEqual(world.problems, []);
  } finally {
    clearInterval(timer);
  }
});

Deno.test("a filter for trouble that finds none says what is good", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  await world.connect("shop");
  const page = await world.openPage("/workers?show=trouble");

  await page.getByText("All workers healthy").waitFor();
  await page.getByRole("button", { name: "Show all workers" }).click();
  await page.getByRole("link", { name: "shop" }).waitFor();

  await page.goto(`${world.consoleUrl}/traces?status=error`);
  await page.getByText("No call failed").waitFor();
  await page.goto(`${world.consoleUrl}/logs?level=error&worker=shop`);
  await page.getByText("No errors were logged").waitFor();
});
