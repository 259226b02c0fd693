/**
 * The Logs page in a real browser: what real workers say, and more than a person can read.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type Json, Logger } from "../../mod.ts";
import { consolePage } from "../../workers/console/server.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { order, startOrderShop } from "./order_shop.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { ScriptedConsole } from "./scripted_console.ts";

Deno.test(
  "the Logs page shows what is said as it is said, and whose call it was",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    const page = await world.openPage("/logs");
    await page.getByRole("heading", { name: "Logs" }).waitFor();

    await order(world, "tea", 2);

    const line = page.getByRole("row", { name: /Order received/ });
    await line.waitFor();
    await line.click();
    const detail = page.getByRole("complementary", { name: "Log line of shop" });
    await detail.getByText("Logger of the SDK").waitFor();
    await detail.getByRole("link", { name: "shop::order" }).waitFor();
    assert.ok(!(await page.content()).includes("hunter2"), "a secret is redacted");
    await detail.getByRole("button", { name: "Close" }).click();
    await line.getByRole("link", { name: /^Trace of/ }).click();
    await page.getByRole("treegrid").getByRole("row", { name: /shop::order/ }).waitFor();
    assert.deepEqual(world.problems, []);
  },
);

Deno.test(
  "filters of the Logs page hold for old and new lines, and stand in the address",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    const log = new Logger(await world.connect("shop"));
    log.info("tea came");
    log.warn("tea is low");
    const other = new Logger(await world.connect("mail"));
    const page = await world.openPage("/logs?level=warn&worker=shop");
    await page.getByRole("row", { name: /tea is low/ }).waitFor();

    log.debug("tea again");
    other.error("mail is down");
    log.error("tea is out");

    await page.getByRole("row", { name: /tea is out/ }).waitFor();
    const texts = await page.locator(".log-text").allInnerTexts();
    assert.deepEqual(texts.map((text) => text.trim()), ["tea is low", "tea is out"]);

    await page.getByRole("searchbox", { name: "Find in the logs" }).fill("OUT");
    await page.getByRole("row", { name: /tea is low/ }).waitFor({ state: "detached" });
    await page.locator("mark", { hasText: "out" }).waitFor();
    await page.waitForURL(/text=OUT/);
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("a filter that nothing fits says so and can be taken away", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  new Logger(await world.connect("shop")).info("hello there");
  const page = await world.openPage("/logs?text=farther");

  await page.getByText("No line fits").waitFor();
  await page.getByRole("button", { name: "Show all lines" }).click();

  await page.getByRole("row", { name: /hello there/ }).waitFor();
  assert.deepEqual(world.problems, []);
});

Deno.test("the Logs page goes on after the engine was restarted", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  const worker = await world.connect("shop");
  const log = new Logger(worker);
  log.info("before");
  const page = await world.openPage("/logs");
  await page.getByRole("row", { name: /before/ }).waitFor();

  await world.stopEngine();
  await world.startEngine();
  await worker.trigger({ function_id: "engine::workers::list", payload: {} });
  const saying = setInterval(() => log.info("after"), 500);

  try {
    await page.getByRole("row", { name: /after/ }).first().waitFor();
    // The new engine counts lines anew: they must not stand among those of the old one. It says
    // things of its own, too, but not for long.
    await page.locator(".log-text").last().filter({ hasText: "after" }).waitFor();
  } finally {
    clearInterval(saying);
  }
});

Deno.test(
  "a flood of lines keeps the document small, counts what is left out, and can be held",
  browserTest,
  async () => {
    await using scripted = await ScriptedConsole.start(consolePage);
    scripted.functions.set("engine::logs::list", () => ({ logs: [], total: 0 }));
    scripted.functions.set("engine::workers::list", () => ({ workers: [] }));
    await using browser = await HeadlessBrowser.start();
    await using open = await browser.open(`${scripted.url}/logs`);
    const { page } = open;
    await page.getByText("Nothing was said yet").waitFor();

    let seq = 0;
    const flood = (batches: number) => {
      for (let i = 0; i < batches; i++) {
        const logs = Array.from({ length: 500 }, () => rawLine(++seq));
        scripted.fire("log", { logs, dropped: 7 });
      }
    };
    flood(100);

    await page.getByRole("row", { name: /line 50000 / }).waitFor();
    assert.ok(await page.getByRole("row").count() < 120);
    await page.getByText("20.0k lines").waitFor();
    await page.getByText(/30\.7k lines were left out/).waitFor();

    await page.getByRole("button", { name: "Pause" }).click();
    flood(1);
    await page.getByRole("button", { name: /new lines/ }).waitFor();
    assert.equal(await page.getByRole("row", { name: /line 50500 / }).count(), 0);
    await page.getByRole("button", { name: /new lines/ }).click();
    await page.getByRole("row", { name: /line 50500 / }).waitFor();
    assert.deepEqual(open.problems, []);
  },
);

Deno.test(
  "what a worker says is never markup, and its colours are no letters",
  browserTest,
  async () => {
    const evil = '<img src=x onerror="globalThis.hit=1">\u001b[31mred\u001b[0m';
    await using scripted = await ScriptedConsole.start(consolePage);
    const logs = [rawLine(1, { body: evil, attributes: { [evil]: evil, "engine.worker": evil } })];
    scripted.functions.set("engine::logs::list", () => ({ logs, total: 1 }));
    scripted.functions.set("engine::workers::list", () => ({ workers: [{ id: "1", name: evil }] }));
    await using browser = await HeadlessBrowser.start();
    await using open = await browser.open(`${scripted.url}/logs?text=img`);
    const { page } = open;

    await page.getByRole("row", { name: /onerror/ }).click();

    await page.getByRole("complementary").getByText("onerror").first().waitFor();
    assert.equal(await page.evaluate("globalThis.hit"), undefined);
    assert.equal(await page.locator("main img").count(), 0);
    assert.match(await page.locator(".log-text").innerText(), />red/);
  },
);

function rawLine(seq: number, fields: Record<string, Json> = {}): Json {
  return {
    seq,
    timestamp_unix_nano: `${1_700_000_000_000 + seq}000000`,
    severity_text: seq % 50 === 0 ? "ERROR" : "INFO",
    severity_number: seq % 50 === 0 ? 17 : 9,
    body: `line ${seq} of many`,
    attributes: { "engine.worker": "shop", "engine.source": "logger", at: seq },
    ...fields,
  };
}
