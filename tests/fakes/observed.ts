/**
 * A local engine whose `engine-observability` runs, with somebody who calls.
 *
 * @module
 */
import { localDial } from "../../engine/transport/local_connection.ts";
import { MemoryStore } from "../../engine/store/memory_store.ts";
import type { Supervision } from "../../engine/ports/supervision.ts";
import type { CallRequest } from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { observability } from "../../workers/observability/mod.ts";
import { FakeClock } from "./fake_clock.ts";
import { LocalEngine } from "./local_engine.ts";

/** An engine for one test. */
export interface Observed extends AsyncDisposable {
  readonly local: LocalEngine;
  readonly clock: FakeClock;
  /** Calls, and offers what a test wants. */
  readonly worker: Worker;
  /** The same, of the command line's rank: sees payloads. */
  readonly operator: Worker;
  /** Calls a function of the engine's and says what it answers. */
  ask(function_id: string, payload?: Json): Promise<Record<string, Json>>;
  /** The same as an operator. */
  askAsOperator(function_id: string, payload?: Json): Promise<Record<string, Json>>;
  /** Moves time on and lets everything happen. */
  pass(ms: number): Promise<void>;
  /** Ends `engine-observability`, such as to start it with another configuration. */
  stop(): Promise<void>;
}

/** Starts one; `dataDirectory` is where telemetry on disk goes. */
export async function observe(config: Json = {}, dataDirectory = "/nowhere"): Promise<Observed> {
  const clock = new FakeClock();
  const supervision = {
    info: () => ({ data_directory: dataDirectory }),
    list: () => Promise.resolve([]),
  } as unknown as Supervision;
  const local = new LocalEngine({ clock, store: new MemoryStore(), supervision });
  const stop = await local.start(observability, config);
  const worker = await local.connect("shop");
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null, operator: true };
  const dial = localDial({ open: (line) => local.router.open(line, peer) }, "operator");
  const operator = await local.connect("operator", { dial });
  const askBy = (by: Worker) => async (function_id: string, payload: Json = {}) => {
    const answer = by.trigger<Json, Record<string, Json>>({ function_id, payload });
    answer.catch(() => {}); // Whoever asked hears of it.
    await local.settle();
    return await answer;
  };
  return {
    local,
    clock,
    worker,
    operator,
    ask: askBy(worker),
    askAsOperator: askBy(operator),
    stop,
    pass: async (ms) => {
      clock.tick(ms);
      await local.settle();
    },
    [Symbol.asyncDispose]: () => local[Symbol.asyncDispose](),
  };
}

/** Calls a function; what becomes of it is a value either way. */
export async function outcome(worker: Worker, request: CallRequest<Json>): Promise<unknown> {
  return await worker.trigger<Json, Json>(request).catch((thrown) => thrown);
}
