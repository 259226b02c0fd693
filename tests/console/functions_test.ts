/**
 * The Functions page in a real browser: what is listed, calls from a form, bad input, history, code.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { EngineError, type Json, type Worker } from "../../mod.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";

const ORDER = {
  type: "object",
  required: ["name", "count"],
  properties: {
    name: { type: "string", description: "Whom it is for", minLength: 2 },
    count: { type: "integer", minimum: 1, maximum: 10 },
    size: { enum: ["small", "large"] },
    loud: { type: "boolean", default: false },
    tags: { type: "array", items: { type: "string" } },
    at: { type: "object", required: ["lat"], properties: { lat: { type: "number" } } },
    extra: {},
  },
};

/** A worker with something to call, and what it was called with. */
async function openLab(world: ConsoleWorld): Promise<{ lab: Worker; got: Json[] }> {
  const lab = await world.connect("lab", "Things to try");
  const got: Json[] = [];
  lab.registerFunction("lab::order", (payload: Json) => {
    got.push(payload);
    return { taken: payload };
  }, { description: "Takes an order", request_format: ORDER });
  lab.registerFunction("lab::fail", () => {
    throw new EngineError("out_of_phase", "The flux is out of phase", { details: { phase: 7 } });
  });
  lab.registerFunction("lab::wait", async (_payload, _metadata, context) => {
    context.progress({ step: "one" });
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    got.push("cancelled");
  });
  lab.registerFunction("lab::order", () => "of the other", { namespace: "eu" });
  await world.call("engine::functions::list");
  return { lab, got };
}

