/**
 * Preloaded into every test process: a test that takes too long fails by itself, so that a hang costs
 * one test and is named, not the whole run.
 *
 * @module
 */

/** The slowest test boots microVMs in emulation; on a busy machine it took four minutes. */
const LIMIT_MS = 8 * 60_000;

type TestFn = (context: Deno.TestContext) => void | Promise<void>;

/** `fn` within the limit. */
function limited(fn: TestFn): TestFn {
  return async (context) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`The test did not end within ${LIMIT_MS / 60_000} minutes`);
      timer = setTimeout(() => reject(error), LIMIT_MS);
    });
    try {
      await Promise.race([fn(context), late]);
    } finally {
      clearTimeout(timer);
    }
  };
}

const register = Deno.test;

/** `Deno.test` in any of its forms, with the function in it limited. */
function test(...args: unknown[]): void {
  const wrapped = args.map((arg) => {
    if (typeof arg === "function") {
      return Object.defineProperty(limited(arg as TestFn), "name", { value: arg.name });
    }
    if (typeof arg !== "object" || arg === null || !("fn" in arg)) return arg;
    return { ...arg, fn: limited(arg.fn as TestFn) };
  });
  (register as (...args: unknown[]) => void)(...wrapped);
}

(Deno as { test: unknown }).test = Object.assign(test, register);
