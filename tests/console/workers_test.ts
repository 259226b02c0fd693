/**
 * The pages of workers and of the configuration, before a real engine with real workers; and
 * before a scripted one with a thousand of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { type Json, Logger } from "../../mod.ts";
import { consolePage } from "../../workers/console/server.ts";
import { browserTest, ConsoleWorld } from "./console_browser.ts";
import { HeadlessBrowser } from "./headless_browser.ts";
import { ScriptedConsole } from "./scripted_console.ts";
import { replicaStatus, workerStatus } from "../fakes/samples.ts";

const GREETER = `
import { registerWorker } from "engine-sdk";
const worker = registerWorker(Deno.env.get("ENGINE_URL"), { workerName: "greeter" });
worker.registerFunction("greeter::hello", ({ name }) => {
  console.log("greeting " + name);
  return { greeting: "Hello, " + name };
}, { description: "Greets by name" });
`;

const MANAGED = {
  workers: `  - name: greeter
    path: ./workers/greeter
    isolation: process
  - name: broken
    path: ./workers/broken
    isolation: process
`,
  files: {
    "workers/greeter/engine.worker.yaml": manifest("greeter"),
    "workers/greeter/deno.json":
      '{ "imports": { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" } }\n',
    "workers/greeter/worker.ts": GREETER,
    "workers/broken/engine.worker.yaml": manifest("broken"),
    "workers/broken/worker.ts": 'console.log("about to fail"); Deno.exit(3);\n',
  },
};

Deno.test({
  name: "workers that the engine runs are listed, shown in detail, stopped, started and restarted",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start(MANAGED);
    const page = await world.openPage("/workers");
    const row = rowOf(page, "greeter");
    await row.getByText("ready").waitFor();
    await rowOf(page, "engine-state").getByText("built in").waitFor();
    await row.filter({ hasText: /process\s*deno/ }).waitFor();

    await row.click();
    const detail = page.getByRole("complementary", { name: "Worker greeter" });
    await detail.getByText("workers/greeter").first().waitFor();
    assert.match(page.url(), /\/workers\/greeter$/);
    const pid = await factOf(page, "Pid").innerText();
    await detail.getByRole("button", { name: "Stop", exact: true }).click();
    await page.getByText("greeter is stopped").waitFor();
    await detail.getByRole("button", { name: "Start", exact: true }).click();
    await row.getByText("ready").waitFor();
    await detail.getByRole("button", { name: "Restart", exact: true }).click();
    await page.getByText("greeter is restarted").waitFor();
    await row.getByText("ready").waitFor();
    await factOf(page, "Pid").filter({ hasNotText: pid }).waitFor();

    await detail.getByRole("tab", { name: "Functions" }).click();
    await detail.getByRole("link", { name: "greeter::hello" }).waitFor();
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the log of a worker follows what it prints, live",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start(MANAGED);
    const page = await world.openPage("/workers/greeter?tab=logs");
    await rowOf(page, "greeter").getByText("ready").waitFor();

    await world.call("greeter::hello", { name: "Ada" });
    await page.getByText("greeting Ada").waitFor();
    await world.call("greeter::hello", { name: "Grace" });
    await page.getByText("greeting Grace").waitFor();

    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "a worker that fails shows why and what it printed last",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start(MANAGED);
    const page = await world.openPage("/workers/broken");
    const detail = page.getByRole("complementary", { name: "Worker broken" });

    await detail.locator(".remark").getByText("exit code 3").waitFor();
    await detail.locator(".remark").getByText("about to fail").first().waitFor();
    await page.getByRole("button", { name: "Trouble" }).click();
    await rowOf(page, "broken").waitFor();
    assert.equal(await rowOf(page, "engine-state").count(), 0);
  },
});

Deno.test({
  name: "a page without the user's key cannot stop a worker, and says how it could",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start(MANAGED);
    const page = await world.openPage("/workers/greeter", { operator: false });
    const detail = page.getByRole("complementary", { name: "Worker greeter" });
    await detail.getByText("workers/greeter").first().waitFor();

    assert.ok(await detail.getByRole("button", { name: "Stop", exact: true }).isDisabled());
    await detail.getByText("engine console --open").waitFor();
  },
});

Deno.test({
  name: "workers come, work and go before one's eyes, and what they use is measured",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/workers");
    await rowOf(page, "engine").waitFor();

    const worker = await world.connect("shop", "Sells things");
    const done = Promise.withResolvers<void>();
    worker.registerFunction("shop::wait", () => done.promise.then(() => null));
    const row = rowOf(page, "shop");
    await row.getByText("connected").waitFor();
    const call = world.call("shop::wait");
    await row.locator(".cell", { hasText: /^1$/ }).nth(1).waitFor(); // One function, one in flight.
    done.resolve();
    await call;
    await rowOf(page, "engine").getByRole("img", { name: "Memory of engine" }).waitFor();

    await worker.shutdown();
    await row.waitFor({ state: "detached" });
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "the search of the workers lies in the address, and says so when nothing fits",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/workers?q=state");
    await rowOf(page, "engine-state").waitFor();
    await page.locator(`[role=grid][aria-rowcount="2"]`).waitFor();

    await page.getByLabel("Search workers").fill("nothing like it");
    await page.getByText("No worker fits").waitFor();
    assert.match(page.url(), /q=nothing/);
  },
});

Deno.test({
  name: "the settings show where each value is from, and follow an edit of the file",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const page = await world.openPage("/settings");
    const port = page.getByRole("row", { name: "engine.port" });
    await port.getByText("line 2").waitFor();
    await page.getByRole("row", { name: "engine.host" }).getByText("default").waitFor();

    const path = `${world.directory}/config.yaml`;
    const text = await Deno.readTextFile(path);
    await Deno.writeTextFile(
      path,
      text.replace("engine:\n", "engine:\n  validate_payloads: false\n"),
    );
    await page.getByRole("row", { name: "engine.validate_payloads" }).getByText("line 2").waitFor();
    await port.getByText("line 3").waitFor();

    await page.getByLabel("Search settings").fill("validate_payloads");
    await page.locator(`[role=grid][aria-rowcount="2"]`).waitFor();
    assert.deepEqual(world.problems, []);
  },
});

Deno.test({
  name: "a thousand workers with gauges that tick keep the page quick",
  ...browserTest,
  async fn() {
    await using it = await ScriptedConsole.start(consolePage);
    await using browser = await HeadlessBrowser.start();
    const ids = Array.from({ length: 1_000 }, (_, at) => `w${String(at).padStart(4, "0")}`);
    const workers = ids.map((id) =>
      workerStatus({ name: id, replicas: [replicaStatus({ worker_ids: [id] })] })
    );
    it.functions.set("engine::supervisor::list", () => ({ workers } as unknown as Json));
    it.functions.set("engine::workers::list", () => ({ workers: ids.map(lineOf) }));
    await using open = await browser.open(`${it.url}/workers`);
    const { page } = open;
    await page.getByRole("link", { name: "w0000" }).waitFor();

    await page.locator(`[role=grid][aria-rowcount="1001"]`).waitFor();
    const drawn = await page.locator(".virtual-all [role=row]").count();
    assert.ok(drawn < 60, `${drawn} rows are in the document`);
    for (let second = 1; second <= 5; second++) {
      it.fire("engine::metrics-sampled", sample(ids, second));
    }
    await page.getByText("5.00 MiB").first().waitFor();
    await page.getByRole("grid").focus();
    await page.keyboard.press("End");
    await page.getByRole("link", { name: "w0999" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("complementary", { name: "Worker w0999" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("complementary").waitFor({ state: "detached" });

    assert.deepEqual(open.problems, []);
  },
});

function rowOf(page: Page, name: string) {
  return page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
}

/** What the detail of a worker says of something. */
function factOf(page: Page, name: string) {
  return page.locator(".pairs > div").filter({ has: page.getByText(name, { exact: true }) })
    .locator("dd");
}

