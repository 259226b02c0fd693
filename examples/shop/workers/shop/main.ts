// Takes orders: changes stock and order in one transaction, then has a mail sent by a queue.
import { EngineError, registerWorker } from "engine-sdk";

interface Article {
  count: number;
  cents: number;
}

interface Order {
  sku: string;
  count: number;
  email: string;
  total: string;
}

interface Put {
  path_params: { id: string };
  body: Partial<Order> | null;
}

const worker = registerWorker();
const shop = await worker.configuration<{ currency: string; shipping_cents: number }>("shop", {
  schema: {
    type: "object",
    required: ["currency", "shipping_cents"],
    properties: {
      currency: { enum: ["EUR", "USD"] },
      shipping_cents: { type: "integer", minimum: 0 },
    },
  },
  initial_value: { currency: "EUR", shipping_cents: 490 },
});

function refuse(status_code: number, code: string, message: string): never {
  throw new EngineError(code, message, { details: { status_code } });
}

// The client chooses the id, so it can send the same order again when it got no answer.
worker.registerFunction("orders::put", async ({ path_params: { id }, body }: Put) => {
  const { sku, count, email } = body ?? {};
  if (typeof sku !== "string" || typeof email !== "string") {
    refuse(400, "invalid_order", "sku and email: expected texts");
  }
  if (!Number.isInteger(count) || count! < 1) {
    refuse(400, "invalid_order", "count: expected a whole number from 1");
  }
  const order = await findOrder(id) ?? await placeOrder(id, sku, count!, email);
  // A second job with the same id is not added.
  await worker.enqueue({
    function_id: "mail::send",
    payload: { to: order.email, text: `Order ${id}: ${order.total}` },
    queue: "mail",
    id: `order-${id}`,
  });
  return { status_code: 201, body: order };
}, { description: "Places an order" });

worker.registerFunction("orders::get", async ({ path_params: { id } }: Put) => {
  return await findOrder(id) ?? refuse(404, "no_such_order", `No order ${id}`);
}, { description: "Returns an order" });

async function findOrder(id: string): Promise<Order | undefined> {
  const payload = { scope: "orders", key: id };
  return await worker.trigger<object, Order | undefined>({ function_id: "state::get", payload });
}

async function placeOrder(id: string, sku: string, count: number, email: string): Promise<Order> {
  for (;;) {
    const entry = await worker.trigger<object, { value: Article; version: number } | undefined>({
      function_id: "state::entry",
      payload: { scope: "stock", key: sku },
    });
    if (!entry) refuse(404, "no_such_article", `No article ${sku}`);
    const { value: article, version } = entry;
    if (article.count < count) refuse(409, "out_of_stock", `Only ${article.count} left`);
    const cents = article.cents * count + shop.value.shipping_cents;
    const total = `${(cents / 100).toFixed(2)} ${shop.value.currency}`;
    const order = { sku, count, email, total };
    const left = { ...article, count: article.count - count };
    const operations = [
      { type: "set", scope: "stock", key: sku, value: left, expected_version: version },
      { type: "set", scope: "orders", key: id, value: order, expected_version: 0 },
    ];
    try {
      await worker.trigger({ function_id: "state::transaction", payload: { operations } });
      return order;
    } catch (error) {
      if (!(error instanceof EngineError) || error.code !== "version_mismatch") throw error;
      const placed = await findOrder(id); // The same order came twice at the same time.
      if (placed) return placed;
    }
  }
}

for (
  const [http_method, function_id] of [["PUT", "orders::put"], ["GET", "orders::get"]] as const
) {
  worker.registerTrigger({
    type: "http",
    function_id,
    config: { http_method, api_path: "/orders/:id" },
  });
}
