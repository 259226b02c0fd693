/**
 * The console's worker without an engine: functions are closures, triggers are fired by hand, and
 * the line is lost and found at a word.
 *
 * @module
 */
import { EngineError, errorBody, InvocationError } from "../../sdk/typescript/wire/errors.ts";
import type { CallRequest, ConnectionState, Handler } from "../../sdk/typescript/options.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import type { ConsoleWorker } from "../../workers/console/engine_client.ts";

/** Answers calls of one function. */
export type FakeFunction = (
  payload: Json | undefined,
  request: CallRequest<Json>,
) => Json | undefined | Promise<Json | undefined>;

/** A trigger as it was registered. */
interface Registered {
  readonly type: string;
  readonly config: Json;
  readonly function_id: string;
  readonly metadata: Json;
}

/** See the top of this file. */
export class FakeConsoleWorker implements ConsoleWorker {
  /** By id; a test puts in what it needs. */
  readonly functions: Record<string, FakeFunction> = {};
  /** All calls, in order. */
  readonly calls: CallRequest<Json>[] = [];
  /** Triggers that are registered now, by id. */
  readonly triggers = new Map<string, Registered>();
  /** Of the functions that were registered. */
  readonly namespaces: (string | undefined)[] = [];
  readonly #handlers = new Map<string, Handler>();
  readonly #listeners = new Set<(state: ConnectionState) => void>();
  #state: ConnectionState = "connected";
  #count = 0;

  /** Creates a connected worker. */
  constructor() {
    this.functions["engine::register_trigger"] = (payload) => this.#add(payload as JsonObject);
    this.functions["engine::unregister_trigger"] = (payload) => ({
      removed: this.triggers.delete((payload as { id: string }).id),
    });
  }

  get connectionState(): ConnectionState {
    return this.#state;
  }

  /** How many listen to the state of the line. */
  get listeners(): number {
    return this.#listeners.size;
  }

  onConnectionState(listener: (state: ConnectionState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  registerFunction(id: string, handler: unknown, options: { namespace?: string | undefined } = {}) {
    this.namespaces.push(options.namespace);
    this.#handlers.set(id, handler as Handler);
    return { id, unregister: () => void this.#handlers.delete(id) };
  }

  async trigger<In, Out>(request: CallRequest<In>): Promise<Out> {
    const call = request as CallRequest<Json>;
    this.calls.push(call);
    const { function_id, signal } = call;
    const run = this.functions[function_id];
    if (!run) {
      const body = errorBody("function_not_found", `Function ${function_id} not found`);
      throw new InvocationError(body, function_id);
    }
    const gone = new Promise<never>((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
    gone.catch(() => {}); // No test may be waiting for it.
    return await Promise.race([run(call.payload, call), gone]) as Out;
  }

  /** Loses or finds the line; with it triggers are lost. */
  become(state: ConnectionState): void {
    this.#state = state;
    if (state !== "connected") this.triggers.clear();
    for (const listener of [...this.#listeners]) listener(state);
  }

  /** Fires all triggers of a type, as the engine would, and lets it be handed on. */
  async fire(type: string, payload: Json = null): Promise<void> {
    for (const trigger of this.triggers.values()) {
      if (trigger.type !== type) continue;
      await this.#handlers.get(trigger.function_id)!(payload, trigger.metadata, {} as never);
    }
    await settle();
  }

  /** Calls the console's function for firings, as a stranger could. */
  async intrude(payload: Json, metadata: Json | undefined): Promise<void> {
    for (const handler of this.#handlers.values()) await handler(payload, metadata, {} as never);
    await settle();
  }

  /** How often a function was called. */
  count(function_id: string): number {
    return this.calls.filter((call) => call.function_id === function_id).length;
  }

  #add({ trigger_type, function_id, config, metadata }: JsonObject): Json {
    if (trigger_type === "refused") throw new EngineError("bad_config", "This config is wrong");
    const id = `trigger-${++this.#count}`;
    this.triggers.set(id, {
      type: String(trigger_type),
      config: config ?? null,
      function_id: String(function_id),
      metadata: metadata ?? null,
    });
    return { id };
  }
}

/** Lets everything happen that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}
