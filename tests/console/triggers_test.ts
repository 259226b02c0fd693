/**
 * The Triggers page in a real browser: what is listed, and routes tried out over HTTP.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Json, JsonObject, Worker } from "../../mod.ts";
import { RawWsClient } from "../fakes/raw_ws_client.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

/** A worker with routes, and the requests that came. */
async function openShop(world: ConsoleWorld): Promise<{ shop: Worker; got: JsonObject[] }> {
  const shop = await world.connect("shop");
  const got: JsonObject[] = [];
  shop.registerFunction("shop::save", (request: Json) => {
    got.push(request as JsonObject);
    return { status_code: 201, headers: { "x-saved": "yes" }, body: { saved: true } };
  });
  shop.registerFunction("shop::page", () => ({
    headers: { "content-type": "text/html" },
    body: "<script>document.title='owned'</script><b>bold</b>",
  }));
  const route = (function_id: string, http_method: string, api_path: string) =>
    shop.registerTrigger({ type: "http", function_id, config: { http_method, api_path } });
  route("shop::save", "PUT", "/orders/:id/*");
  route("shop::page", "GET", "/page");
  route("shop::none", "GET", "/absent");
  shop.registerTrigger({ type: "file-watch", function_id: "shop::save", config: { dir: "inbox" } });
  await world.call("engine::functions::list");
  return { shop, got };
}

const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const box = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
const answer = (page: Page) => page.getByRole("region", { name: "Answer" });
const pressSend = (page: Page) => page.getByRole("button", { name: "Send", exact: true }).click();

