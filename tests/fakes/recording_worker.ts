/**
 * A worker that only records its registrations, and calls handlers directly.
 *
 * @module
 */
import type {
  CallContext,
  CallRequest,
  FunctionOptions,
  Handler,
  Registration,
  TriggerHandlers,
  TriggerTypeInput,
} from "../../sdk/typescript/options.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";

export class RecordingWorker {
  readonly functions = new Map<string, Handler>();
  readonly triggerTypes = new Map<string, TriggerHandlers>();
  /** Calls that were made, in order. */
  readonly made: CallRequest<unknown>[] = [];
  /** Answers these calls. */
  answer: (request: CallRequest<unknown>) => Promise<unknown> = () => Promise.resolve(undefined);

  registerFunction(id: string, handler: unknown, _options?: FunctionOptions): Registration {
    this.functions.set(id, handler as Handler);
    return { id, unregister: () => void this.functions.delete(id) };
  }

  registerTriggerType<Config = Json>(
    type: TriggerTypeInput,
    handlers: TriggerHandlers<Config>,
  ): Registration {
    this.triggerTypes.set(type.id, handlers as unknown as TriggerHandlers);
    return { id: type.id, unregister: () => void this.triggerTypes.delete(type.id) };
  }

  trigger<In = Json, Out = Json>(request: CallRequest<In>): Promise<Out> {
    this.made.push(request);
    return this.answer(request) as Promise<Out>;
  }

  /** Calls a function; a throw becomes a rejection. */
  async call(id: string, payload: Json = null, about: Partial<CallContext> = {}): Promise<Json> {
    const handler = this.functions.get(id);
    if (!handler) throw new Error(`${id} was not registered`);
    const context: CallContext = {
      invocation_id: "i",
      function_id: id,
      caller: undefined,
      signal: new AbortController().signal,
      timeout_ms: undefined,
      traceparent: undefined,
      baggage: undefined,
      progress: () => {},
      ...about,
    };
    return await handler(payload, undefined, context) as Json;
  }
}
