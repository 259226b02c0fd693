/**
 * Several engines on one NATS, each a process of its own, for tests from end to end.
 *
 * @module
 */
import type { Worker } from "../../mod.ts";
import { EngineProcess, freePort } from "../fakes/engine_process.ts";
import { until } from "../fakes/until.ts";

/** Where an engine finds the others, and what it is beside them. */
export interface ClusterOptions {
  readonly nats: readonly string[];
  /** Further lines below `workers:`. */
  readonly workers?: string;
  /** Further lines below `engine.cluster:`, such as `    far_calls: 0\n`. */
  readonly settings?: string;
  /** Where the state is kept. Default: each engine keeps its own. */
  readonly log?: string;
}

/** Starts an engine of the cluster. */
export function startEngine(
  name: string,
  { nats, workers = "", settings = "", log = "none" }: ClusterOptions,
): Promise<EngineProcess> {
  const cluster = `  cluster:\n    name: test\n    nats: ${JSON.stringify(nats)}\n` +
    `    engine_name: ${name}\n    log: ${log}\n${settings}`;
  return EngineProcess.start(workers, cluster);
}

/** Starts the engines `a` and `b`, both with a built-in worker that opens a port. */
export async function startPair(builtin: string, options: ClusterOptions) {
  const start = async (name: string) => {
    const port = freePort();
    const workers = `  - name: ${builtin}\n    config: { port: ${port} }\n`;
    return { port, engine: await startEngine(name, { ...options, workers }) };
  };
  const [a, b] = await Promise.all([start("a"), start("b")]);
  return {
    a: a.engine,
    b: b.engine,
    ports: [a.port, b.port],
    [Symbol.asyncDispose]: async () => {
      await using _a = a.engine;
      await using _b = b.engine;
    },
  };
}

/** Waits until a function can be called. */
export async function untilCallable(worker: Worker, function_id: string): Promise<void> {
  await until(async () => {
    await worker.trigger({ function_id, payload: null, timeoutMs: 2_000 });
    return true;
  }, `${function_id} cannot be called`);
}

/** Starts so many calls that hang; says how each of them ended and how long the last took. */
export function hang(worker: Worker, function_id: string, count: number) {
  const codes = new Set<string>();
  const ends = Array.from(
    { length: count },
    () =>
      worker.trigger({ function_id, payload: null, timeoutMs: 60_000 }).then(
        () => codes.add("ok"),
        (thrown: { code?: string }) => codes.add(thrown.code ?? String(thrown)),
      ),
  );
  return { codes, all: Promise.all(ends) };
}
