/**
 * The Streams page in a real browser: streams with what they do, items that change in place, events
 * that are sent, and what a page without the key may not do.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { connectStreams } from "../../sdk/browser/mod.ts";
import type { Json, JsonObject } from "../../mod.ts";
import { until } from "../fakes/until.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

const STREAMS = { workers: "  - name: engine-stream\n    config:\n      port: 0\n" };

const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const box = (page: Page, name: string) => page.getByLabel(name, { exact: true });

async function setup() {
  const world = await ConsoleWorld.start(STREAMS);
  const worker = await world.connect("chat");
  const call = async (op: string, payload: JsonObject) =>
    await worker.trigger<Json, Json>({ function_id: `stream::${op}`, payload });
  const set = (item_id: string, data: Json, group_id = "room-1") =>
    call("set", { stream_name: "chat", group_id, item_id, data });
  return { world, worker, call, set };
}

Deno.test({
  name: "the Streams page shows streams, and the items of a group as they change",
  ...browserTest,
  async fn(t) {
    const { world, call, set } = await setup();
    await using _ = world;
    const page = await world.openPage("/streams");

    await t.step("an engine without streams says how to get one", async () => {
      await page.getByText("No stream yet").waitFor();
    });

    await t.step("a stream comes by itself, with its subscribers and events", async () => {
      const { url } = await world.call("engine::stream::stats") as { url: string };
      const streams = connectStreams(url);
      const room = streams.subscribe("chat", "room-1");
      const first = room.next();
      await first;
      for (let i = 0; i < 3; i++) await set("m1", { text: "<b>hi</b>", i });
      await set("m9", { text: "other room" }, "room-2");

      await row(page, "chat").getByText("2", { exact: true }).waitFor();
      await row(page, "chat").getByText("1", { exact: true }).waitFor();
      const subscribers = page.locator(".stat", { hasText: "Subscriptions" });
      await subscribers.getByText("1", { exact: true }).waitFor();
      await room.close();
      await subscribers.getByText("0", { exact: true }).waitFor();
    });

    await t.step("its groups lead to items, which change in place", async () => {
      await row(page, "chat").click();
      await row(page, "m1").getByText('"i":2').waitFor();
      assert.match(page.url(), /\/streams\/chat\/room-1$/);
      assert.equal(await page.locator("main .table b").count(), 0);

      await set("m2", { text: "second" });
      await row(page, "second").waitFor();
      await set("m1", { text: "changed" });
      await row(page, "m1").getByText("changed").waitFor();
      await call("delete", { stream_name: "chat", group_id: "room-1", item_id: "m2" });
      await row(page, "m2").waitFor({ state: "detached" });
      await page.getByRole("link", { name: "room-2" }).click();
      await row(page, "other room").waitFor();
    });

    await t.step("an item shows its data live, and its events", async () => {
      await page.getByRole("link", { name: "room-1" }).click();
      await row(page, "m1").click();
      await page.getByRole("group", { name: "Data" }).getByText("changed").waitFor();
      await set("m1", { text: "once more" });
      await page.getByRole("group", { name: "Data" }).getByText("once more").waitFor();
      await page.getByRole("tab", { name: /^Events/ }).click();

      const events = page.getByRole("list", { name: "Events, the newest first" });
      await events.getByText("update").first().waitFor();
    });

    await t.step("a search looks into all items, also those that were not fetched", async () => {
      await button(page, "Close").click();
      await Promise.all(Array.from({ length: 700 }, (_, nr) => {
        return set(`k${String(nr).padStart(4, "0")}`, { nr });
      }));
      await page.reload();
      await row(page, "k0000").waitFor();
      await page.getByRole("searchbox", { name: "Search ids and data" }).fill('"nr":699');

      await row(page, "k0699").waitFor();
      await page.getByText(/^1 of 70\d$/).waitFor();
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "an operator's Streams page sets, edits and deletes items and sends events, a guest's not",
  ...browserTest,
  async fn(t) {
    const { world, worker, call, set } = await setup();
    await using _ = world;
    await set("m1", { text: "hi" });
    const heard: JsonObject[] = [];
    worker.registerFunction("chat::heard", (event: JsonObject) => void heard.push(event));
    const config = { stream_name: "chat" };
    worker.registerTrigger({ type: "stream", function_id: "chat::heard", config });
    const page = await world.openPage("/streams/chat/room-1");
    const item = async (item_id: string) =>
      await call("get", { stream_name: "chat", group_id: "room-1", item_id });

    await t.step("a new item needs an id and JSON", async () => {
      await button(page, "New item").click();
      await box(page, "Data").fill('{"text":');
      await button(page, "Save").click();
      await page.getByText("is required").waitFor();
      await box(page, "Id*").fill("m2");
      await box(page, "Data").fill('{"text":"new"}');
      await button(page, "Save").click();

      await page.getByText("m2 is saved").waitFor();
      assert.deepEqual(await item("m2"), { text: "new" });
      assert.match(page.url(), /\/streams\/chat\/room-1\/m2$/);
    });

    await t.step(
      "an edit shows what is different, also what another changed meanwhile",
      async () => {
        await button(page, "Edit").click();
        await box(page, "Data").fill('{"text":"mine"}');
        const diff = page.getByRole("group", { name: "What will be different" });
        await diff.locator(".added", { hasText: "mine" }).waitFor();
        await set("m2", { text: "theirs" });
        await page.getByText("It was changed meanwhile").waitFor();
        await button(page, "Keep mine").click();
        await button(page, "Save").click();

        await page.getByRole("group", { name: "Data" }).getByText("mine").waitFor();
        assert.deepEqual(await item("m2"), { text: "mine" });
      },
    );

    await t.step("an item that expires goes by itself", async () => {
      await button(page, "Edit").click();
      await box(page, "Expires after, in ms").fill("soon");
      await button(page, "Save").click();
      await page.getByText("must be a whole number of milliseconds").waitFor();
      await box(page, "Expires after, in ms").fill("300");
      await button(page, "Save").click();

      await page.getByText("There is no such item now").waitFor();
    });

    await t.step("an item is deleted after a second click", async () => {
      await row(page, "m1").click();
      await button(page, "Delete").click();
      await button(page, "Delete it").click();

      await page.getByText("m1 is deleted").waitFor();
      assert.equal(await item("m1") ?? null, null);
    });

    await t.step("an event is sent to all who follow, and stands in the list", async () => {
      await button(page, "Send an event").click();
      await box(page, "Name*").fill("typing");
      await box(page, "Data").fill('{"by":"ann"}');
      await button(page, "Send").click();

      await page.getByText("typing is sent").waitFor();
      await until(() => heard.some(({ event }) => (event as JsonObject)["type"] === "event"));
      await button(page, "Cancel").click();
      await page.getByRole("button", { name: /^Events/ }).click();
      await page.locator(".changes li", { hasText: "typing" }).getByText('"by":"ann"').waitFor();
    });

    await t.step("a page without the key looks, and cannot act", async () => {
      await set("m3", { text: "for all" });
      const guest = await world.openPage("/streams/chat/room-1/m3?new=item", { operator: false });
      await guest.getByText("This page may only look").waitFor();
      await guest.getByRole("group", { name: "Data" }).getByText("for all").waitFor();

      for (const name of ["New item", "Send an event", "Edit", "Delete", "Save"]) {
        assert.equal(await button(guest, name).count(), 0, name);
      }
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "items that a worker keeps are shown as it lists them",
  ...browserTest,
  async fn() {
    const { world, worker } = await setup();
    await using _ = world;
    worker.registerFunction("stream::list(own)", () => [{ text: "kept elsewhere" }]);
    worker.registerFunction("stream::list_groups(own)", () => ["g"]);
    const page = await world.openPage("/streams/own");

    await page.getByText("A worker keeps these items").waitFor();
    await page.getByRole("group", { name: "Items" }).getByText("kept elsewhere").waitFor();
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "without engine-stream the Streams page says how to add it",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/streams");

    await page.getByText("engine worker add engine-stream").waitFor();
    assert.deepEqual(world.problems, []);
  },
});
