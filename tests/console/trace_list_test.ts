/**
 * The list of traces in a real browser: times, columns, what it leads to, and its width on a phone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { consolePage } from "../../workers/console/server.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { order, startOrderShop } from "./order_shop.ts";
import { ScriptedConsole } from "./scripted_console.ts";

const NOON = Date.UTC(2026, 0, 5, 12);

Deno.test(
  "a trace has the status of its request and the worker that ran it",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    assert.equal(await order(world, "tea", 2), 201);
    const page = await world.openPage("/traces");

    const row = page.getByRole("row", { name: /POST \/orders/ }).first();
    await row.getByText("201", { exact: true }).waitFor();
    const cells = await row.getByRole("gridcell").allInnerTexts();

    assert.equal(cells[2], "web", "not engine-http, which received it");
    assert.deepEqual(world.problems, []);
  },
);

Deno.test("the list and engine why agree on how long a request took", browserTest, async () => {
  await using world = await ConsoleWorld.start();
  await startOrderShop(world);
  await order(world, "tea", 2);
  const page = await world.openPage("/traces");
  const row = page.getByRole("row", { name: /POST \/orders/ }).first();
  const listed = parseFloat(await row.locator(".duration-bar > .num").last().innerText());

  await row.click();
  const spans = page.getByRole("treegrid", { name: "Spans" });
  await spans.getByRole("row", { name: /web::order/ }).click();
  const said = await page.getByText(/It handled the HTTP request POST \/orders/).innerText();

  const [, status, ms] = /which got (\d+) after ([\d.]+) ms/.exec(said)!;
  assert.equal(status, "201");
  assert.ok(Math.abs(Number(ms) - listed) <= 1, `${said}; the list has ${listed} ms`);
});

Deno.test(
  "a trace that failed opens on the span where it did, with its stack",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    const shop = await world.connect("shop");
    shop.registerFunction("shop::stock", () => {
      throw new TypeError("The shelf is gone");
    });
    shop.registerFunction("shop::buy", () => shop.trigger({ function_id: "shop::stock" }));
    await world.call("shop::buy").catch(() => {});
    const page = await world.openPage("/traces?status=error");

    await page.getByRole("row", { name: /shop::buy/ }).first().click();

    const detail = page.getByRole("complementary", { name: "Span shop::stock" });
    await detail.getByText("The shelf is gone").first().waitFor();
    const stack = detail.getByLabel("Stack", { exact: true });
    await stack.locator(".own", { hasText: "trace_list_test.ts" }).waitFor();
    // What a person closes stays closed.
    await page.keyboard.press("Escape");
    await detail.waitFor({ state: "detached" });
    assert.deepEqual(world.problems, []);
  },
);

/** Two traces a minute apart, and a histogram of them with four bars. */
async function scriptedTraces(): Promise<ScriptedConsole> {
  const scripted = await ScriptedConsole.start(consolePage);
  const traces = [1, 2].map((n) => ({
    trace_id: `${n}`.repeat(32),
    name: `shop::${n}`,
    worker: "shop",
    ran_by: "shop",
    http_status: null,
    start_ms: NOON + (n - 1) * 60_000,
    duration_ms: 9_005,
    root_ms: 5,
    span_count: 3,
    error_count: n - 1,
    error_code: null,
    services: ["shop"],
    pending: false,
  }));
  scripted.functions.set("engine::traces::summaries", (payload) => {
    const { since_ms = 0, before_ms = Infinity } = payload as {
      since_ms?: number;
      before_ms?: number;
    };
    const found = traces.filter((trace) => {
      return trace.start_ms >= since_ms && trace.start_ms < before_ms;
    });
    return { traces: found.toReversed(), total: found.length };
  });
  scripted.functions.set("engine::traces::histogram", (payload) => {
    const { since_ms = NOON, before_ms = NOON + 120_000 } = payload as {
      since_ms?: number;
      before_ms?: number;
    };
    const bucket_ms = (before_ms - since_ms) / 4;
    return { since_ms, before_ms, bucket_ms, counts: [1, 0, 1, 0], errors: [0, 0, 1, 0], total: 2 };
  });
  scripted.functions.set("engine::workers::list", () => ({ workers: [] }));
  return scripted;
}

