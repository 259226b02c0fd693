/**
 * The Configuration page in a real browser: forms from schemas, errors at their fields, secrets
 * that never reach it, history and restoring.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import type { Json, JsonObject } from "../../mod.ts";
import { browserTest, ConsoleWorld, framesOf } from "./console_browser.ts";

const SECRET = "s3cret-of-the-shop";
const OTHER_SECRET = "an0ther-secret";
const SCHEMA = {
  type: "object",
  required: ["port"],
  properties: {
    port: { type: "integer", minimum: 1, description: "Where it listens" },
    mode: { enum: ["fast", "safe"], default: "safe" },
    name: { type: "string", pattern: "^[a-z]+$" },
    open: { type: "boolean" },
    key: { type: "string", "x-secret": true },
    servers: {
      type: "array",
      items: {
        type: "object",
        required: ["host"],
        properties: { host: { type: "string" }, token: { type: "string", "x-secret": true } },
      },
    },
    extra: { oneOf: [{ type: "string" }, { type: "object" }] },
  },
};
const VALUE = {
  port: "${PAGES_TEST_PORT:8080}",
  name: "ann",
  key: SECRET,
  servers: [{ host: "a.example", token: OTHER_SECRET }],
};

const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const box = (page: Page, name: string) => page.getByLabel(name, { exact: true });
const tab = (page: Page, name: string) => page.getByRole("tab", { name });
/** The field with a label, and what is said below it. */
const field = (page: Page, name: string) =>
  page.locator(".field", { has: page.locator("label", { hasText: new RegExp(`^${name}\\*?$`) }) });

async function setup() {
  const world = await ConsoleWorld.start({
    workers: "  - name: engine-configuration\n    config:\n      environment: [PAGES_TEST_*]\n",
  });
  await world.call("configuration::register", {
    id: "shop",
    name: "Shop of Ann",
    description: "What the shop needs",
    schema: SCHEMA,
    initial_value: VALUE,
  });
  await world.call("configuration::register", { id: "plain", initial_value: { a: 1 } });
  const value = async () =>
    (await world.call("configuration::get", { id: "shop" }) as { value: JsonObject }).value;
  return { world, value };
}

