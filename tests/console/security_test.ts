/**
 * What others in the same browser, on the same machine and among the workers can do to the console.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { ConsoleClient, tokenIn } from "./console_client.ts";

/** Markup that leaves a mark in the page if any of it is taken for such. */
const EVIL = '"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>' +
  "<svg onload='window.hacked=1'></svg><a href=\"javascript:window.hacked=1\">evil</a>";

/** Pages that show nothing that the worker of these tests says. */
const WITHOUT_WORKERS = ["/cluster", "/metrics", "/settings"];

/** A server of a stranger, with a page that may do what any page may. */
function stranger() {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    return new Response("<!doctype html><title>stranger</title>", {
      headers: { "content-type": "text/html" },
    });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}`,
    port: server.addr.port,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** Runs the body of an async function in a page; it has `url` of the console and `evil` markup. */
function inPage<Out>(page: Page, world: ConsoleWorld, body: string): Promise<Out> {
  const given = `const url = ${JSON.stringify(world.consoleUrl)}, evil = ${JSON.stringify(EVIL)};`;
  return page.evaluate(`(async () => { ${given} ${body}\n })()`);
}

/** Lets a page draw what it has. */
async function drawn(page: Page): Promise<void> {
  await page.evaluate(
    "(async () => { for (let i = 0; i < 30; i++) await new Promise(requestAnimationFrame); })()",
  );
}

/** Paths of all pages in the side bar. */
async function pagesOf(page: Page): Promise<string[]> {
  await page.locator("nav a[href]:visible").first().waitFor();
  const paths = await page.evaluate<string[]>(
    "[...document.querySelectorAll('nav a[href]')].map((link) => link.getAttribute('href'))",
  );
  const pages = [...new Set(paths)].filter((path) => path !== "/");
  assert.ok(pages.length >= 9, `there are pages in the side bar: ${pages}`);
  return pages;
}

Deno.test({
  name: "a page of a stranger can neither talk to the console nor read its page",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    await using other = stranger();
    const page = await world.blankPage();
    await page.goto(other.url);

    const got = await inPage<Record<string, string>>(
      page,
      world,
      `
      const line = await new Promise((resolve) => {
        const socket = new WebSocket(url.replace("http", "ws") + "/live");
        socket.onopen = () => resolve("open");
        socket.onerror = () => resolve("refused");
      });
      const text = (options) => fetch(url, options).then((it) => it.text(), () => "refused");
      return {
        line,
        read: await text(),
        seen: await text({ mode: "no-cors" }),
        posted: await text({ mode: "no-cors", method: "POST", body: "x" }),
      };`,
    );

    assert.equal(got.line, "refused");
    assert.equal(got.read, "refused");
    assert.doesNotMatch(`${got.seen}${got.posted}`, /engine-console-token/);
  },
});

Deno.test({
  name: "a page of a stranger cannot put the console into a frame",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    await using other = stranger();
    const page = await world.blankPage();
    await page.goto(other.url);

    const isOther = await inPage<boolean>(
      page,
      world,
      `
      const frame = Object.assign(document.createElement("iframe"), { src: url });
      const loaded = new Promise((resolve) => frame.onload = resolve);
      document.body.append(frame);
      await loaded;
      return frame.contentDocument === null; // The browser's own page, which says no.`,
    );

    const inner = page.frames().find((frame) => frame !== page.mainFrame());
    assert.ok(isOther);
    assert.equal(await inner?.locator("#app").count(), 0);
  },
});

Deno.test({
  name: "a stranger's name that leads to this machine does not lead into the console",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.blankPage();
    const { port } = new URL(world.consoleUrl);

    const answer = await page.goto(`http://rebound.test:${port}/`);

    assert.equal(answer?.status(), 403);
    assert.match(await answer!.text(), /open it as 127\.0\.0\.1 or localhost/);
  },
});

