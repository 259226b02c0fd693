/**
 * What the SDK may find around it: Deno, Node or a browser, told apart at run time.
 *
 * Nothing here fails: what is missing or not permitted is `undefined`. All access to the
 * `process` global and to `node:` modules goes through this file, so that a browser never
 * sees an import it cannot resolve.
 *
 * @module
 */

/** The parts of `process` that are used; all of them may be missing. */
interface ProcessLike {
  readonly versions?: Readonly<Record<string, string | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly pid?: number;
  readonly platform?: string;
  readonly arch?: string;
  getBuiltinModule?(name: string): unknown;
  nextTick?(task: () => void): void;
}

/** The parts of the `Deno` global that are used. */
interface DenoLike {
  readonly pid: number;
  readonly build: { readonly os: string; readonly arch: string };
  readonly env: { get(name: string): string | undefined };
  hostname(): string;
  osRelease(): string;
}

/** Runs `read`; a refusal (such as Deno without a permission) counts as nothing there. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined; // Not permitted is the same as not there: the worker runs without it.
  }
}

/** The `process` global of Deno and Node; `undefined` in a browser. */
export function processGlobal(): ProcessLike | undefined {
  const found = (globalThis as { process?: ProcessLike }).process;
  return typeof found?.versions?.node === "string" ? found : undefined;
}

/** Deno's own global: the first look at its `process` takes 25 ms of a program's start. */
export function denoGlobal(): DenoLike | undefined {
  return (globalThis as { Deno?: DenoLike }).Deno;
}

/** An environment variable; `undefined` when empty, missing or not permitted. */
export function environment(name: string): string | undefined {
  const deno = denoGlobal();
  return attempt(() => deno ? deno.env.get(name) : processGlobal()?.env?.[name]) || undefined;
}

/** A module of Node such as `node:os`; `undefined` where there is none (also Node before 20.16). */
export function builtinModule<T>(name: string): T | undefined {
  return attempt(() => processGlobal()?.getBuiltinModule?.(name)) as T | undefined;
}

/**
 * Runs `task` at the end of this turn: after all of its microtasks, at whatever depth, and before
 * anything else. A browser has no such moment; there it is the next microtask.
 */
export function atEndOfTurn(task: () => void): void {
  const process = processGlobal();
  // A tick that is asked for outside of a microtask comes before them.
  queueMicrotask(process?.nextTick ? () => process.nextTick!(task) : task);
}

/** A fresh UUID, also on pages whose address is not a secure one. */
export function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]]
    .map(([from, to]) => hex.slice(from, to)).join("-");
}

/** A clock that tests can move by hand. */
export interface WorkerClock {
  /** Milliseconds since an unspecified start; never goes back. */
  now(): number;
  /** Runs `task` once, `ms` milliseconds from now; call the result to cancel. */
  after(ms: number, task: () => void): () => void;
  /** Milliseconds since 1970, with fractions. @default the platform's */
  wall?(): number;
}

/** The clock of the platform: Deno's, Node's or the browser's timers. */
export const platformClock: WorkerClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  wall: wallTime,
};

/** What `performance.now()` counts from, in milliseconds since 1970. */
let originMs = performance.timeOrigin;

/**
 * Milliseconds since 1970, finer than `Date` tells and right again soon after somebody has set the
 * machine's clock.
 */
export function wallTime(): number {
  const [now, date] = [performance.now(), Date.now()];
  if (Math.abs(date - originMs - now) > WALL_SLACK_MS) originMs = date - now;
  return originMs + now;
}

/** So much the two clocks of the platform may be apart before the finer one is set anew. */
const WALL_SLACK_MS = 5;
