// Serves the page, the client of streams that it imports, and the address of the streams.
import { registerWorker } from "engine-sdk";
import client from "engine-sdk/browser.js" with { type: "text" };
import page from "./page.html" with { type: "text" };

const worker = registerWorker();

function route(api_path: string, function_id: string): void {
  worker.registerTrigger({ type: "http", function_id, config: { api_path } });
}

function text(type: string, body: string) {
  return { headers: { "content-type": `${type}; charset=utf-8` }, body };
}

worker.registerFunction("page::index", () => text("text/html", page));
worker.registerFunction("page::client", () => text("text/javascript", client));
worker.registerFunction("page::streams", async () => {
  const function_id = "engine::stream::stats";
  const { url } = await worker.trigger<object, { url: string }>({ function_id, payload: {} });
  return { port: new URL(url).port };
});
route("/", "page::index");
route("/engine_sdk_browser.js", "page::client");
route("/streams", "page::streams");