Deno.test({
  name: "the Triggers page of a fresh engine says how a trigger comes about",
  ...browserTest,
  fn: async () => {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/triggers");
    await page.getByText("No triggers yet").waitFor();

    const shop = await world.connect("shop");
    shop.registerFunction("shop::list", () => []);
    shop.registerTrigger({ type: "http", function_id: "shop::list", config: { api_path: "/all" } });

    await row(page, "/all").waitFor();
    assert.equal(await page.getByText("No triggers yet").count(), 0);
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the Triggers page lists triggers by type, live",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const { shop } = await openShop(world);
    const page = await world.openPage("/triggers");

    await t.step("routes say method and path, types without a provider say so", async () => {
      await row(page, "/orders/:id/*").getByText("PUT").waitFor();
      await row(page, "file-watch").getByText("no worker provides this type").waitFor();
      await row(page, "inbox").getByText("parked").waitFor();
      assert.equal(await row(page, "/orders/:id/*").getByText("parked").count(), 0);
    });

    await t.step("a path of WebSockets says how many are connected", async () => {
      const config = { api_path: "/chat/:room" };
      shop.registerTrigger({ type: "websocket", function_id: "shop::save", config });
      await row(page, "/chat/:room").getByText("0 connected").waitFor();
      const { hostname, port } = new URL(world.httpUrl);
      using _client = await RawWsClient.connect(Number(port), {
        path: "/chat/a",
        headers: { Host: hostname },
      });
      await row(page, "/chat/:room").getByText("1 connected").waitFor();
    });

    await t.step("new ones come and old ones go by themselves", async () => {
      const registered = shop.registerTrigger({
        type: "state",
        function_id: "shop::save",
        config: { scope: "fresh-scope" },
      });
      await row(page, "fresh-scope").waitFor();

      registered.unregister();

      await row(page, "fresh-scope").waitFor({ state: "detached" });
    });

    await t.step("one type can be looked at alone, and a search looks into routes", async () => {
      await page.getByLabel("Type").selectOption("file-watch");
      await row(page, "/page").waitFor({ state: "detached" });
      await row(page, "inbox").waitFor();
      await page.getByLabel("Type").selectOption("");

      await page.getByRole("searchbox", { name: "Search triggers" }).fill("put orders");

      await row(page, "/page").waitFor({ state: "detached" });
      assert.equal(await row(page, "/orders/:id/*").count(), 1);
      await page.getByRole("searchbox", { name: "Search triggers" }).fill("");
    });

    await t.step("a trigger that waits says for what, and has an address of its own", async () => {
      await row(page, "inbox").click();
      await page.getByText("It starts by itself when a worker provides its type").waitFor();

      await page.reload();

      await page.getByText("It starts by itself when a worker provides its type").waitFor();
    });

    await t.step("a trigger whose function is missing says so", async () => {
      await row(page, "/absent").click();
      await page.getByRole("tab", { name: "About" }).click();

      await page.getByText("so firings fail until a worker does").waitFor();
    });

    await t.step("a trigger that is gone is no riddle", async () => {
      await page.goto(`${world.consoleUrl}/triggers/no-such-trigger`);

      await page.getByText("There is no such trigger now").waitFor();
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the HTTP tester sends what was filled in and shows the whole answer",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const { got } = await openShop(world);
    const page = await world.openPage("/triggers");
    await row(page, "/orders/:id/*").click();

    await t.step("missing or invalid fields are reported, and nothing is sent", async () => {
      await box(page, "Body").fill("{a:1}");
      await page.getByRole("group", { name: "Headers" }).getByRole("button", { name: "Add" })
        .click();
      await box(page, "Headers: name 1").fill("Host");
      await pressSend(page);

      await page.getByText("is required").waitFor();
      await page.getByText("is set by itself").waitFor();
      assert.deepEqual(got, []);
    });

    await t.step("path, query, headers and body arrive as they were typed", async () => {
      await box(page, "id").fill("a/b c%");
      await box(page, "The rest (*)").fill("x/y");
      await box(page, "Headers: name 1").fill("X-Note");
      await box(page, "Headers: value 1").fill("it's");
      await page.getByRole("group", { name: "Query" }).getByRole("button", { name: "Add" }).click();
      await box(page, "Query: name 1").fill("q");
      await box(page, "Query: value 1").fill("1&2=3");
      await box(page, "Body").fill('{"n":[1]}');

      await pressSend(page);

      await answer(page).getByText("201").waitFor();
      await answer(page).getByText("saved", { exact: true }).waitFor();
      const { path_params, query_params, headers, body } = got[0]!;
      assert.deepEqual(path_params, { id: "a/b c%", "*": "x/y" });
      assert.deepEqual(query_params, { q: "1&2=3" });
      assert.deepEqual(body, { n: [1] });
      assert.equal((headers as JsonObject)["x-note"], "it's");
      await answer(page).getByText(/^\d+ headers$/).click();
      await answer(page).getByText("x-saved").waitFor();
    });

    await t.step("the same request is there as curl", async () => {
      const curl = page.locator("figure", { hasText: "curl" }).locator("code");

      const text = await curl.innerText();

      assert.match(text, /^curl -X PUT .*\/orders\/a%2Fb%20c%25\/x\/y\?q=1%262%3D3/);
      assert.ok(text.includes(`-H 'x-note: it'\\''s'`), text);
    });

    await t.step("markup in an answer stays text", async () => {
      await row(page, "/page").click();
      await pressSend(page);

      await answer(page).getByText("document.title='owned'").waitFor();
      assert.equal(await page.locator(".outcome b").count(), 0);
      assert.notEqual(await page.title(), "owned");
    });

    await t.step("an error of the engine is shown as its answer", async () => {
      await row(page, "/absent").click();
      await pressSend(page);

      await answer(page).getByText("503", { exact: true }).waitFor();
      await answer(page).getByText("function_not_found").waitFor();
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "a cron trigger shows its next times and last runs, a subscription its messages",
  ...browserTest,
  async fn(t) {
    const workers = "  - name: engine-cron\n  - name: engine-pubsub\n";
    await using world = await ConsoleWorld.start({ workers });
    const shop = await world.connect("shop");
    shop.registerFunction("shop::report", () => null);
    shop.registerFunction("shop::hear", () => null);
    const cron = shop.registerTrigger({
      type: "cron",
      function_id: "shop::report",
      config: { expression: "0 0 0 1 1 *", timezone: "UTC" },
    });
    const topic = { type: "subscribe", function_id: "shop::hear", config: { topic: "news" } };
    const subscription = shop.registerTrigger(topic);
    await world.call("engine::functions::list");

    await t.step("five times, no run yet, and a run by hand with its result", async () => {
      const page = await world.openPage(`/triggers/${cron.id}`);
      const times = page.getByRole("list", { name: "Next times" }).getByRole("listitem");
      await times.nth(4).waitFor();
      assert.equal(await times.count(), 5);
      // In line with what is above and below.
      const [time, heading] = [times.first(), page.getByText("Next times", { exact: true })];
      assert.equal((await time.boundingBox())?.x, (await heading.boundingBox())?.x);
      await page.getByText("It has not run yet.").waitFor();

      await page.getByRole("button", { name: "Run now" }).click();

      const runs = page.getByRole("table", { name: "Last runs" });
      await runs.getByText("by hand").waitFor();
      await runs.getByText("ok", { exact: true }).waitFor();
    });

    await t.step("what was sent and dropped", async () => {
      await shop.publish("news", { n: 1 });
      const page = await world.openPage(`/triggers/${subscription.id}`);
      await page.getByRole("heading", { name: "Messages" }).waitFor();
      await page.getByText("Dropped, since it was behind").waitFor();
    });
    assert.deepEqual(world.problems, []);
  },
});
