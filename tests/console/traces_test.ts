/**
 * The Traces page in a real browser: real calls, and as many spans as there can be.
 *
 * @module
 */
import assert from "node:assert/strict";
import { consolePage } from "../../workers/console/server.ts";
import type { Json } from "../../mod.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { order, startOrderShop } from "./order_shop.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { ScriptedConsole } from "./scripted_console.ts";

Deno.test(
  "the Traces page lists calls as they end, and leads to their waterfall",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    const page = await world.openPage("/traces");
    await page.getByText("No traces yet").waitFor();

    assert.equal(await order(world, "tea", 2), 201);

    const row = page.getByRole("row", { name: /orders/ }).first();
    await row.click();
    const spans = page.getByRole("treegrid", { name: "Spans" });
    for (const name of ["web::order", "shop::order", "stock::take", "state::set"]) {
      await spans.getByRole("row", { name: new RegExp(name) }).waitFor();
    }
    assert.match(new URL(page.url()).pathname, /^\/traces\/[0-9a-f]{32}$/);
    const depths = await spans.getByRole("row").evaluateAll((rows) =>
      rows.map((row) =>
        `${row.getAttribute("aria-level")} ${row.querySelector(".cut")?.textContent}`
      )
    );
    const under = depths.map((text) => text.split(" ").slice(1).join(" "));
    assert.ok(under.indexOf("shop::order") < under.indexOf("stock::take"), depths.join("; "));
    assert.deepEqual(world.problems, []);
  },
);

Deno.test(
  "a span's details say why it failed, what was sent, and show no secret",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    await order(world, "tea", 2);
    const status = await order(world, "cake", 60);
    assert.notEqual(status, 201);
    const page = await world.openPage("/traces?status=error");

    await page.getByRole("row", { name: /out_of_stock/ }).first().click();
    await page.getByRole("button", { name: "Next failure" }).click();
    await page.getByRole("treegrid").getByRole("row", { name: /stock::take/ }).click();

    const detail = page.getByRole("complementary", { name: "Span stock::take" });
    await detail.getByText("Not enough cake").first().waitFor();
    await detail.getByText("Why it went so").waitFor();
    await detail.getByText(/shop called stock::take/).waitFor();
    await detail.getByRole("group", { name: "Request" }).getByText("cake").waitFor();
    assert.match(page.url(), /span=[0-9a-f]{16}/);
    // The same address shows the same in every browser.
    await page.reload();
    await page.getByRole("complementary", { name: "Span stock::take" }).waitFor();
    await page.keyboard.press("Escape");
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("the path of a call shows what was said, redacted by rule", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  await startOrderShop(world);
  await order(world, "tea", 2);
  const page = await world.openPage("/traces");
  await page.getByRole("row", { name: /orders/ }).first().click();
  await page.getByRole("tab", { name: "Path" }).click();

  const answer = page.getByRole("button", { name: "shop answers web: done" });
  await answer.click();

  const said = page.getByRole("complementary", { name: /shop answers web/ });
  await said.getByText("taken").first().waitFor();
  const text = await said.innerText();
  assert.ok(!text.includes("4711"), text);
  assert.match(text, /card_token/);
  for (const tab of ["Flame graph", "Map", "Logs"]) {
    await page.getByRole("tab", { name: tab }).click();
    await page.getByRole("tabpanel", { name: tab }).waitFor();
  }
  await page.getByText("Order received").waitFor();
  assert.ok(!(await page.content()).includes("hunter2"));
  assert.deepEqual(world.problems, []);
});

