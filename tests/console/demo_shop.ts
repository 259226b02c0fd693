/**
 * A small shop on an engine: workers that call each other, fail now and then, keep state and write
 * logs, so that the console has something to show.
 *
 * @module
 */
import { EngineError, type Json, Logger, type Worker } from "../../mod.ts";
import type { ConsoleWorld, WorldOptions } from "./console_browser.ts";

/** Workers that the engine of the shop runs itself. */
export const SHOP_OPTIONS: WorldOptions = {
  workers: `  - name: mailer
    path: ./workers/mailer
    isolation: process
  - name: reports
    path: ./workers/reports
    isolation: process
  - name: engine-configuration
    config:
      environment: [SHOP_*]
  - name: engine-stream
    config:
      port: 0
  - name: engine-cron
  - name: engine-queue
    config:
      queues:
        invoices: { max_retries: 2, backoff_ms: 200, concurrency: 4 }
`,
  files: {
    "workers/mailer/engine.worker.yaml": manifest("mailer"),
    "workers/mailer/deno.json":
      '{ "imports": { "engine-sdk": "../../.engine/sdk/typescript/engine_sdk.js" } }\n',
    "workers/mailer/worker.ts": mailer(),
    "workers/reports/engine.worker.yaml": manifest("reports"),
    "workers/reports/worker.ts": 'throw new Error("REPORTS_BUCKET is not set");\n',
  },
};

const ORDER = {
  type: "object",
  required: ["customer", "items"],
  properties: {
    customer: { type: "string", description: "E-mail of who orders" },
    items: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["sku", "count"],
        properties: { sku: { type: "string" }, count: { type: "integer", minimum: 1 } },
      },
    },
    express: { type: "boolean", default: false },
  },
};

/** What can be configured of the worker `orders`. */
const ORDERS_CONFIGURATION = {
  type: "object",
  required: ["port", "currency"],
  properties: {
    port: { type: "integer", minimum: 1, maximum: 65535, description: "Where it listens" },
    currency: { enum: ["EUR", "USD"], description: "Of all prices" },
    support: { type: "string", format: "email" },
    bank_key: { type: "string", description: "Of the bank", "x-secret": true },
    express: {
      type: "object",
      description: "Orders for the next day",
      properties: {
        open: { type: "boolean", default: false },
        fee: { type: "number", minimum: 0, default: 4.9 },
      },
    },
    warehouses: {
      type: "array",
      items: {
        type: "object",
        required: ["host"],
        properties: { host: { type: "string" }, token: { type: "string", "x-secret": true } },
      },
    },
  },
};

/** Connects the shop's workers. */
export async function openShop(world: ConsoleWorld): Promise<Worker> {
  await openWarehouse(await world.connect("inventory", "What is in the warehouse"));
  const payments = await world.connect("payments", "Talks to the bank");
  openPayments(payments);
  openOffice(payments);
  const orders = await world.connect("orders", "Takes and fulfils orders");
  openOrders(orders);
  await configureOrders(orders);
  return orders;
}

/** Lets customers come until `signal` says stop. */
export async function letCustomersCome(
  worker: Worker,
  world: ConsoleWorld,
  signal: AbortSignal,
): Promise<void> {
  for (let n = 0; !signal.aborted; n++) {
    const skus = ["tea-green", "tea-black", "mug", "teapot", "honey"];
    const order = {
      customer: `customer${n % 23}@example.com`,
      items: [{ sku: skus[n % 5]!, count: 1 + n % 3 }],
      card_token: "tok_4242424242",
    };
    const paths = [
      () => worker.trigger({ function_id: "orders::place", payload: order }),
      () => worker.trigger({ function_id: "inventory::reserve", payload: order.items[0]! }),
      () => fetch(`${world.httpUrl}/orders/${n % 40}`).then((answer) => answer.body?.cancel()),
    ];
    // Of each fourth customer the address of the invoice is missing.
    const payload = n % 60 === 0 ? { number: n } : { number: n, to: order.customer };
    const job = { function_id: "payments::invoice", payload, queue: "invoices" };
    if (n % 15 === 0) worker.enqueue(job).catch(() => {});
    if (n % 50 === 0) {
      worker.trigger({ function_id: "orders::audit", payload: { number: n } }).catch(() => {});
    }
    paths[n % 7 === 6 ? 2 : n % 3 === 2 ? 1 : 0]!().catch(() => {}); // Some orders fail.
    await new Promise((resolve) => setTimeout(resolve, 12 + 10 * Math.sin(n / 90)));
  }
}

async function openWarehouse(worker: Worker): Promise<void> {
  const log = new Logger(worker, "inventory");
  worker.registerFunction("inventory::reserve", async (payload: Json) => {
    const { sku, count } = payload as { sku: string; count: number };
    await pause(2 + Math.random() * 6);
    if (Math.random() < 0.03) {
      log.warn("Out of stock", { sku });
      throw new EngineError("out_of_stock", `There is no ${sku} left`, { details: { sku } });
    }
    await worker.trigger({
      function_id: "state::set",
      payload: { scope: "stock", key: sku, value: { sku, reserved: count, at: Date.now() } },
    });
    return { sku, reserved: count };
  }, { description: "Sets goods aside for an order" });
  worker.registerFunction("inventory::list", () => ["tea-green", "tea-black", "mug", "teapot"], {
    description: "What can be ordered",
  });
  await worker.trigger({
    function_id: "state::set",
    payload: { scope: "stock", key: "mug", value: { sku: "mug", reserved: 0 } },
  });
}

