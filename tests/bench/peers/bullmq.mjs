/**
 * Jobs in BullMQ on Redis: `REDIS_PORT`.
 *
 * @module
 */
import process from "node:process";
import { Arrivals, followOperations } from "./requester.mjs";

const OPTIONS = { removeOnComplete: true };

const port = Number(process.argv[2]);
const { Queue, Worker } = await import("bullmq");
const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };
const handled = new Arrivals();
const waiting = new Queue("waiting", { connection });
const done = new Queue("done", { connection });
const work = ({ data }) => Promise.resolve(handled.arrived(data.number));
const worker = new Worker("done", work, {
  connection,
  concurrency: 1_024,
});
await worker.waitUntilReady();
await followOperations({
  enqueue: (number, text) => waiting.add("job", { number, text }, OPTIONS),
  done: async (number, text) => {
    const over = handled.wait(number);
    await done.add("job", { number, text }, OPTIONS);
    await over;
  },
});
