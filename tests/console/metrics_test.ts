/**
 * The Metrics page in a real browser: charts that move, totals, and the return of the engine.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Worker } from "../../mod.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

/** Calls a function again and again until it is disposed of. */
function keepCalling(worker: Worker): Disposable {
  const timer = setInterval(() => {
    worker.trigger({ function_id: "shop::good", payload: {} }).catch(() => {});
    worker.trigger({ function_id: "shop::bad", payload: {} }).catch(() => {});
  }, 20);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function openShop(world: ConsoleWorld): Promise<Worker> {
  const shop = await world.connect("shop");
  shop.registerFunction("shop::good", () => 1);
  shop.registerFunction("shop::bad", () => {
    throw new Error("No luck");
  });
  await world.call("engine::functions::list");
  return shop;
}

const stat = (page: Page, label: string) =>
  page.locator(".stat", { has: page.getByText(label, { exact: true }) }).locator(".stat-value");

/** Waits until a number of the page is a rate above nothing. */
async function isBusy(page: Page, label: string): Promise<void> {
  await stat(page, label).getByText(/^[1-9]|^0\.\d*[1-9]/).waitFor();
}

Deno.test({
  name: "the Metrics page measures the engine, its functions and its workers, live",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const shop = await openShop(world);
    using _calls = keepCalling(shop);
    const page = await world.openPage("/metrics");

    await t.step("calls and errors show up, with a chart each", async () => {
      await isBusy(page, "Calls, last minute");
      await isBusy(page, "Errors, last minute");
      const charts = page.getByRole("img", { name: /Calls per second|Latency|Memory/ });
      await charts.first().waitFor();
      await page.locator(".chart-line").nth(7).waitFor();
      assert.equal(await page.locator(".chart svg").count(), 8);
    });

    await t.step("the pointer shows one time in all charts", async () => {
      const times = page.locator(".chart-time", { hasText: /^\d\d:\d\d:\d\d$/ });
      await page.locator(".chart-box").first().hover();
      await times.nth(7).waitFor();

      await page.getByRole("heading", { name: "Metrics" }).hover();
      await times.first().waitFor({ state: "detached" });
    });

    await t.step("no label of an axis is cut", async () => {
      const cut = await page.locator(".chart-box").evaluateAll((boxes) =>
        boxes.flatMap((box) => {
          const { left, right, bottom } = box.getBoundingClientRect();
          return [...box.querySelectorAll("text")].filter((text) => {
            const place = text.getBoundingClientRect();
            return place.left < left || place.right > right || place.bottom > bottom;
          }).map((text) => text.textContent);
        })
      );

      assert.deepEqual(cut, []);
    });

    await t.step("functions have charts, and totals that lead to them", async () => {
      await page.getByRole("tab", { name: "Functions" }).click();
      await page.locator(".legend", { hasText: "shop::good" }).first().waitFor();
      const bad = page.locator(".table .row", { hasText: "shop::bad" });
      await bad.waitFor();
      assert.equal(await page.locator(".table .row", { hasText: "engine::" }).count(), 0);

      await bad.click();

      await page.getByRole("heading", { name: "shop::bad" }).waitFor();
      await page.getByRole("tab", { name: "Metrics" }).click();
      await isBusy(page, "Errors");
    });

    await t.step("workers are measured", async () => {
      await page.goto(`${world.consoleUrl}/metrics?tab=workers`);

      await page.locator(".legend", { hasText: "shop" }).first().waitFor();
    });

    await t.step("when the engine comes back, the charts go on", async () => {
      await page.goto(`${world.consoleUrl}/metrics`);
      await isBusy(page, "Calls, last minute");
      await world.stopEngine();
      await world.startEngine();
      shop.registerFunction("shop::fresh", () => 1);
      const timer = setInterval(() => {
        shop.trigger({ function_id: "shop::fresh", payload: {} }).catch(() => {});
      }, 20);

      try {
        await page.getByRole("tab", { name: "Functions" }).click();
        await page.locator(".legend", { hasText: "shop::fresh" }).first().waitFor();
      } finally {
        clearInterval(timer);
      }
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "an alert that fires is marked in the side bar and listed with its value",
  ...browserTest,
  async fn() {
    const observability = `      metrics:
        alerts:
          - { name: refusals, log: { text: refused }, threshold: 1 }
          - { name: slow, metric: p99_ms, threshold: 60000 }
`;
    await using world = await ConsoleWorld.start({ observability });
    const page = await world.openPage("/metrics?tab=alerts");
    await page.locator(".table .row", { hasText: "p99_ms > 60000" }).getByText("ok").waitFor();
    const mark = page.locator(".side .groups .place", { hasText: "Metrics" }).locator(".badge");
    assert.equal(await mark.count(), 0);

    for (let i = 0; i < 2; i++) {
      await world.call("engine::log::warn", { message: `card refused, ${i}` });
    }

    await mark.getByText("1", { exact: true }).waitFor();
    const row = page.locator(".table .row", { hasText: "refusals" });
    await row.getByText("firing").waitFor();
    await row.getByText("records in 60 s text=refused > 1").waitFor();
    await page.setViewportSize({ width: 390, height: 800 });
    const panel = await page.locator(".metrics-table").boundingBox();
    const value = await row.locator(".num").first().boundingBox();
    assert.ok(value!.x + value!.width <= panel!.x + panel!.width, "a phone shows the value");
    assert.deepEqual(world.problems, []);
  },
});