function openPayments(worker: Worker): void {
  const log = new Logger(worker, "payments");
  worker.registerFunction("payments::charge", async (payload: Json) => {
    const { amount } = payload as { amount: number };
    await pause(8 + Math.random() * 25 + (Math.random() < 0.04 ? 180 : 0));
    if (Math.random() < 0.05) {
      log.error("The bank said no", { amount });
      throw new EngineError("card_declined", "The bank declined the card");
    }
    log.info("Charged", { amount });
    return { charge: crypto.randomUUID(), amount };
  }, {
    description: "Charges a card",
    request_format: {
      type: "object",
      required: ["amount"],
      properties: {
        amount: { type: "number", exclusiveMinimum: 0 },
        card_token: { type: "string" },
      },
    },
  });
}

/** Jobs and times: invoices by a queue, and a report every hour. */
function openOffice(worker: Worker): void {
  worker.registerFunction("payments::invoice", async ({ to }: { to?: string }) => {
    await pause(400 + Math.random() * 800);
    if (to === undefined) throw new EngineError("no_address", "The invoice has no address");
  }, { description: "Mails an invoice" });
  worker.registerFunction("payments::report", () => ({ invoices: 12 }), {
    description: "Says what was charged",
  });
  worker.registerTrigger({
    type: "cron",
    function_id: "payments::report",
    config: { expression: "*/10 * * * * *", timezone: "Europe/Berlin" },
  });
}

function openOrders(worker: Worker): void {
  const log = new Logger(worker, "orders");
  let count = 0;
  worker.registerFunction("orders::place", async (payload: Json) => {
    const order = payload as { customer: string; items: Json[]; card_token: string };
    const number = count++ % 40;
    for (const item of order.items) {
      await worker.trigger({ function_id: "inventory::reserve", payload: item });
    }
    await worker.trigger({
      function_id: "payments::charge",
      payload: { amount: 12.5 * order.items.length, card_token: order.card_token },
    });
    await worker.trigger({
      function_id: "state::set",
      payload: { scope: "orders", key: String(number), value: { number, ...order } },
    });
    await worker.trigger({
      function_id: "stream::set",
      payload: {
        stream_name: "orders",
        group_id: "today",
        item_id: String(number),
        data: { customer: order.customer, state: "placed" },
      },
    });
    worker.trigger({ function_id: "mailer::confirm", payload: { to: order.customer } }).catch(
      () => log.warn("No confirmation was sent", { to: order.customer }),
    );
    log.info(`Order ${number} is placed`, { customer: order.customer });
    return { number };
  }, { description: "Takes an order, reserves and charges", request_format: ORDER });
  worker.registerFunction("orders::show", async (payload: Json) => {
    const { path_params } = payload as { path_params: { id: string } };
    const order = await worker.trigger({
      function_id: "state::get",
      payload: { scope: "orders", key: path_params.id },
    });
    return order === null
      ? { status_code: 404, body: { error: "no such order" } }
      : { status_code: 200, body: order as Json };
  }, { description: "One order, over HTTP" });
  worker.registerTrigger({
    type: "http",
    function_id: "orders::show",
    config: { api_path: "orders/:id", http_method: "GET" },
  });
  worker.registerTrigger({
    type: "http",
    function_id: "orders::place",
    config: { api_path: "orders", http_method: "POST" },
  });
  openAudit(worker);
}

/** A function with a bug, and a trigger whose type no worker provides. */
function openAudit(worker: Worker): void {
  worker.registerFunction("orders::audit", async ({ number }: { number: number }) => {
    await pause(3);
    const order = [].find(() => true) as { total: number } | undefined;
    return { number, total: order!.total };
  }, { description: "Checks the total of an order" });
  worker.registerTrigger({ type: "webhook", function_id: "orders::audit", config: {} });
}

async function configureOrders(worker: Worker): Promise<void> {
  const value = {
    port: "${SHOP_PORT:8080}",
    currency: "EUR",
    express: { open: true, fee: 4.9 },
    bank_key: "bank-4711",
    warehouses: [{ host: "north.example", token: "n-1" }, { host: "south.example", token: "s-1" }],
  };
  const register = { id: "orders", name: "Orders", description: "How orders are taken" };
  await worker.trigger({
    function_id: "configuration::register",
    payload: { ...register, schema: ORDERS_CONFIGURATION, initial_value: value },
  });
  await worker.trigger({
    function_id: "configuration::set",
    payload: { id: "orders", value: { ...value, express: { open: true, fee: 5.9 } } },
  });
}

function manifest(name: string): string {
  return `name: ${name}\nruntime:\n  kind: typescript\n  package_manager: deno\n  entry: worker.ts\n`;
}

function mailer(): string {
  return `import { registerWorker } from "engine-sdk";
const worker = registerWorker(Deno.env.get("ENGINE_URL")!, { workerName: "mailer" });
worker.registerFunction("mailer::confirm", async ({ to }: { to: string }) => {
  console.log("confirmation to " + to);
  await new Promise((resolve) => setTimeout(resolve, 15));
  return { sent: true };
}, { description: "Mails a confirmation" });
`;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
