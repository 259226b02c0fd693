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
import { CONNECTIONS_MAX } from "../ports/connection.ts";
import type { SocketBounds } from "../ports/listen.ts";

/** Assumed where the platform does not tell: what macOS gives to a process at least. */
const DESCRIPTORS_UNKNOWN = 10_240;
/** Assumed for an unlimited process: more than all ports can use. */
const DESCRIPTORS_MAX = 1_048_576;
/** Set aside at least: an idle engine with its built-in workers has 38. */
const RESERVE_MIN = 96;
/** The share of a large limit that is set aside. */
const RESERVE_SHARE = 1 / 8;
/** Sockets of a port at least, however low the limit is. */
const SOCKETS_MIN = 8;
/** How the ports share what the reserve leaves. */
const SHARES = { workers: 5 / 8, http: 5 / 16, console: 1 / 16 } as const;

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

function readOwnLimits(): string {
  return Deno.readTextFileSync("/proc/self/limits");
}
