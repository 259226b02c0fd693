/**
 * What pages ask by themselves, in a real browser: it is not counted, and those of built-in workers
 * that do not run call none of their functions, which would count as errors of the system.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

/** Functions that pages send calls and queries of, from now on. */
function functionsAsked(page: Page): Set<string> {
  const asked = new Set<string>();
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      const { type, function_id, query } = JSON.parse(String(payload));
      if (type === "call" || type === "watch_query") asked.add(function_id ?? query.function_id);
    }));
  return asked;
}

Deno.test("pages of workers that do not run say how to add them", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  const page = await world.blankPage();
  const asked = functionsAsked(page);

  for (const name of ["queue", "stream", "configuration"]) {
    const path = name === "configuration" ? name : `${name}s`;
    await page.goto(world.consoleUrl + await world.operatorPath(`/${path}`));
    await page.getByText(`engine-${name} does not run`).waitFor();
    await page.getByText(`engine worker add engine-${name}`).waitFor();
  }
  await page.goto(`${world.consoleUrl}/overview`);
  await page.getByText("engine-queue does not run").waitFor();
  await page.keyboard.press("Control+k"); // The palette searches what pages list.
  await page.getByRole("option", { name: "engine-http built in" }).waitFor();

  const absent = [...asked].filter((id) => /^(engine::queue|engine::stream|stream|conf)/.test(id));
  assert.deepEqual(absent, []);
  assert.deepEqual(world.problems, []);
});

Deno.test("a page continues when its worker starts to run", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  const page = await world.openPage("/configuration");
  await page.getByText("engine-configuration does not run").waitFor();

  const provider = await world.connect("provider");
  provider.registerFunction("configuration::list", () => ({ configurations: [] }));

  await page.getByText("No configuration yet").waitFor();
  await provider.shutdown();
  await page.getByText("engine-configuration does not run").waitFor();
});

Deno.test(
  "what pages ask by themselves is not counted, what a person calls is",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    const shop = await world.connect("shop");
    const value = { scope: "cart", key: "u1", value: 1 };
    await shop.trigger({ function_id: "state::set", payload: value });
    const page = await world.openPage("/state/cart");
    await page.getByRole("grid").getByText("u1", { exact: true }).waitFor();

    await page.goto(`${world.consoleUrl}/functions/state%3A%3Alist_groups`);
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByText('"cart"').waitFor();

    const metrics = await (await fetch(`${world.url.replace(/^ws/, "http")}/metrics`)).text();
    const counted = (id: string) =>
      new RegExp(`^engine_calls_total\\{function="${id}"[^}]*\\} (\\d+)`, "m").exec(metrics)?.[1];
    assert.equal(counted("state::set"), "1");
    assert.equal(counted("state::list_groups"), "1");
    assert.equal(counted("state::list_entries") ?? "0", "0");
  },
);