Deno.test({
  name: "the Configuration page edits by a form, with errors at their fields, and shows no secret",
  ...browserTest,
  async fn(t) {
    const { world, value } = await setup();
    await using _ = world;
    const page = await world.blankPage();
    const frames = framesOf(page);
    await page.goto(world.consoleUrl + await world.operatorPath("/configuration"));

    await t.step("the list leads to an entry, with what its references stand for", async () => {
      await row(page, "Shop of Ann").click();
      assert.match(page.url(), /\/configuration\/shop/);

      const references = page.getByRole("table", { name: "References" });
      await references.getByRole("cell", { name: "8080", exact: true }).waitFor();
      await page.getByRole("group", { name: "Value" }).getByText("[redacted]").first().waitFor();
    });

    await t.step("an error that only the engine can find stands at its field", async () => {
      await button(page, "Edit").click();
      assert.equal(await box(page, "port*").inputValue(), VALUE.port);
      await page.getByText("${PAGES_TEST_PORT:8080} stands for 8080").waitFor();
      await box(page, "name").fill("Ann 2");
      await button(page, "Save").click();

      await field(page, "name").getByText("must match pattern").waitFor();
      await page.getByText("The engine refused it: one thing has to be corrected").waitFor();
      assert.equal((await value())["name"], "ann");
    });

    await t.step("an error that the page finds itself is not sent", async () => {
      await box(page, "name").fill("bob");
      await button(page, "Let port be a value").click();
      await box(page, "port*").fill("0");

      await field(page, "port").getByText("must be at least 1").waitFor();
      await box(page, "port*").fill("81");
      await box(page, "mode").selectOption("fast");
    });

    await t.step("it says what will be different, and saves; kept secrets stay", async () => {
      const diff = page.getByRole("group", { name: "What will be different" });
      await diff.locator(".added", { hasText: '"port": 81' }).waitFor();
      await button(page, "Save").click();

      await page.getByText("shop is saved").waitFor();
      assert.deepEqual(await value(), { ...VALUE, port: 81, name: "bob", mode: "fast" });
    });

    await t.step("a secret is replaced without being seen", async () => {
      await button(page, "Edit").click();
      assert.equal(await box(page, "key").isDisabled(), true);
      await button(page, "Replace key").click();
      await box(page, "key").fill("brand-new-secret");
      assert.equal(await box(page, "key").getAttribute("type"), "password");
      const diff = page.getByRole("group", { name: "What will be different" });
      await diff.getByText("[new secret]").waitFor();
      await button(page, "Save").click();

      await button(page, "Edit").waitFor();
      assert.equal((await value())["key"], "brand-new-secret");
    });

    await t.step("history has who changed what, and an older version is set again", async () => {
      await tab(page, "History").click();
      const changes = page.getByRole("list", { name: "Changes, the newest first" });
      await changes.getByText("Version 3").waitFor();
      await changes.getByRole("link", { name: "engine-console" }).first().waitFor();
      const diff = page.getByRole("group", { name: "Difference of version 2" });
      await diff.locator(".removed", { hasText: "ann" }).waitFor();

      await button(page, "Restore version 1").click();
      await page.getByText("Secrets cannot be restored").waitFor();
      await button(page, "Save").click();

      await changes.getByText("Version 4").waitFor();
      assert.deepEqual(await value(), { ...VALUE, port: 8080, key: "brand-new-secret" });
    });

    await t.step("no text of a secret is in the page or was sent to it", async () => {
      assert.ok(frames.some((frame) => frame.includes("a.example")));
      const html = await page.content();
      for (const secret of [SECRET, OTHER_SECRET, "brand-new-secret"]) {
        assert.deepEqual(frames.filter((frame) => frame.includes(secret)), []);
        assert.equal(html.includes(secret), false);
      }
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the Configuration page loses no change of others, has JSON for all, and guests only look",
  ...browserTest,
  async fn(t) {
    const { world, value } = await setup();
    await using _ = world;
    const page = await world.openPage("/configuration/shop");
    const set = (value: Json) => world.call("configuration::set", { id: "shop", value });

    await t.step("a change that another makes during an edit stops the save", async () => {
      await button(page, "Edit").click();
      await box(page, "name").fill("mine");
      await set({ ...VALUE, name: "theirs" });

      const notice = page.getByRole("alert").filter({ hasText: "It was changed meanwhile" });
      await notice.locator(".added", { hasText: "theirs" }).waitFor();
      assert.equal(await button(page, "Save").isDisabled(), true);
      await button(page, "Keep mine, on top of theirs").click();
      await button(page, "Save").click();
      await page.getByText("shop is saved").waitFor();
      assert.equal((await value())["name"], "mine");
    });

    await t.step("items of lists come and go, and a secret does not move to another", async () => {
      await set({ ...VALUE, servers: [...VALUE.servers, { host: "b.example", token: "tb" }] });
      await page.getByText('"b.example"').waitFor();
      await button(page, "Edit").click();
      await button(page, "Remove servers 1").click();
      await button(page, "Save").click();

      await page.getByText("cannot be kept, since the list has changed").waitFor();
      await button(page, "Replace token").click();
      await box(page, "token").fill("tb2");
      await button(page, "Save").click();
      await page.getByText("shop is saved").last().waitFor();
      assert.deepEqual((await value())["servers"], [{ host: "b.example", token: "tb2" }]);
    });

    await t.step("what a form cannot show is JSON, with errors of the engine there", async () => {
      await button(page, "Edit").click();
      await box(page, "extra (JSON)").fill("7");
      await page.getByText("must be a string or an object").waitFor();
      await box(page, "extra (JSON)").fill('{"deep":[1]}');
      await button(page, "JSON").click();
      const text = box(page, "Value");
      assert.match(await text.inputValue(), /"deep"[^]*\[redacted\]|\[redacted\][^]*"deep"/);
      await text.fill((await text.inputValue()).replace('"ann"', '"Ann 3"'));
      await button(page, "Save").click();
      await page.getByText("name must match pattern").waitFor();
      await text.fill((await text.inputValue()).replace('"Ann 3"', '"eve"'));
      await button(page, "Save").click();
      await page.getByRole("group", { name: "Value" }).getByText("eve").waitFor();
      assert.deepEqual((await value())["key"], SECRET);
    });

    await t.step("an entry without a schema is JSON", async () => {
      await page.goto(`${world.consoleUrl}/configuration/plain`);
      await button(page, "Edit").click();
      await box(page, "Value").fill('{"a":2}');
      await button(page, "Save").click();

      await page.getByText("plain is saved").waitFor();
    });

    await t.step("a page without the key sees values, and no way to change them", async () => {
      const guest = await world.openPage("/configuration/shop", { operator: false });
      await guest.getByText("This page may only look").waitFor();
      await guest.getByRole("group", { name: "Value" }).getByText("[redacted]").first().waitFor();

      assert.equal(await button(guest, "Edit").count(), 0);
      await tab(guest, "History").click();
      await guest.getByText("Version 2", { exact: true }).waitFor();
      assert.equal(await guest.getByRole("button", { name: /^Restore/ }).count(), 0);
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "without engine-configuration the page says how to add it, and goes on once it runs",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/configuration");
    await page.getByText("engine worker add engine-configuration").waitFor();

    const config = await Deno.readTextFile(`${world.directory}/config.yaml`);
    await world.write("config.yaml", `${config}  - name: engine-configuration\n`);

    await page.getByText("No configuration yet").waitFor();
    assert.deepEqual(world.problems, []);
  },
});
