/**
 * The Flow page in a real browser: real workers with traffic, and more of them than fit.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Json } from "../../mod.ts";
import { consolePage } from "../../workers/console/server.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { order, startOrderShop } from "./order_shop.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { ScriptedConsole } from "./scripted_console.ts";

Deno.test(
  "the Flow page draws triggers, workers and who calls whom, with live rates",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    const page = await world.openPage("/flow");
    const card = (name: RegExp) =>
      page.locator(".graph-node").filter({ has: page.locator("b", { hasText: name }) });
    for (const name of [/^http$/, /^web$/, /^shop$/, /^stock$/]) await card(name).waitFor();
    await card(/^http$/).filter({ hasText: "POST /orders" }).waitFor();
    assert.equal(await page.locator(".graph-moving").count(), 0);

    const over = new AbortController();
    const customers = (async () => {
      while (!over.signal.aborted) await order(world, "tea", 1);
    })();

    try {
      await page.locator(".graph-moving").first().waitFor({ state: "attached" });
      await card(/^engine-state$/).waitFor();
      await page.locator(".flow-rate.busy").first().waitFor();
    } finally {
      over.abort();
      await customers;
    }
    await card(/^shop$/).click();
    const detail = page.getByRole("complementary", { name: "worker shop" });
    await detail.filter({ hasText: /Called from\s*web[\s\S]*Calls\s*stock/ }).waitFor();
    await page.waitForURL(/card=worker/);
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("on a phone all cards are in view from side to side", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  await startOrderShop(world);
  await order(world, "tea", 1);
  const page = await world.openPage("/flow", { viewport: { width: 390, height: 844 } });
  for (const name of ["trigger http", "worker web", "worker shop", "worker stock"]) {
    await page.getByRole("button", { name: new RegExp(`^${name}`) }).waitFor();
  }

  const boxes = await page.locator(".graph-node").evaluateAll((nodes) =>
    nodes.map((node) => {
      const { left, right } = node.getBoundingClientRect();
      return { left, right };
    })
  );

  for (const { left, right } of boxes) assert.ok(left >= 0 && right <= 390, `${left} to ${right}`);
  assert.deepEqual(world.problems, []);
});

Deno.test(
  "a worker that comes or goes comes into the picture or leaves it",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/flow");
    await page.getByText("Nothing flows yet").waitFor();

    const worker = await world.connect("shop");
    worker.registerFunction("shop::buy", () => null);

    await page.getByRole("button", { name: /^worker shop/ }).waitFor();
    await worker.shutdown();
    await page.getByText("Nothing flows yet").waitFor();
    assert.deepEqual(world.problems, []);
  },
);

Deno.test(
  "of 1,000 workers with 10,000 functions the Flow page draws some and finds the others",
  browserTest,
  async () => {
    await using scripted = await ScriptedConsole.start(consolePage);
    const workers = Array.from({ length: 1_000 }, (_, i) => ({ id: `${i}`, name: `worker-${i}` }));
    const functions = Array.from({ length: 10_000 }, (_, i) => ({
      function_id: `group${i % 1_000}::f${i}`,
      namespace: "default",
      worker_name: `worker-${i % 1_000}`,
    }));
    const answers: Record<string, Json> = {
      "engine::workers::list": { workers },
      "engine::functions::list": { functions },
      "engine::registered-triggers::list": { registered_triggers: [] },
      "engine::triggers::list": { triggers: [] },
      "engine::traces::map": { nodes: [], edges: [], window_ms: 0, sampled: false },
    };
    for (const [id, answer] of Object.entries(answers)) scripted.functions.set(id, () => answer);
    await using browser = await HeadlessBrowser.start();
    await using open = await browser.open(`${scripted.url}/flow`);
    const { page } = open;

    await page.getByText("60 of 1000 are drawn").waitFor();
    assert.equal(await page.locator(".graph-node").count(), 60);
    await page.getByRole("searchbox", { name: "Find in the flow" }).fill("f7777");

    await page.getByRole("button", { name: /^worker worker-777/ }).waitFor();
    assert.equal(await page.locator(".graph-node").count(), 1);
  },
);
