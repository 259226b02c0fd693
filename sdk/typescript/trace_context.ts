/**
 * What a call made inside a handler takes over from the call that the handler answers.
 *
 * It travels with `AsyncLocalStorage` where the platform has it (Deno, Node 20.16 and up). A
 * browser has none: there a handler passes `context.timeout_ms` on by itself.
 *
 * @module
 */
import { builtinModule } from "./platform.ts";

/** What is handed down. */
export interface CallScope {
  /** When the caller stops waiting, on the worker's clock; `undefined` for never. */
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

/** Those of the workers that live in this process. */
const shown = new Set<CallScopes>();

/** The trace context of the handler that runs here, of whichever worker that shows its scopes. */
export function runningTraceparent(): string | undefined {
  for (const scopes of shown) {
    const traceparent = scopes.current()?.traceparent;
    if (traceparent !== undefined) return traceparent;
  }
  return undefined;
}

/** The scopes of one worker: two workers in one process have clocks of their own. */
export class CallScopes {
  readonly #find: () => AsyncHooks | undefined;
  #storage: Storage | undefined;
  #isFound = false;

  /**
   * Finds out with the first handler whether the platform can carry scopes: a program that only
   * calls does not pay for that. `find` replaces it in tests.
   */
  constructor(find: () => AsyncHooks | undefined = () => builtinModule("node:async_hooks")) {
    this.#find = find;
  }

  /** Runs `task`; calls it makes, also later in its asynchronous flow, see `scope`. */
  run<T>(scope: CallScope, task: () => T): T {
    if (!this.#isFound) {
      this.#isFound = true;
      const hooks = this.#find();
      this.#storage = hooks && new hooks.AsyncLocalStorage();
    }
    return this.#storage ? this.#storage.run(scope, task) : task();
  }

  /** The scope of the handler that is running, if one is. */
  current(): CallScope | undefined {
    return this.#storage?.getStore();
  }

  /** From now on {@linkcode runningTraceparent} sees them. */
  show(): void {
    shown.add(this);
  }

  /** As before {@linkcode CallScopes.show}: their worker has ended. */
  hide(): void {
    shown.delete(this);
  }
}

/** What a `traceparent` says. */
export interface TraceIds {
  /** 32 hexadecimal digits. */
  readonly trace_id: string;
  /** 16 hexadecimal digits: the span that what carries it belongs to. */
  readonly span_id: string;
  /** Whether the trace is recorded. */
  readonly isSampled: boolean;
}

/** Version, trace, span, flags; a later version may have more behind. */
const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})/;

/** The ids in a `traceparent`; `undefined` when it is none. */
export function readTraceparent(text: string | undefined): TraceIds | undefined {
  const found = text === undefined ? null : FORM.exec(text);
  if (!found) return undefined;
  const rest = text!.slice(found[0].length);
  if (rest !== "" && (text!.startsWith("00-") || !rest.startsWith("-"))) return undefined;
  const [, trace_id, span_id, flags] = found;
  return { trace_id: trace_id!, span_id: span_id!, isSampled: (parseInt(flags!, 16) & 1) === 1 };
}

/** Whether a text would say that its trace is recorded, if it is a `traceparent`: a quick look. */
export function looksSampled(text: string): boolean {
  return SAMPLED_FLAGS.includes(text[54] ?? "?");
}

/** Last digits of flags whose lowest bit is set. */
const SAMPLED_FLAGS = "13579bdf";
