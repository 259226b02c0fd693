/**
 * The engine's queue, state and streams, with its SDK on Deno, each its default way:
 * `WORKER_URL SDK_MODULE BROWSER_MODULE SUBSCRIBERS`.
 *
 * @module
 */
import process from "node:process";
import { Arrivals, followOperations } from "./requester.mjs";

/** Keys that are set and got, in turn. */
const KEYS = 1_000;
const GROUP = { stream_name: "bench", group_id: "room" };

const [url, sdk, browser, subscribers] = process.argv.slice(2);
const { registerWorker } = await import(sdk);
const { connectStreams } = await import(browser);
const worker = registerWorker(url, { workerName: "bench-services", timeoutMs: 20_000 });
const handled = new Arrivals();
const delivered = new Arrivals();
const queue = { name: "bench-done", concurrency: 1_000 };
worker.registerFunction("bench::job", ({ number }) => handled.arrived(number), { queue });
const call = (function_id, payload) => worker.trigger({ function_id, payload });
await Promise.all(Array.from({ length: Number(subscribers) }, follow));

function follow() {
  const { promise, resolve } = Promise.withResolvers();
  void (async () => {
    const events = connectStreams(`${url}/stream`).subscribe(GROUP.stream_name, GROUP.group_id);
    for await (const event of events) {
      if (event.type === "sync") resolve();
      else if (event.type === "event") delivered.arrived(event.data.number);
    }
  })();
  return promise;
}

await followOperations({
  // No worker has the function, so these wait.
  enqueue: (number, text) =>
    worker.enqueue({ function_id: "bench::absent", payload: { number, text } }),
  done: async (number, text) => {
    const done = handled.wait(number);
    const job = { function_id: "bench::job", payload: { number, text }, queue: queue.name };
    await worker.enqueue(job);
    await done;
  },
  set: (number, text) =>
    call("state::set", { scope: "bench", key: `k${number % KEYS}`, value: text }),
  get: (number) => call("state::get", { scope: "bench", key: `k${number % KEYS}` }),
  publish: async (number, text) => {
    const all = delivered.wait(number, Number(subscribers));
    await call("stream::send", { ...GROUP, type: "message", data: { number, text } });
    await all;
  },
});