Deno.test(
  "the service map draws who calls whom, and leads to the traces of one",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    for (let i = 0; i < 3; i++) await order(world, "tea", 1);
    const page = await world.openPage("/traces?view=map");

    await page.getByRole("button", { name: /^worker shop: 3 calls/ }).click();

    const detail = page.getByRole("complementary", { name: "worker shop" });
    await detail.filter({ hasText: /Called by[\s\S]*web[\s\S]*Calls[\s\S]*stock/ }).waitFor();
    await page.getByRole("group", { name: "Detail" }).getByRole("button", { name: "Functions" })
      .click();
    await page.getByRole("button", { name: /^function stock::take: 3 calls/ }).click();
    await page.getByRole("link", { name: "Traces of it" }).click();
    await page.getByRole("row", { name: /orders/ }).first().waitFor();
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("names and payloads that look like markup stay text", browserTest, async () => {
  const evil = '<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>';
  await using scripted = await scriptedTrace([
    rawSpan(0, { name: evil, service_name: evil, request: JSON.stringify({ [evil]: evil }) }),
  ]);
  await using browser = await HeadlessBrowser.start();
  await using open = await browser.open(`${scripted.url}/traces/${TRACE}?span=${spanId(0)}`);
  const { page } = open;

  await page.getByRole("group", { name: "Request" }).getByText("onerror").first().waitFor();
  for (const view of ["path", "flame"]) {
    await page.goto(`${scripted.url}/traces/${TRACE}?view=${view}`);
    await page.getByRole("tabpanel").waitFor();
  }

  assert.equal(await page.evaluate("globalThis.hit"), undefined);
  assert.equal(await page.locator("main img, main script").count(), 0);
});

Deno.test(
  "a trace of 100,000 spans has few of them in the document, and all of them in reach",
  browserTest,
  async () => {
    const spans = Array.from({ length: 100_000 }, (_, i) => rawSpan(i));
    await using scripted = await scriptedTrace(spans);
    await using browser = await HeadlessBrowser.start();
    await using open = await browser.open(`${scripted.url}/traces/${TRACE}`);
    const { page } = open;

    const grid = page.getByRole("treegrid", { name: "Spans" });
    await grid.getByRole("row").first().waitFor();
    await page.getByText("100k spans").waitFor();
    await grid.focus();
    await page.keyboard.press("End");
    await grid.getByRole("row", { name: /f::99999/ }).waitFor();

    assert.ok(await grid.getByRole("row").count() < 120);
    await page.getByRole("searchbox", { name: "Find a span" }).fill("f::54321");
    await page.keyboard.press("Enter");
    await grid.getByRole("row", { name: /f::54321/, selected: true }).waitFor();
    await page.getByRole("tab", { name: "Flame graph" }).click();
    await page.locator("canvas.flame-canvas").waitFor();
    assert.deepEqual(open.problems, []);
  },
);

Deno.test("a trace that the engine has forgotten says so", browserTest, async () => {
  await using scripted = await scriptedTrace([]);
  await using browser = await HeadlessBrowser.start();
  await using open = await browser.open(`${scripted.url}/traces/${TRACE}`);
  const { page } = open;

  await page.getByText("The engine does not know this trace").waitFor();
  await page.getByRole("link", { name: "Show the newest traces" }).click();
  assert.equal(new URL(page.url()).pathname, "/traces");
});

const TRACE = "0af7651916cd43dd8448eb211c80319c";

function spanId(index: number): string {
  return index.toString(16).padStart(16, "0");
}

/** A call a millisecond after the one before, below the first one of its hundred. */
function rawSpan(index: number, fields: Record<string, Json> = {}): Json {
  const { request = '{"a":1}', ...rest } = fields;
  const start = 1_700_000_000_000 + index;
  const parent = index === 0 ? null : index % 100 === 0 ? 0 : index - index % 100;
  return {
    trace_id: TRACE,
    span_id: spanId(index),
    parent_span_id: parent === null ? null : spanId(parent),
    name: `f::${index}`,
    service_name: `worker-${index % 7}`,
    start_time_unix_nano: `${start}000000`,
    end_time_unix_nano: `${start + (index % 100 === 0 ? 100 : 1)}500000`,
    status: index % 997 === 0 ? "error" : "ok",
    attributes: [["engine.kind", "call"], ["engine.caller", "web"], ["engine.request", request]],
    ...rest,
  };
}

async function scriptedTrace(spans: readonly Json[]): Promise<ScriptedConsole> {
  const scripted = await ScriptedConsole.start(consolePage);
  scripted.functions.set("engine::traces::list", (payload) => {
    const { offset = 0, limit = 100 } = payload as { offset?: number; limit?: number };
    return { spans: spans.slice(offset, offset + limit), total: spans.length, offset, limit };
  });
  scripted.functions.set("engine::traces::summaries", () => ({ traces: [], total: 0 }));
  scripted.functions.set("engine::traces::explain", () => ({ found: true, lines: ["It ran"] }));
  scripted.functions.set("engine::logs::list", () => ({ logs: [], total: 0 }));
  scripted.functions.set("engine::workers::list", () => ({ workers: [] }));
  return scripted;
}