Deno.test("dragging over the histogram shows the traces of that time", browserTest, async () => {
  await using scripted = await scriptedTraces();
  await using browser = await HeadlessBrowser.start();
  await using open = await browser.open(`${scripted.url}/traces`);
  const { page } = open;
  await page.getByRole("row", { name: /shop::1/ }).waitFor();
  await page.getByText("1 failed", { exact: false }).first().waitFor();
  const bars = page.getByRole("slider", { name: /^Time/ });
  const { x, y, width } = (await bars.boundingBox())!;

  await page.mouse.move(x + width * 0.6, y + 20);
  await page.mouse.down();
  await page.mouse.move(x + width * 0.9, y + 20);
  await page.mouse.up();

  await page.getByRole("row", { name: /shop::1/ }).waitFor({ state: "detached" });
  await page.getByRole("row", { name: /shop::2/ }).waitFor();
  const { searchParams } = new URL(page.url());
  assert.equal(searchParams.get("from"), String(NOON + 60_000));
  assert.equal(searchParams.get("to"), String(NOON + 120_000));
  await page.getByRole("button", { name: "All times" }).click();
  await page.getByRole("row", { name: /shop::1/ }).waitFor();
  assert.deepEqual(open.problems, []);
});

Deno.test("the keyboard selects a range of the histogram too", browserTest, async () => {
  await using scripted = await scriptedTraces();
  await using browser = await HeadlessBrowser.start();
  await using open = await browser.open(`${scripted.url}/traces`);
  const { page } = open;
  await page.getByRole("row", { name: /shop::1/ }).waitFor();
  const bars = page.getByRole("slider", { name: /^Time/ });
  await bars.focus();

  for (const key of ["ArrowLeft", "ArrowLeft", "Shift+ArrowLeft", "Shift+ArrowLeft"]) {
    await page.keyboard.press(key);
  }
  assert.match(await bars.getAttribute("aria-valuetext") ?? "", /, 2 traces, 1 failed$/);
  await page.keyboard.press("Enter");

  await page.waitForURL(new RegExp(`from=${NOON}&to=${NOON + 90_000}`));
  await bars.focus();
  await page.keyboard.press("Escape");
  await page.waitForURL(/\/traces$/);
});

Deno.test("a trace that goes on after its first span says for how long", browserTest, async () => {
  await using scripted = await scriptedTraces();
  await using browser = await HeadlessBrowser.start();
  await using open = await browser.open(`${scripted.url}/traces`);

  const row = open.page.getByRole("row", { name: /shop::1/ });

  await row.getByText("+9.00 s").waitFor();
  await row.getByText("5.00 ms").waitFor();
});

Deno.test(
  "on a phone traces and logs fit, and their filters are behind a button",
  browserTest,
  async () => {
    await using world = await ConsoleWorld.start();
    await startOrderShop(world);
    await order(world, "tea", 2);
    const viewport = { width: 390, height: 844 };
    const page = await world.openPage("/traces", { viewport });
    const row = page.getByRole("row", { name: /POST \/orders/ }).first();
    await row.getByText("201", { exact: true }).waitFor();
    await row.getByText("web", { exact: true }).waitFor();
    assert.equal(await page.getByLabel("Outcome").count(), 0);

    await page.getByRole("button", { name: "More filters" }).click();
    await page.getByLabel("Outcome").selectOption("error");
    await page.waitForURL(/status=error/);
    await page.goto(`${world.consoleUrl}/logs`);
    const line = page.getByRole("row", { name: /Order received/ });
    await line.getByText("shop", { exact: true }).waitFor();
    await line.getByText("info", { exact: true }).waitFor();

    for (const place of ["/logs", "/traces"]) {
      await page.goto(`${world.consoleUrl}${place}`);
      await page.getByRole("row").first().waitFor();
      const width = await page.evaluate<number>("document.documentElement.scrollWidth");
      assert.ok(width <= 390, `${place} is ${width} wide`);
    }
  },
);
