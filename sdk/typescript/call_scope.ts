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