Deno.test({
  name: "what workers say of themselves is text on every page, never markup",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start({
      workers: "  - name: engine-queue\n  - name: engine-configuration\n" +
        "  - name: engine-stream\n    config:\n      port: 0\n",
    });
    const evil = await world.connect(`evil ${EVIL}`, EVIL);
    const id = `evil::${EVIL}`;
    const schema = { title: EVIL, properties: { [EVIL]: { description: EVIL, default: EVIL } } };
    const format = { request_format: schema, response_format: schema };
    evil.registerFunction(id, () => {
      throw new Error(EVIL);
    }, { description: EVIL, ...format });
    evil.registerTriggerType(
      { id: `type ${EVIL}`, description: EVIL },
      { registerTrigger() {}, unregisterTrigger() {} },
    );
    evil.registerTrigger({ type: `type ${EVIL}`, function_id: id, config: { [EVIL]: EVIL } });
    const topic = { topic: EVIL };
    evil.registerTrigger({ type: "durable:subscriber", function_id: id, config: topic });
    const scope = { scope: EVIL, key: EVIL, value: { [EVIL]: EVIL } };
    await evil.trigger({ function_id: "state::set", payload: scope });
    const item = { stream_name: EVIL, group_id: EVIL, item_id: EVIL, data: { [EVIL]: EVIL } };
    await evil.trigger({ function_id: "stream::set", payload: item });
    const entry = { id: "evil", name: EVIL, description: EVIL, schema, initial_value: scope };
    await evil.trigger({ function_id: "configuration::register", payload: entry });
    await evil.trigger({
      function_id: "engine::log::warn",
      payload: { message: EVIL, data: { [EVIL]: EVIL }, service_name: EVIL },
    });
    await evil.trigger({ function_id: id, payload: { [EVIL]: EVIL } }).catch(() => {});

    const page = await world.openPage("/");
    for (const path of await pagesOf(page)) {
      await page.locator(`nav a[href="${path}"]:visible`).first().click();
      if (!WITHOUT_WORKERS.includes(path)) {
        await page.locator("main :text('onerror'):visible").first().waitFor();
        const rows = page.locator("main [role=row], main tr, main li");
        const row = rows.filter({ hasText: "onerror" }).first();
        if (await row.count() > 0) await row.click(); // The flow has no rows.
      }
      await drawn(page);
    }

    assert.equal(await page.evaluate("window.hacked"), undefined);
    assert.equal(await page.locator('img[src="x"], a[href^="javascript:"]').count(), 0);
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "script that came into the page all the same would not run",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/");

    const ran = await inPage(
      page,
      world,
      `
      document.body.appendChild(document.createElement("div")).innerHTML = evil;
      const script = document.createElement("script");
      script.textContent = "window.hacked = 1";
      document.body.append(script);
      const sent = await fetch("http://127.0.0.1:9/").then(() => "sent", () => "refused");
      return [window.hacked ?? 0, sent];`,
    );

    assert.deepEqual(ran, [0, "refused"]);
    assert.ok(world.problems.some((problem) => problem.includes("Content Security Policy")));
  },
});

Deno.test({
  name: "no page asks anything of any other machine",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.blankPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).host));
    await page.goto(world.consoleUrl);
    for (const path of await pagesOf(page)) {
      await page.locator(`nav a[href="${path}"]:visible`).first().click();
      await drawn(page);
    }

    assert.deepEqual([...new Set(asked)], [new URL(world.consoleUrl).host]);
  },
});

Deno.test("who reaches the console without the key of its user cannot manage workers", async () => {
  await using world = await ConsoleWorld.start();
  using guest = await ConsoleClient.open(world.consoleUrl);
  const payload = { name: "engine-state" };

  const managing = ["start", "stop", "restart", "remove", "add", "exec"];
  for (const [id, name] of managing.entries()) {
    guest.say({ type: "call", id, function_id: `engine::supervisor::${name}`, payload });
    assert.equal((await guest.next("error", id)).error.code, "FORBIDDEN", name);
  }
  guest.say({
    type: "call",
    id: 50,
    function_id: "state::set",
    payload: { scope: "a", key: "b", value: 1 },
  });
  await guest.next("result", 50);
  await guest.close();
});

Deno.test("a function of a worker is not the operator's because a page calls it", async () => {
  await using world = await ConsoleWorld.start();
  const worker = await world.connect("deputy");
  worker.registerFunction(
    "deputy::stop",
    () => worker.trigger({ function_id: "engine::supervisor::stop", payload: { name: "x" } }),
  );
  using client = await ConsoleClient.open(world.consoleUrl, { page: await world.operatorPath() });

  client.say({ type: "call", id: 1, function_id: "deputy::stop" });

  assert.equal((await client.next("error", 1)).error.code, "FORBIDDEN");
  await client.close();
});

Deno.test("workers cannot have the console call anything for them", async () => {
  await using world = await ConsoleWorld.start();
  using client = await ConsoleClient.open(world.consoleUrl, { page: await world.operatorPath() });
  client.say({ type: "watch_trigger", id: 1, trigger: { type: "state", config: { scope: "s" } } });
  const list = { include_internal: true };
  const { functions } = await world.call("engine::functions::list", list) as {
    functions: { function_id: string; worker_name: string }[];
  };
  const own = functions.filter(({ worker_name }) => worker_name === "engine-console");

  assert.deepEqual(own.map(({ function_id }) => function_id.split("::")[1]), ["fired"]);
  const target = own[0]!.function_id;
  const command = { type: "call", function_id: "engine::supervisor::stop" };
  await world.call(target, { ...command, payload: { name: "engine-state" } });
  const { state } = await world.call("engine::supervisor::status", { name: "engine-state" }) as {
    state: string;
  };
  assert.equal(state, "ready");
  await client.close();
});

Deno.test("a wrong token is refused late, and teaches nothing", async () => {
  await using world = await ConsoleWorld.start();
  const token = await tokenIn(world.consoleUrl);
  const began = performance.now();

  for (const wrong of ["", token.slice(1), `${token}0`, "null"]) {
    using client = await ConsoleClient.open(world.consoleUrl, { token: wrong });
    assert.equal(await client.closed, 4401);
    assert.deepEqual(client.heard, []);
  }

  assert.ok(performance.now() - began > 4 * 450);
});

Deno.test("a line without an origin, or with another one, is refused", async () => {
  await using world = await ConsoleWorld.start();
  const token = await tokenIn(world.consoleUrl);
  const { port } = new URL(world.consoleUrl);

  for (const origin of [null, "null", "http://evil.example", `http://localhost:${port}`]) {
    using client = await ConsoleClient.open(world.consoleUrl, { token, origin });
    await client.closed;
    assert.deepEqual(client.heard, [], String(origin));
  }
});
