/**
 * A worker that enqueues jobs and does them, with the real SDK, in a process of its own.
 *
 * It enqueues as lines of JSON on standard input say, each job once the one before it has reached
 * the handler, and replies to each line with one on standard output. It says `ready` once it is
 * connected and ends with its standard input. The arguments are the engine's address and the SDK's
 * module.
 *
 * @module
 */
import type { registerWorker, Worker } from "../../mod.ts";

/** Jobs that are to be enqueued. */
export interface JobOrder {
  /** Jobs on their way to the handler at the same time. */
  readonly window: number;
  /** Size of the payload's text. */
  readonly bytes: number;
  readonly seconds: number;
}

/** What was found. */
export interface JobAnswer {
  /** Jobs that were enqueued and done, per second. */
  readonly rate: number;
  /** From `enqueue` to the handler. */
  readonly p50_us: number;
  readonly p99_us: number;
}

const FUNCTION_ID = "bench::job";

/** Jobs that wait for their handler, by number. */
type Waiting = Map<number, () => void>;

async function load(worker: Worker, waiting: Waiting, order: JobOrder): Promise<JobAnswer> {
  const text = "x".repeat(order.bytes);
  const samples: number[] = [];
  const start = performance.now();
  const end = start + order.seconds * 1_000;
  let number = 0;
  const lane = async (): Promise<void> => {
    for (let before = start; before < end;) {
      const job = number++;
      const handled = new Promise<void>((resolve) => waiting.set(job, resolve));
      const payload = { job, text };
      // Waits for the receipt too, so that no two enqueues of a lane overlap.
      const receipt = worker.enqueue({ function_id: FUNCTION_ID, payload });
      await handled;
      samples.push(performance.now() - before);
      await receipt;
      before = performance.now();
    }
  };
  await Promise.all(Array.from({ length: order.window }, lane));
  const seconds = (performance.now() - start) / 1_000;
  const sorted = samples.sort((a, b) => a - b);
  const quantile = (part: number) => sorted[Math.floor(part * sorted.length)]! * 1_000;
  return { rate: samples.length / seconds, p50_us: quantile(0.5), p99_us: quantile(0.99) };
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

async function main([url, sdk = "../../mod.ts"]: readonly string[]): Promise<void> {
  const module: { registerWorker: typeof registerWorker } = await import(sdk);
  const worker = module.registerWorker(url, { workerName: "bench-jobs", timeoutMs: 20_000 });
  const waiting: Waiting = new Map();
  worker.registerFunction(FUNCTION_ID, ({ job }: { job: number }) => {
    waiting.get(job)?.();
    waiting.delete(job);
  });
  while (worker.connectionState !== "connected") {
    await new Promise<void>((resolve) => {
      const stop = worker.onConnectionState(() => (stop(), resolve()));
    });
  }
  console.log("ready");
  for await (const line of lines()) {
    console.log(JSON.stringify(await load(worker, waiting, JSON.parse(line))));
  }
  await worker.shutdown();
}

if (import.meta.main) await main(Deno.args);
