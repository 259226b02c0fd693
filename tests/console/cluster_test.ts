/**
 * The page of a cluster: two engines with links, and an engine that is alone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { startNats, withoutNats } from "../cluster/servers.ts";
import { startEngine } from "../cluster/cluster_process.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

Deno.test({
  name: "an engine that is alone says so",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/cluster");

    await page.getByText("This engine is alone").waitFor();
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "engines and their links are shown, functions and workers with their engine",
  ...browserTest,
  ignore: browserTest.ignore || withoutNats,
  async fn() {
    await using nats = await startNats();
    const lines = [
      "  cluster:",
      "    name: test",
      `    nats: ${JSON.stringify(nats.urls)}`,
      "    engine_name: a",
      "    log: none",
    ];
    await using world = await ConsoleWorld.start({ settings: `${lines.join("\n")}\n` });
    await using b = await startEngine("b", { nats: nats.urls });
    const worker = b.connect("shop");
    worker.registerFunction("shop::price", () => 7);
    const page = await world.openPage("/cluster");

    const row = page.locator("[role=grid] .virtual-all [role=row]").filter({ hasText: "linked" });
    await row.getByText("b", { exact: true }).waitFor();
    await page.getByText("Each engine keeps its own state").waitFor();
    await page.goto(`${world.consoleUrl}/functions?q=shop`);
    await page.getByText("at b", { exact: true }).waitFor();
    await page.goto(`${world.consoleUrl}/workers?q=shop`);
    await page.getByText("at b", { exact: true }).waitFor();
    assert.deepEqual(world.problems, []);
    await worker.shutdown();
  },
});
