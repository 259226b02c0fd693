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
  console.log("ready");
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await load(ask, JSON.parse(line))));
  }
  process.exit();
}

async function load(ask, { window, bytes, seconds }) {
  const payload = { text: "x".repeat(bytes) };
  const samples = new Float64Array(SAMPLES_MAX);
  const start = performance.now();
  const end = start + seconds * 1_000;
  let calls = 0;
  const lane = async () => {
    for (let before = start; before < end;) {
      const { text } = await ask(payload);
      if (text.length !== bytes) throw new Error(`an answer of ${text.length} characters`);
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
