/**
 * The requester of a measurement, whatever carries its requests.
 *
 * Each program in this folder is one way to ask a function in another process, on Node, where the
 * packages it uses are at home: its first argument says which part it is, `requester`, `responder`
 * or `broker`, the rest where to find the others. The requester takes an order per line of
 * standard input, keeps so many requests in flight for so long, and prints what it found. Every
 * way sends the same object as JSON and gets it back parsed, so all do the same at both ends.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";

/** Times kept for the quantiles; of more requests, the last ones. */
const SAMPLES_MAX = 1 << 16;

/**
 * Says `ready`, follows orders until standard input ends, and ends the process. `ask` sends a
 * payload and returns a promise of what came back.
 */
export async function followOrders(ask) {
  await followOperations({
    echo: async (_number, sent) => {
      const { text } = await ask({ text: sent });
      if (text.length !== sent.length) throw new Error(`an answer of ${text.length} characters`);
    },
  });
}

/**
 * The same for several operations. An order names one, `echo` if it names none; an operation gets
 * the number of the run, unique in the process, and a text, and returns a promise of its end.
 */
export async function followOperations(operations) {
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    const { operation = "echo", ...order } = JSON.parse(line);
    console.log(JSON.stringify(await load(operations[operation], order)));
  }
  process.exit();
}

/** Runs that have been started, by the operations of this process. */
let runs = 0;

async function load(operation, { window, bytes, seconds }) {
  const text = "x".repeat(bytes);
  const samples = new Float64Array(SAMPLES_MAX);
  const start = performance.now();
  const end = start + seconds * 1_000;
  let calls = 0;
  const lane = async () => {
    for (let before = start; before < end;) {
      await operation(runs++, text);
      const after = performance.now();
      samples[calls++ % SAMPLES_MAX] = after - before;
      before = after;
    }
  };
  await Promise.all(Array.from({ length: window }, lane));
  const took = (performance.now() - start) / 1_000;
  const sorted = samples.subarray(0, Math.min(calls, SAMPLES_MAX)).sort();
  const quantile = (part) => sorted[Math.floor(part * sorted.length)] * 1_000;
  return { calls, seconds: took, p50_us: quantile(0.5), p99_us: quantile(0.99) };
}

/** What waits for an event that carries its number: `wait` before it, `arrived` when it comes. */
export class Arrivals {
  #waiting = new Map();

  /** Resolves after the number has arrived so many times. */
  wait(number, times = 1) {
    return new Promise((resolve) => this.#waiting.set(number, { left: times, resolve }));
  }

  /** Counts an arrival. */
  arrived(number) {
    const entry = this.#waiting.get(number);
    if (entry === undefined || --entry.left > 0) return;
    this.#waiting.delete(number);
    entry.resolve();
  }
}
