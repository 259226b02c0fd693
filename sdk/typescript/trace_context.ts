/**
 * The context that calls made inside a handler inherit: deadline and W3C trace context; and the
 * parser of a `traceparent`.
 *
 * It is propagated with `AsyncLocalStorage` where the platform has it (Deno, Node 20.16 and newer).
 * In a browser a handler has to pass on `context.timeout_ms` itself.
 *
 * @module
 */
import { builtinModule } from "./platform.ts";

/** What a call inside a handler inherits. */
export interface CallScope {
  /** Deadline of the call that the handler runs, on the worker's clock; `undefined` for none. */
  readonly deadline: number | undefined;
  readonly traceparent: string | undefined;
  readonly baggage: string | undefined;
}

/** The parts of `AsyncLocalStorage` that are used. */
interface Storage {
  run<T>(scope: CallScope, task: () => T): T;
  getStore(): CallScope | undefined;
}

/** The parts of `node:async_hooks` that are used. */
interface AsyncHooks {
  readonly AsyncLocalStorage: new () => Storage;
}

/** The scopes of the workers that {@linkcode runningTraceparent} reads. */
const attached = new Set<CallScopes>();

/** The `traceparent` of the handler that is running, of any worker with attached scopes. */
export function runningTraceparent(): string | undefined {
  for (const scopes of attached) {
    const traceparent = scopes.current()?.traceparent;
    if (traceparent !== undefined) return traceparent;
  }
  return undefined;
}

/** The scopes of one worker. Workers in one process do not share them: each has its own clock. */
export class CallScopes {
  readonly #find: () => AsyncHooks | undefined;
  #storage: Storage | undefined;
  #isFound = false;

  /** `find` loads `node:async_hooks`; it is called when the first handler runs. */
  constructor(find: () => AsyncHooks | undefined = () => builtinModule("node:async_hooks")) {
    this.#find = find;
  }

  /** Runs `task`, in whose asynchronous flow {@linkcode CallScopes.current} returns `scope`. */
  run<T>(scope: CallScope, task: () => T): T {
    if (!this.#isFound) {
      this.#isFound = true;
      const hooks = this.#find();
      this.#storage = hooks && new hooks.AsyncLocalStorage();
    }
    return this.#storage ? this.#storage.run(scope, task) : task();
  }

  /** The scope of the handler that is running, if any. */
  current(): CallScope | undefined {
    return this.#storage?.getStore();
  }

  /** Makes the scopes visible to {@linkcode runningTraceparent}. */
  attach(): void {
    attached.add(this);
  }

  /** Undoes {@linkcode CallScopes.attach}. */
  detach(): void {
    attached.delete(this);
  }
}

/** The parts of a `traceparent`. */
export interface TraceIds {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits: the parent span. */
  readonly span_id: string;
  /** Whether the trace is recorded. */
  readonly isSampled: boolean;
}

/** Version, trace, span, flags; later versions may append more. */
const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/;

/** Last digits of flags whose lowest bit is set. */
const SAMPLED_FLAGS = "13579bdf";

/** Parses a `traceparent`; `undefined` if it is absent or invalid. */
export function readTraceparent(text: string | undefined): TraceIds | undefined {
  const found = text === undefined ? null : TRACEPARENT.exec(text);
  if (!found) return undefined;
  const rest = text!.slice(found[0].length);
  if (rest !== "" && (text!.startsWith("00-") || !rest.startsWith("-"))) return undefined;
  const [, trace_id, span_id, flags] = found;
  return { trace_id: trace_id!, span_id: span_id!, isSampled: (parseInt(flags!, 16) & 1) === 1 };
}

/** Whether a text has the sampled flag of a `traceparent`; does not check the rest of it. */
export function looksSampled(text: string): boolean {
  return SAMPLED_FLAGS.includes(text[54] ?? "?");
}
