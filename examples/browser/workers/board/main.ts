// Serves the page with the SDK, and passes each note on to all pages that are open.
import { registerWorker } from "engine-sdk";
import sdk from "engine-sdk" with { type: "text" };
import page from "./page.html" with { type: "text" };

const NOTE_CHARS_MAX = 500;

const worker = registerWorker();

worker.registerFunction("board::write", async ({ text }: { text: string }) => {
  const payload = { text: `${text}`.slice(0, NOTE_CHARS_MAX) };
  const { functions } = await worker.trigger<object, { functions: { function_id: string }[] }>({
    function_id: "engine::functions::list",
    payload: { prefix: "tab::" },
  });
  const shown = await Promise.allSettled(functions.map(({ function_id }) => {
    // A page that is asleep does not answer; the others do not wait for it.
    return worker.trigger({ function_id, payload, timeout_ms: 2_000 });
  }));
  return { pages: shown.filter(({ status }) => status === "fulfilled").length };
}, { description: "Shows a note on all pages that are open" });

function file(api_path: string, type: string, body: string): void {
  const function_id = `files::${api_path}`;
  const headers = { "content-type": `${type}; charset=utf-8` };
  worker.registerFunction(function_id, () => ({ headers, body }));
  worker.registerTrigger({ type: "http", function_id, config: { api_path } });
}

file("/", "text/html", page);
file("/engine_sdk.js", "text/javascript", sdk);

worker.registerFunction("files::listener", async () => {
  const { endpoints } = await worker.trigger<
    object,
    { endpoints: { name: string; url: string }[] }
  >({
    function_id: "engine::supervisor::info",
    payload: {},
  });
  return { url: endpoints.find(({ name }) => name === "workers:pages")?.url };
});
worker.registerTrigger({
  type: "http",
  function_id: "files::listener",
  config: { api_path: "/listener" },
});
