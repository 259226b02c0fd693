/**
 * A few workers that call each other, for tests of traces, logs and the flow: an order passes from
 * HTTP through three workers to the state.
 *
 * @module
 */
import { EngineError, Logger } from "../../mod.ts";
import type { ConsoleWorld } from "./console_browser.ts";

interface Order {
  readonly product: string;
  readonly count: number;
}

/** Starts `web`, `shop` and `stock`; orders of more than 50 fail with `out_of_stock`. */
export async function startOrderShop(world: ConsoleWorld): Promise<void> {
  const stock = await world.connect("stock");
  stock.registerFunction("stock::take", async ({ product, count }: Order) => {
    if (count > 50) throw new EngineError("out_of_stock", `Not enough ${product}`);
    const payload = { scope: "stock", key: product, value: count };
    await stock.trigger({ function_id: "state::set", payload });
    return { taken: count };
  });
  const shop = await world.connect("shop");
  const log = new Logger(shop);
  shop.registerFunction("shop::order", async (payload: Order) => {
    log.info("Order received", { product: payload.product, password: "hunter2" });
    const taken = await shop.trigger({ function_id: "stock::take", payload });
    log.debug("Order done");
    return { taken, card_token: "4711" };
  });
  const web = await world.connect("web");
  web.registerFunction("web::order", async ({ body }: { body: Order }) => {
    const result = await web.trigger({ function_id: "shop::order", payload: { ...body } });
    return { status_code: 201, body: result };
  });
  const config = { api_path: "/orders", http_method: "POST" };
  web.registerTrigger({ type: "http", function_id: "web::order", config });
  const idle = { function_id: "engine::functions::info", payload: { function_id: "web::order" } };
  await web.trigger(idle); // Everything before it is registered by then.
}

/** Sends an order over HTTP; the status of the answer. */
export async function order(world: ConsoleWorld, product: string, count: number): Promise<number> {
  const response = await fetch(`${world.httpUrl}/orders`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ product, count }),
  });
  await response.body?.cancel();
  return response.status;
}
