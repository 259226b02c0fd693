/**
 * What the SDK uses of its platform: Deno, Node or a browser, detected at run time.
 *
 * Nothing here throws: what is missing or not permitted is `undefined`. All access to the `process`
 * global and to `node:` modules is in this file, so that browsers get no import they cannot
 * resolve.
 *
 * @module
 */

/**
 * The clock of a worker: the source of time and of all timers except those of the WebSocket
 * transports. Tests pass one that they control as `WorkerOptions.clock`.
 */
export interface WorkerClock {
  /** Milliseconds since an unspecified start; never decreases. */
  now(): number;
  /** Runs `task` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, task: () => void): () => void;
  /** Milliseconds since 1970, with fractions. @default that of the platform */
  wall?(): number;
}

/** The parts of `process` that are used; each may be missing. */
interface ProcessLike {
  readonly versions?: Readonly<Record<string, string | undefined>>;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly pid?: number;
  readonly platform?: string;
  readonly arch?: string;
  getBuiltinModule?(name: string): unknown;
  nextTick?(task: () => void): void;
}

/** A TCP connection of Deno. */
export interface TcpStream {
  /** Bytes read, `null` at the end. */
  read(into: Uint8Array): Promise<number | null>;
  /** Bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  setNoDelay(isOn: boolean): void;
  close(): void;
}

/** The parts of the `Deno` global that are used. */
interface DenoLike {
  readonly pid: number;
  readonly build: { readonly os: string; readonly arch: string };
  readonly env: { get(name: string): string | undefined };
  hostname(): string;
  osRelease(): string;
  connect?(address: { hostname: string; port: number }): Promise<TcpStream>;
}

/** The result of `read`; `undefined` if it throws, as Deno does without a permission. */
export function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined; // Not permitted counts as not present.
  }
}

/** The `process` global of Deno and Node; `undefined` in a browser. */
export function processGlobal(): ProcessLike | undefined {
  const found = (globalThis as { process?: ProcessLike }).process;
  return typeof found?.versions?.node === "string" ? found : undefined;
}

/** The `Deno` global. Preferred to its `process`, whose first use takes 25 ms. */
export function denoGlobal(): DenoLike | undefined {
  return (globalThis as { Deno?: DenoLike }).Deno;
}

/** An environment variable; `undefined` if it is empty, missing or not permitted. */
export function environment(name: string): string | undefined {
  const deno = denoGlobal();
  return attempt(() => deno ? deno.env.get(name) : processGlobal()?.env?.[name]) || undefined;
}

/** A module such as `node:os`; `undefined` in a browser and in Node before 20.16. */
export function builtinModule<T>(name: string): T | undefined {
  return attempt(() => processGlobal()?.getBuiltinModule?.(name)) as T | undefined;
}

/**
 * Runs `task` at the end of this tick of the event loop: after all microtasks, before any timer or
 * I/O event. In a browser it runs as the next microtask.
 */
export function atEndOfTick(task: () => void): void {
  const process = processGlobal();
  // nextTick() called outside of a microtask would run before the microtasks.
  queueMicrotask(process?.nextTick ? () => process.nextTick!(task) : task);
}

/** A random UUID; also on web pages without a secure context. */
export function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]]
    .map(([from, to]) => hex.slice(from, to)).join("-");
}

/** The clock of Deno, Node or the browser. */
export const platformClock: WorkerClock = {
  now: () => performance.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    return () => clearTimeout(timer);
  },
  wall: wallTime,
};

/** Difference between the platform's two clocks above which the origin is corrected. */
const WALL_SLACK_MS = 5;

/** Start of `performance.now()`, in milliseconds since 1970. */
let originMs = performance.timeOrigin;

/**
 * Milliseconds since 1970, with a finer resolution than `Date`; follows changes of the system
 * clock.
 */
export function wallTime(): number {
  const [now, date] = [performance.now(), Date.now()];
  if (Math.abs(date - originMs - now) > WALL_SLACK_MS) originMs = date - now;
  return originMs + now;
}
