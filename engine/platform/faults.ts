/**
 * Errors that no code awaited: which of them concern a single connection, and how often they are
 * reported.
 *
 * The platform throws some errors of sockets outside of every call of ours, such as from an accept
 * loop that has no descriptor left. An engine that serves others must not end for them. Any other
 * error that arrives here is a mistake of ours, after which nothing is known to be right.
 *
 * @module
 */
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";

/** One line of log in this time, with the number of errors since the one before. */
const REPORT_MS = 10_000;
/** Characters of a stack in the log. */
const STACK_CHARS_MAX = 2_000;

/** Classes of `Deno.errors` that only operations on sockets and files have. */
const CLASSES: ReadonlySet<string> = new Set([
  "AddrNotAvailable",
  "BadResource",
  "BrokenPipe",
  "ConnectionAborted",
  "ConnectionRefused",
  "ConnectionReset",
  "Http",
  "Interrupted",
  "NetworkUnreachable",
  "NotConnected",
  "TimedOut",
  "UnexpectedEof",
]);

/** Codes of Node's sockets and streams. */
const CODES: ReadonlySet<string> = new Set([
  "EBADF",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "EMFILE",
  "ENETUNREACH",
  "ENFILE",
  "ENOTCONN",
  "EPIPE",
  "ETIMEDOUT",
]);
const CODE_PREFIXES = /^ERR_(SSL|TLS|STREAM)_/;

/** Messages of the platform without a class or a code of their own. */
const MESSAGES = [
  /too many open files/i,
  /\(os error (9|23|24|32|103|104|107|110)\)/,
  /(reading a body from|writing a body to) connection/,
  /connection (closed|error|reset)/i,
  /resource (has been|was|already) closed/i,
];

/** Whether an error that was thrown outside of any await concerns one connection. */
export function isConnectionFault(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  const { code, name } = thrown as { code?: unknown; name: string };
  if (CLASSES.has(name)) return true;
  if (typeof code === "string" && (CODES.has(code) || CODE_PREFIXES.test(code))) return true;
  // A mistake of ours may quote such a message, but it is of another class.
  const isPlatform = name === "Error" || name === "TypeError" || name === "BusyError";
  return isPlatform && MESSAGES.some((message) => message.test(thrownText(thrown)));
}

/** Reports faults of connections, at most once in {@linkcode REPORT_MS}. */
export class FaultReports {
  readonly #log: Log;
  readonly #clock: Pick<Clock, "now">;
  #reportedAtMs = -Infinity;
  #unreported = 0;

  constructor(log: Log, clock: Pick<Clock, "now">) {
    this.#log = log;
    this.#clock = clock;
  }

  /** A fault after which the engine serves as before. */
  kept(thrown: unknown): void {
    this.#unreported++;
    const now = this.#clock.now();
    if (now - this.#reportedAtMs < REPORT_MS) return;
    this.#log.error("a connection failed outside of its handler; the engine keeps serving", {
      reason: thrownText(thrown),
      count: this.#unreported,
    });
    this.#reportedAtMs = now;
    this.#unreported = 0;
  }

  /** A fault for which the engine stops. */
  fatal(thrown: unknown): void {
    const stack = thrown instanceof Error ? String(thrown.stack).slice(0, STACK_CHARS_MAX) : "";
    this.#log.error("unhandled error; the engine stops", {
      reason: thrownText(thrown),
      stack,
    });
  }
}