function manifest(name: string): string {
  return `name: ${name}\nruntime:\n  kind: typescript\n  package_manager: deno\n  entry: worker.ts\n`;
}

function lineOf(id: string): Json {
  return {
    id,
    name: id,
    namespace: "default",
    description: null,
    version: "0.1.0",
    runtime: "deno",
    os: "linux",
    status: "connected",
    function_count: 1,
    connected_at_ms: 1,
    active_invocations: 0,
    isolation: "process",
    ip_address: "127.0.0.1",
  };
}

function sample(ids: readonly string[], second: number): Json {
  const workers = ids.map((worker_id) => ({
    worker_id,
    name: worker_id,
    in_flight: second,
    memory_bytes: second * 1024 * 1024,
    cpu_percent: second,
    event_loop_lag_ms: 1,
    queued_bytes: 0,
  }));
  const engine = { memory_bytes: 1, cpu_percent: 1, event_loop_lag_ms: 1 };
  return { at_ms: second * 1_000, interval_ms: 1_000, engine, functions: [], workers };
}

Deno.test({
  name: "the log of a worker shows the fields of its lines",
  ...browserTest,
  async fn() {
    await using world = await ConsoleWorld.start();
    const log = new Logger(await world.connect("shop"));
    log.info("Order received", { product: "tea", count: 2 });
    const page = await world.openPage("/workers/shop~?tab=logs");

    const line = page.getByRole("listitem").filter({ hasText: "Order received" });
    await line.getByText("product=tea count=2").waitFor();

    assert.deepEqual(world.problems, []);
  },
});