/** The first element that has this text, once it is to be seen. */
async function sees(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

const pressCall = (page: Page) => page.getByRole("button", { name: "Call", exact: true }).click();
const row = (page: Page, text: string) => page.locator(".table .row", { hasText: text });
const box = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
const outcome = (page: Page) => page.getByRole("region", { name: "Result" });

Deno.test({
  name: "the Functions page lists, calls and keeps what was called",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const { lab, got } = await openLab(world);
    const page = await world.openPage("/functions");

    await t.step("functions stand in groups, and new ones come by themselves", async () => {
      await row(page, "lab::order").first().waitFor();
      await row(page, "eu / lab").waitFor();

      lab.registerFunction("lab::late", () => 1);

      await row(page, "lab::late").waitFor();
    });

    await t.step("a function that workers of different names offer is marked", async () => {
      const other = await world.connect("other", "Offers the same");
      other.registerFunction("lab::wait", () => 1);
      lab.registerFunction("lab::later", () => 1); // A new id lets the page read the list anew.

      await row(page, "lab::wait").getByText("contended").waitFor();
      assert.equal(await row(page, "lab::fail").getByText("contended").count(), 0);
      await other.shutdown();
      lab.registerFunction("lab::latest", () => 1);
      await row(page, "lab::wait").getByText("contended").waitFor({ state: "detached" });
    });

    await t.step("a search narrows the list, a click on a group closes it", async () => {
      const group = page.locator(".row.group", { hasText: /^lab/ });
      await page.getByRole("searchbox", { name: "Search functions" }).fill("order taken lab");
      await sees(page, "No function fits");
      await page.getByRole("searchbox", { name: "Search functions" }).fill("ORDER takes");
      await row(page, "lab::order").waitFor();
      assert.equal(await row(page, "lab::fail").count(), 0);
      await page.getByRole("searchbox", { name: "Search functions" }).fill("");
      await row(page, "lab::fail").waitFor();

      await group.click();

      await row(page, "lab::fail").waitFor({ state: "detached" });
      await group.click();
      await row(page, "lab::fail").waitFor();
    });

    await t.step(
      "a form that is not filled in says what is missing, and calls nothing",
      async () => {
        await row(page, "lab::order").first().click();
        await page.getByRole("heading", { name: "lab::order" }).waitFor();
        assert.equal(await page.getByText("is required").count(), 0);

        await pressCall(page);

        await sees(page, "2 things have to be corrected");
        assert.equal(await page.getByText("is required").count(), 2);
        assert.deepEqual(got, []);
      },
    );

    await t.step("each bad value is reported at its field, and no call is made", async () => {
      await box(page, "name").fill("A");
      await box(page, "count").fill("1.5");
      await box(page, "lat").fill("north");
      await box(page, "extra (JSON)").fill("{a:1}");
      await page.getByRole("button", { name: "Add" }).first().click();

      await pressCall(page);

      await sees(page, "5 things have to be corrected");
      await sees(page, "must have at least 2 characters");
      await sees(page, "must be a whole number");
      await sees(page, "must be a number");
      await sees(page, "is empty; fill it in or remove it");
      await box(page, "count").fill("99");
      await sees(page, "must be at most 10");
      assert.deepEqual(got, []);
    });

    await t.step("a filled form calls with the very payload and shows the result", async () => {
      await box(page, "name").fill("Ann");
      await box(page, "count").fill("3");
      await box(page, "lat").fill("1.5");
      await box(page, "extra (JSON)").fill('{"a":[1]}');
      await box(page, "tags 1").fill("<b>bold</b>");
      await page.getByLabel("size").selectOption("large");
      await page.getByLabel("loud").selectOption("true");

      await pressCall(page);

      await outcome(page).getByText("done").waitFor();
      assert.deepEqual(got, [{
        name: "Ann",
        count: 3,
        size: "large",
        loud: true,
        tags: ["<b>bold</b>"],
        at: { lat: 1.5 },
        extra: { a: [1] },
      }]);
      assert.equal(await page.locator("main b", { hasText: /^bold$/ }).count(), 0);
    });

    await t.step("form and JSON are two views of one payload", async () => {
      await page.getByRole("button", { name: "JSON", exact: true }).click();
      const text = await box(page, "Payload").inputValue();
      assert.equal(JSON.parse(text).tags[0], "<b>bold</b>");

      await box(page, "Payload").fill('{"name":"Bob","count":"x"}');
      await sees(page, "count must be an integer");
      await box(page, "Payload").fill('{"name":"Bob","count":2,"more":1}');
      await page.getByRole("button", { name: "Form", exact: true }).click();

      assert.equal(await box(page, "name").inputValue(), "Bob");
      got.length = 0;
      await pressCall(page);
      await page.getByLabel("History of this browser").getByText("Bob").waitFor();
      assert.deepEqual(got, [{ name: "Bob", count: 2, more: 1 }]);
    });

    await t.step("what was called before is there after a reload and fills the form", async () => {
      await page.reload();
      const past = page.getByLabel("History of this browser");
      await past.getByText("Ann").click();

      assert.equal(await box(page, "name").inputValue(), "Ann");
      assert.equal(await box(page, "tags 1").inputValue(), "<b>bold</b>");

      await past.getByRole("button", { name: "Clear" }).click();
      await past.waitFor({ state: "detached" });
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the Functions page shows failures, cancels, and writes calls as code",
  ...browserTest,
  async fn(t) {
    await using world = await ConsoleWorld.start();
    const { lab, got } = await openLab(world);
    lab.registerTrigger({
      type: "http",
      function_id: "lab::order",
      config: { api_path: "/orders/:id", http_method: "POST" },
    });
    const page = await world.openPage("/functions/lab%3A%3Afail");

    await t.step("a handler's error is shown with code, message and details", async () => {
      await pressCall(page);

      await outcome(page).getByText("out_of_phase").waitFor();
      await outcome(page).getByText("The flux is out of phase").first().waitFor();
      await outcome(page).getByLabel("Details").getByText("7").waitFor();
    });

    await t.step("text that is no JSON calls nothing and says where it breaks", async () => {
      await box(page, "Payload").fill('{\n  "a": }');

      await pressCall(page);

      await sees(page, "One thing has to be corrected");
      await sees(page, /line 2, column/);
    });

    await t.step("a running call shows its news and can be cancelled", async () => {
      await page.goto(`${world.consoleUrl}/functions/lab%3A%3Await`);
      await pressCall(page);
      await page.getByLabel("News from the call").getByText("one").waitFor();

      await page.getByRole("button", { name: "Cancel" }).click();

      await outcome(page).getByText("cancelled", { exact: true }).waitFor();
      await lab.trigger({ function_id: "state::list_groups", payload: {} });
      assert.deepEqual(got, ["cancelled"]);
    });

    await t.step("an invalid timeout is reported, one that passes ends the call", async () => {
      await box(page, "Timeout in ms").fill("soon");
      await sees(page, "must be a whole number from 1");
      await box(page, "Timeout in ms").fill("50");

      await pressCall(page);

      await outcome(page).getByText("timeout", { exact: true }).waitFor();
    });

    await t.step("a call is there as command, TypeScript, Python and curl", async () => {
      await page.goto(`${world.consoleUrl}/functions/lab%3A%3Aorder`);
      await box(page, "name").fill("it's");
      await page.getByRole("tab", { name: "Code" }).click();

      await page.getByText("engine trigger lab::order 'name=it'\\''s'").waitFor();
      await page.getByText('payload: { name: "it\'s" }').waitFor();
      await page.getByText('"payload": {"name": "it\'s"}').waitFor();
      await page.getByText(`curl ${world.httpUrl}/orders/ID`).waitFor();
      await page.getByRole("button", { name: "Copy Command line" }).click();
      const copied = await page.evaluate("navigator.clipboard.readText()");
      assert.equal(copied, "engine trigger lab::order 'name=it'\\''s'");
    });

    await t.step("a function of another namespace has an address of its own", async () => {
      await page.goto(`${world.consoleUrl}/functions/eu/lab%3A%3Aorder`);
      await pressCall(page);

      await outcome(page).getByText("of the other").waitFor();
    });

    await t.step("a function without a worker is awaited", async () => {
      await page.goto(`${world.consoleUrl}/functions/lab%3A%3Anone`);
      await sees(page, "No worker offers this function now");

      lab.registerFunction("lab::none", () => "here");

      await page.getByRole("button", { name: "Call", exact: true }).waitFor();
    });

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the Functions page draws a screenful of 10,000 functions, however one looks at them",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const crowd = await world.connect("crowd");
    for (let i = 0; i < 10_000; i++) {
      crowd.registerFunction(`group${i % 100}::f${i}`, () => i, { description: `Number ${i}` });
    }
    await world.call("engine::functions::list");
    const page = await world.openPage("/functions");
    await page.getByText("10.0k", { exact: true }).waitFor();
    const drawn = () => page.locator('.table .row:not([aria-rowindex="1"])').count();
    const grid = page.getByRole("grid", { name: "Functions" });

    const counts = [await drawn()];
    await grid.focus();
    await page.keyboard.press("End");
    await row(page, "state::update").waitFor();
    counts.push(await drawn());
    await page.keyboard.press("Home");
    await page.getByRole("columnheader", { name: "Calls" }).getByRole("button").click();
    counts.push(await drawn());
    await page.getByRole("searchbox", { name: "Search functions" }).fill("number 9999");
    await row(page, "group99::f9999").waitFor();
    assert.equal(await drawn(), 1);

    assert.ok(counts.every((count) => count > 10 && count < 100), String(counts));
    await row(page, "group99::f9999").click();
    await pressCall(page);
    await outcome(page).getByText("9999").waitFor();
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the Functions page marks functions whose implementation is a URL",
  ...browserTest,
  async fn() {
    const settings = '  http_functions: { allow: ["http://127.0.0.1:1"], allow_private: true }\n';
    await using world = await ConsoleWorld.start({ settings });
    const lab = await world.connect("lab", "Has a URL");
    const headers = { "x-key": "secret-header" };
    lab.registerFunction("web::quote", { url: "http://127.0.0.1:1/secret-path", headers });
    lab.registerFunction("web::own", () => 1);
    const page = await world.openPage("/functions");

    await row(page, "web::quote").getByText("URL", { exact: true }).waitFor();
    assert.equal(await row(page, "web::own").getByText("URL", { exact: true }).count(), 0);
    await row(page, "web::quote").getByText("web::quote").click();
    await page.getByRole("tab", { name: "About" }).click();

    await sees(page, "Served by");
    await sees(page, "http://127.0.0.1:1");
    assert.ok(!(await page.content()).includes("secret-"));
  },
});
