/**
 * One end of a call, with the real SDK, in a process of its own.
 *
 * The first argument says which: `worker` offers `bench::echo`, `caller` calls it as lines of
 * JSON on standard input say, and replies to each with one on standard output. Both say `ready`
 * once they are connected and end with their standard input. The second argument is the engine's
 * address, the third the SDK's module, so that two versions of it can be compared.
 *
 * @module
 */
import type { registerWorker, Worker } from "../../mod.ts";

/** Load that a caller produces. */
export interface LoadOrder {
  /** Calls in flight. */
  readonly window: number;
  /** Size of the payload's text. */
  readonly bytes: number;
  readonly seconds: number;
}

/** What a caller found. */
export interface LoadAnswer {
  readonly calls: number;
  /** Between the first call and the last result. */
  readonly seconds: number;
  readonly p50_us: number;
  readonly p99_us: number;
}

const FUNCTION_ID = "bench::echo";
/** Times kept for the quantiles; of more calls, the last ones. */
const SAMPLES_MAX = 1 << 16;

/** Keeps so many calls in flight for so long. */
async function load(worker: Worker, order: LoadOrder): Promise<LoadAnswer> {
  const payload = { text: "x".repeat(order.bytes) };
  const samples = new Float64Array(SAMPLES_MAX);
  const start = performance.now();
  const end = start + order.seconds * 1_000;
  let calls = 0;
  const lane = async (): Promise<void> => {
    let before = start;
    while (before < end) {
      await worker.trigger({ function_id: FUNCTION_ID, payload });
      const after = performance.now();
      samples[calls++ % SAMPLES_MAX] = after - before;
      before = after;
    }
  };
  await Promise.all(Array.from({ length: order.window }, lane));
  const seconds = (performance.now() - start) / 1_000;
  const sorted = samples.subarray(0, Math.min(calls, SAMPLES_MAX)).toSorted();
  const quantile = (part: number) => sorted[Math.floor(part * sorted.length)]! * 1_000;
  return { calls, seconds, p50_us: quantile(0.5), p99_us: quantile(0.99) };
}

/** Lines of standard input, until it ends. */
async function* lines(): AsyncGenerator<string> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    yield* parts;
  }
}

async function main([role, url, sdk = "../../mod.ts"]: readonly string[]): Promise<void> {
  const module: { registerWorker: typeof registerWorker } = await import(sdk);
  const worker = module.registerWorker(url, { workerName: `bench-${role}`, timeoutMs: 20_000 });
  if (role === "worker") worker.registerFunction(FUNCTION_ID, (payload) => payload);
  while (worker.connectionState !== "connected") {
    await new Promise<void>((resolve) => {
      const stop = worker.onConnectionState(() => (stop(), resolve()));
    });
  }
  console.log("ready");
  for await (const line of lines()) {
    console.log(JSON.stringify(await load(worker, JSON.parse(line))));
  }
  await worker.shutdown();
}

if (import.meta.main) await main(Deno.args);
