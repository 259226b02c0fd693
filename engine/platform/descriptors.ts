/**
 * How many file descriptors the process may open, and how many of them each port may use.
 *
 * Every socket is a descriptor, and so is every file, pipe and watch. A process without a free one
 * can neither write state nor start a worker, so the ports share what remains when a reserve is
 * set aside; what they refuse is refused before anything else fails. Deno raises the soft limit to
 * the hard one when it starts, so a higher limit takes the shell or the service manager.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { CONNECTIONS_MAX } from "../ports/connection.ts";
import type { SocketBounds } from "../ports/listen.ts";

/** Assumed where the platform does not tell: what macOS gives to a process at least. */
const DESCRIPTORS_UNKNOWN = 10_240;
/** Assumed for an unlimited process: more than all ports can use. */
const DESCRIPTORS_MAX = 1_048_576;
/** Set aside at least: an idle engine with its built-in workers has 38. */
const RESERVE_MIN = 96;
/** A process with fewer starts no engine: Deno itself ends below 32, with a stack trace. */
export const DESCRIPTORS_MIN = 64;
/** The share of a large limit that is set aside. */
const RESERVE_SHARE = 1 / 8;
/** Sockets of a port at least, however low the limit is. */
const SOCKETS_MIN = 8;
/** How the ports share what the reserve leaves. */
const SHARES = { workers: 5 / 8, http: 3 / 16, streams: 1 / 8, console: 1 / 16 } as const;

/** The soft limit of open descriptors of this process. */
export function descriptorLimit(readLimits: () => string = readOwnLimits): number {
  let text: string;
  try {
    text = readLimits();
  } catch {
    return DESCRIPTORS_UNKNOWN; // Only Linux has the file.
  }
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  if (soft === undefined) return DESCRIPTORS_UNKNOWN;
  return soft === "unlimited" ? DESCRIPTORS_MAX : Math.min(Number(soft), DESCRIPTORS_MAX);
}

/** Descriptors of a limit that no port may use: for state, logs, and workers that start. */
export function descriptorReserve(limit: number): number {
  return Math.max(RESERVE_MIN, Math.floor(limit * RESERVE_SHARE));
}

/** How many sockets each port may have open at once, under a limit of descriptors. */
export function socketBounds(limit: number = descriptorLimit()): SocketBounds {
  const free = limit - descriptorReserve(limit);
  const bound = (share: number): number => {
    return Math.min(CONNECTIONS_MAX, Math.max(SOCKETS_MIN, Math.floor(free * share)));
  };
  return {
    workers: bound(SHARES.workers),
    http: bound(SHARES.http),
    streams: bound(SHARES.streams),
    console: bound(SHARES.console),
  };
}

/** Descriptors that this process has open; `undefined` where the platform does not tell. */
export function descriptorsOpen(): number | undefined {
  try {
    return [...Deno.readDirSync("/proc/self/fd")].length - 1; // Without the one that lists them.
  } catch {
    return undefined; // Only Linux has the folder, and it takes a free descriptor to read it.
  }
}

/**
 * Refuses a limit under which an engine cannot start, before a part of it fails by itself.
 *
 * @throws {EngineError} `too_few_descriptors`.
 */
export function requireDescriptors(limit: number = descriptorLimit()): void {
  if (limit >= DESCRIPTORS_MIN) return;
  throw tooFew(`The process may open ${limit} files and sockets`, limit, undefined);
}

/** What a start failed with: a lack of descriptors as such, anything else as it was. */
export function explainExhausted(
  thrown: unknown,
  limit: number = descriptorLimit(),
  open: number | undefined = descriptorsOpen(),
): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const { code, message } = thrown as { code?: unknown; message: string };
  if (code !== "EMFILE" && !/too many open files/i.test(message)) return thrown;
  const count = open === undefined ? "all" : `${open}`;
  return tooFew(`The process has ${count} of ${limit} files and sockets open`, limit, thrown);
}

function tooFew(what: string, limit: number, cause: unknown): EngineError {
  return new EngineError(
    "too_few_descriptors",
    `${what}, too few to start the engine, which needs ${DESCRIPTORS_MIN} and one for each ` +
      "connection; raise the limit (`ulimit -n 4096`, or LimitNOFILE of the service)",
    { details: { limit }, ...cause !== undefined && { cause } },
  );
}

function readOwnLimits(): string {
  return Deno.readTextFileSync("/proc/self/limits");
}
