/**
 * The State page in a real browser: scopes and entries live, edits with compare-and-set, diffs.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Json, JsonObject } from "../../mod.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const box = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
const press = (page: Page, name: string) =>
  page.getByRole("button", { name, exact: true }).first().click();

/** Sets an entry, as another program would. */
async function set(world: ConsoleWorld, key: string, value: Json, more: JsonObject = {}) {
  await world.call("state::set", { scope: "cart", key, value, ...more });
}

const entry = async (world: ConsoleWorld, key: string): Promise<JsonObject | undefined> =>
  await world.call("state::entry", { scope: "cart", key }) as JsonObject | undefined;

Deno.test({
  name: "the State page shows scopes, entries and changes as they happen",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/state");

    await t.step("an engine without state says how to get some", async () => {
      await page.getByText("No state yet").waitFor();
    });

    await t.step("the first scope and its entries come by themselves", async () => {
      await set(world, "u1", { n: 1, text: "<b>bold</b>" });
      await set(world, "u2", { n: 2 });

      await row(page, '"n":1').waitFor();
      await row(page, "u2").waitFor();
      assert.equal(await page.locator("main .table b").count(), 0);
      assert.match(page.url(), /\/state\/cart$/);
    });

    await t.step("an entry shows its value, follows changes, and lists them as diffs", async () => {
      await row(page, "u1").click();
      const value = page.getByRole("group", { name: "Value" });
      await value.getByText('"<b>bold</b>"').waitFor();

      await set(world, "u1", { n: 5, more: true });

      await value.getByText("5", { exact: true }).waitFor();
      await page.getByRole("tab", { name: "Changes" }).click();
      await page.getByRole("button", { name: "updated" }).first().click();
      const diff = page.getByRole("group", { name: "Difference in u1" });
      await diff.locator(".removed", { hasText: '"n": 1' }).waitFor();
      await diff.locator(".added", { hasText: '"n": 5' }).waitFor();
      await diff.locator(".added", { hasText: '"more": true' }).waitFor();
    });

    await t.step("changes of the whole scope stand in one list that leads to entries", async () => {
      await press(page, "Close");
      await page.getByRole("button", { name: /^Changes/ }).click();
      await world.call("state::delete", { scope: "cart", key: "u2" });
      await page.locator(".changes li", { hasText: "deleted" }).getByText("u2").click();

      await page.getByText("There is no such entry now").waitFor();
    });

    await t.step("a search looks into keys and values, also of pages not fetched yet", async () => {
      await world.call("state::set", { scope: "many", key: "first", value: 0 });
      const writer = await world.connect("writer");
      await Promise.all(Array.from({ length: 700 }, (_, nr) => {
        const payload = { scope: "cart", key: `k${String(nr).padStart(4, "0")}`, value: { nr } };
        return writer.trigger({ function_id: "state::set", payload });
      }));
      await page.goto(`${world.consoleUrl}/state/cart`);
      await row(page, "k0000").waitFor();

      await page.getByRole("searchbox", { name: "Search keys and values" }).fill('"nr":699');

      await row(page, "k0699").waitFor();
      await page.getByText(/^1 of 70\d$/).waitFor();
    });

    await t.step("another scope is a click away", async () => {
      await page.getByRole("searchbox", { name: "Search keys and values" }).fill("");
      await page.getByRole("link", { name: "many" }).click();

      await row(page, "first").waitFor();
      assert.match(page.url(), /\/state\/many/);
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the State page never overwrites a change that its person has not seen",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    await set(world, "u1", { n: 1 });
    const page = await world.openPage("/state/cart/u1");

    await t.step("bad JSON is reported and not sent", async () => {
      await press(page, "Edit");
      await box(page, "Value").fill('{"n":');
      await press(page, "Save");

      await page.locator(".said.bad").first().waitFor();
      assert.deepEqual((await entry(world, "u1"))!["value"], { n: 1 });
    });

    await t.step("an edit shows what will be different and saves it", async () => {
      await box(page, "Value").fill('{"n":2}');
      const diff = page.getByRole("group", { name: "What will be different" });
      await diff.locator(".added", { hasText: '"n": 2' }).waitFor();

      await press(page, "Save");

      await page.getByText("u1 is saved").waitFor();
      assert.deepEqual((await entry(world, "u1"))!["value"], { n: 2 });
    });

    await t.step("another client's change stops the save and is shown", async () => {
      await press(page, "Edit");
      await box(page, "Value").fill('{"n":"mine"}');

      await set(world, "u1", { n: "theirs" });

      const notice = page.getByRole("alert").filter({
        hasText: "Another client changed it meanwhile",
      });
      await notice.locator(".added", { hasText: "theirs" }).waitFor();
      assert.equal(await page.getByRole("button", { name: "Save" }).isDisabled(), true);
      await press(page, "Keep mine, on top of theirs");
      await press(page, "Save");
      await page.getByText("u1 is saved").first().waitFor();
      await page.getByRole("group", { name: "Value" }).getByText("mine").waitFor();
    });

    await t.step("a new entry is not put over one that is there", async () => {
      await press(page, "New entry");
      await box(page, "Key").fill("u1");
      await box(page, "Value").fill('"new"');
      await press(page, "Save");

      await page.getByText("Another client changed it meanwhile").waitFor();
      assert.deepEqual((await entry(world, "u1"))!["value"], { n: "mine" });

      await box(page, "Key").fill("u9");
      await press(page, "Save");

      await page.getByText("u9 is saved").waitFor();
      assert.equal((await entry(world, "u9"))!["value"], "new");
    });

    await t.step("an entry that expires keeps its end when it is edited", async () => {
      await set(world, "short", 1, { ttl_ms: 600_000 });
      const before = (await entry(world, "short"))!["expires_at_ms"] as number;
      await page.goto(`${world.consoleUrl}/state/cart/short`);
      await page.getByText(/^in \d+ m$/).waitFor();
      await press(page, "Edit");
      await box(page, "Value").fill("2");

      await press(page, "Save");

      await page.getByText("short is saved").waitFor();
      const after = (await entry(world, "short"))!["expires_at_ms"] as number;
      assert.ok(Math.abs(after - before) < 60_000, `${before} ${after}`);
    });

    await t.step("a deletion is asked for twice", async () => {
      await press(page, "Delete");
      await press(page, "Delete it");

      await page.getByText("There is no such entry now").waitFor();
      assert.equal(await entry(world, "short"), undefined);
    });

    assert.deepEqual(world.problems, []);
  },
});
