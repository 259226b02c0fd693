/**
 * The Queues page in a real browser: queues live, dead letters edited and retried, pause.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { JsonObject } from "../../mod.ts";
import { until } from "../fakes/until.ts";
import { browserTest, ConsoleWorld, framesOf } from "./console_browser.ts";

const QUEUE = {
  workers: "  - name: engine-queue\n    config:\n      queues:\n" +
    "        mail: { max_retries: 1 }\n        slow: {}\n",
};

const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const letter = (page: Page, id: string) => button(page, `Dead letter ${id}`);
const tab = (page: Page, name: RegExp) => page.getByRole("tab", { name });

Deno.test({
  name: "the Queues page shows queues, and gives an edited dead letter out again",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start(QUEUE);
    const worker = await world.connect("mailer");
    const sent: string[] = [];
    const held = Promise.withResolvers<void>();
    worker.registerFunction("mail::send", (payload: JsonObject) => {
      if (typeof payload["to"] !== "string") throw new Error("no address");
      sent.push(payload["to"]);
    });
    worker.registerFunction("mail::hold", () => held.promise);
    const enqueue = async (queue: string, id: string, payload: JsonObject, name = "mail::send") =>
      await worker.enqueue({ function_id: name, payload, queue, id });
    const page = await world.openPage("/queues");

    await t.step("a dead letter shows up in the list by itself", async () => {
      await row(page, "mail").waitFor();
      await enqueue("mail", "lost-1", { to: 5, subject: "<b>hi</b>" });

      await row(page, "mail").locator(".badge.bad", { hasText: "1" }).waitFor();
    });

    await t.step("it has its payload, error and attempts", async () => {
      await row(page, "mail").click();
      assert.match(page.url(), /\/queues\/mail/);
      await tab(page, /^Dead letters/).click();
      await letter(page, "lost-1").click();

      await page.getByRole("list", { name: "Attempts" }).getByText("no address").waitFor();
      await page.getByRole("group", { name: "Payload" }).getByText('"<b>hi</b>"').waitFor();
      await page.getByRole("link", { name: "Open the trace" }).waitFor();
    });

    await t.step("bad JSON cannot be sent; a mended payload is given out again", async () => {
      await button(page, "Edit and retry").click();
      const text = page.getByRole("textbox", { name: "New payload" });
      await text.fill('{"to":');
      assert.equal(await button(page, "Retry with this").isDisabled(), true);
      await text.fill('{"to":"a@b.c"}');
      await button(page, "Retry with this").click();

      await page.getByText("The job is given out again").waitFor();
      await until(() => sent.includes("a@b.c"));
      await page.getByText("No dead letter").waitFor();
    });

    await t.step("all dead letters are discarded after a second click", async () => {
      for (const id of ["lost-2", "lost-3"]) await enqueue("mail", id, {});
      await letter(page, "lost-3").waitFor();
      await button(page, "Discard all").click();
      await button(page, "Discard all 2").click();

      await page.getByText("2 dead letters are deleted").waitFor();
      await page.getByText("No dead letter").waitFor();
    });

    await t.step("running jobs lead to their trace", async () => {
      await enqueue("slow", "held-1", {}, "mail::hold");
      await page.goto(`${world.consoleUrl}/queues/slow`);
      const jobs = page.getByRole("table", { name: "Running jobs" });
      await jobs.getByText("mail::hold").waitFor();

      const path = await jobs.getByRole("link", { name: "Open the trace" }).getAttribute("href");

      assert.match(path!, /^\/traces\/[0-9a-f]{32}$/);
      held.resolve();
      await page.getByText("None runs now").waitFor();
    });

    await t.step("a paused queue keeps its jobs, which can be looked at", async () => {
      await button(page, "Pause").click();
      await button(page, "Resume").waitFor();
      await enqueue("slow", "later-1", { to: "later" });
      await tab(page, /^Waiting/).click();
      await button(page, "Job later-1").click();
      await page.getByRole("group", { name: "Payload" }).getByText('"later"').waitFor();
      assert.equal(sent.includes("later"), false);

      await button(page, "Resume").click();

      await until(() => sent.includes("later"));
      await page.getByText("No job waits").waitFor();
    });

    await t.step("a page without the key looks, gets no payload, and cannot act", async () => {
      await world.call("engine::queue::pause", { queue: "slow" });
      await enqueue("slow", "later-2", { to: "not-for-guests" });
      await enqueue("mail", "lost-4", { cc: "not-for-guests" });
      const guest = await world.blankPage();
      const frames = framesOf(guest);
      await guest.goto(`${world.consoleUrl}/queues/slow?tab=waiting`);
      await guest.getByText("This page may only look").waitFor();
      await button(guest, "Job later-2").click();
      await guest.getByText("shown to the engine's own user only").waitFor();
      await guest.goto(`${world.consoleUrl}/queues/mail?tab=dead`);
      await letter(guest, "lost-4").click();
      await guest.getByText("no address").first().waitFor();
      await guest.getByText("shown to the engine's own user only").waitFor();

      assert.equal(await button(guest, "Pause").isDisabled(), true);
      assert.ok(frames.some((frame) => frame.includes("lost-4")));
      assert.deepEqual(frames.filter((frame) => frame.includes("not-for-guests")), []);
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "without engine-queue the Queues page says how to add it",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/queues");

    await page.getByText("engine worker add engine-queue").waitFor();
    assert.deepEqual(world.problems, []);
  },
});
