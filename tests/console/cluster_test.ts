/**
 * The page of a cluster: two engines with links, one that keeps the state, and an engine that is
 * alone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Nats, startNats, withoutNats } from "../cluster/servers.ts";
import { startEngine } from "../cluster/cluster_process.ts";
import { browserTest, ConsoleWorld, type WorldOptions } from "./console_browser.ts";

/** Settings of the engine with the console. */
function engineA(nats: Nats, more: string): WorldOptions {
  const settings = "  cluster:\n    name: test\n    engine_name: a\n" +
    `    nats: ${JSON.stringify(nats.urls)}\n${more}`;
  return { settings };
}

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
    await using world = await ConsoleWorld.start(engineA(nats, "    log: none\n"));
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

Deno.test({
  name: "an engine that does not keep the state says which one does, or that none does",
  ...browserTest,
  ignore: browserTest.ignore || withoutNats,
  async fn() {
    await using nats = await startNats();
    const one = "    insecure: true\n    copies: 1\n    require_sync: false\n";
    const options = engineA(nats, `    log: jetstream\n    keeper: false\n${one}`);
    await using world = await ConsoleWorld.start(options);
    const page = await world.openPage("/overview");
    const health = page.getByRole("region", { name: "Health" });

    await health.getByRole("link", { name: "No engine keeps the state" }).click();
    await page.getByText("None: state, queues and cron wait for one").waitFor();
    await page.goto(`${world.consoleUrl}/state`);
    await page.getByText("no engine keeps it now").waitFor();

    await using b = await startEngine("b", { nats: nats.urls, log: "jetstream", settings: one });
    await page.getByText("No state yet").waitFor();
    await page.goto(`${world.consoleUrl}/cluster`);
    const row = page.locator("[role=grid] .virtual-all [role=row]").filter({ hasText: "keeper" });
    await row.getByText("b", { exact: true }).waitFor();
    await page.goto(`${world.consoleUrl}/overview`);
    await health.getByRole("heading", { name: "All is well" }).waitFor();
    await health.getByText("1 more runs at the engine that keeps the state").waitFor();
    const up = await page.getByRole("link", { name: /Workers up/ }).textContent();
    const [, count, all] = /(\d+) of (\d+)/.exec(up!)!;
    assert.equal(count, all);
    assert.deepEqual(world.problems, []);
    assert.ok(b);
  },
});
