/**
 * How a command fails, and what the person in front of it is told.
 *
 * Two kinds: what was typed makes no sense ({@linkcode UsageError}, exit code 2), or it could not
 * be done (everything else, exit code 1), unless a command chooses its own ({@linkcode ExitWith}).
 * Failures of calls are recognised by their `code` alone, so this file needs nothing of the SDK but
 * types.
 *
 * @module
 */
import type { Json, JsonObject } from "../mod.ts";
import { renderJson } from "./render.ts";

/** Exit code of a command that did what it was asked to do. */
export const EXIT_DONE = 0;
/** Exit code of a command that failed. */
export const EXIT_FAILED = 1;
/** Exit code when a command or a config.yaml was not understood. */
export const EXIT_NOT_UNDERSTOOD = 2;
/** Exit code when a worker was not where it was wanted within `--timeout`. */
export const EXIT_NOT_READY = 3;
/** Exit code of a command that Ctrl-C ended. */
export const EXIT_INTERRUPTED = 130;

/** The person typed something this program does not understand. */
export class UsageError extends Error {
  /** For people who read a stack. */
  override readonly name = "UsageError";
}

/** A command could not do what it was asked to do, for a reason that has no code. */
export class CommandError extends Error {
  /** For people who read a stack. */
  override readonly name = "CommandError";
}

/** A command ends with a code of its own, after it has said what there is to say. */
export class ExitWith extends Error {
  /** For people who read a stack. */
  override readonly name = "ExitWith";
  /** What the process ends with. */
  readonly exitCode: number;
  /** Still to be said, on standard error. */
  readonly lines: readonly string[];

  /** Makes one. */
  constructor(exitCode: number, lines: readonly string[] = []) {
    super(`exit code ${exitCode}`);
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** A failure, ready to be printed. */
export interface Failure {
  /** For standard error; the first one says what happened, the others what to do about it. */
  readonly lines: readonly string[];
  /** What the process ends with. */
  readonly exitCode: number;
}

/** The line to the engine ended while a call ran, so nobody here knows how the call ends. */
export class LineEnded extends CommandError {
  /** Names what ran. */
  constructor(function_id: string) {
    super(
      `The line to the engine ended while ${function_id} ran; whether it goes on is not known, ` +
        "whether the engine does says: engine doctor",
    );
  }
}

/** Turns whatever a command threw into lines and an exit code. */
export function describeFailure(thrown: unknown): Failure {
  if (thrown instanceof ExitWith) return thrown;
  if (thrown instanceof UsageError) {
    return { lines: [`error: ${thrown.message}`], exitCode: EXIT_NOT_UNDERSTOOD };
  }
  if (!(thrown instanceof Error)) {
    return { lines: [`error: ${String(thrown)}`], exitCode: EXIT_FAILED };
  }
  const { code, details } = thrown as { code?: unknown; details?: JsonObject };
  if (typeof code !== "string") {
    return { lines: [`error: ${thrown.message}`], exitCode: EXIT_FAILED };
  }
  if (code === "config_invalid") {
    return describeProblems(thrown.message, details, EXIT_NOT_UNDERSTOOD);
  }
  if (code === "manifest_invalid") return describeProblems(thrown.message, details, EXIT_FAILED);
  // The message of a call that failed begins with its code already.
  const said = thrown.message.startsWith(`${code}: `)
    ? thrown.message
    : `${code}: ${thrown.message}`;
  return { lines: [`error: ${said}`, ...adviceOn(code, details)], exitCode: EXIT_FAILED };
}

function describeProblems(
  said: string,
  details: JsonObject | undefined,
  exitCode: number,
): Failure {
  const message = said.replace(/^\w+_invalid: /, ""); // A call that failed begins with its code.
  const problems = textsOf(details?.["problems"]);
  // With a single problem the message may be that problem already.
  const shown = problems.filter((problem) => !message.includes(problem));
  return {
    lines: [`error: ${message}`, ...shown.map((problem) => `  ${problem}`)],
    exitCode,
  };
}

/** What to do about a code; otherwise the details as they are. */
function adviceOn(code: string, details: JsonObject | undefined): string[] {
  switch (code) {
    case "function_not_found":
      return [similarTo(textsOf(details?.["similar"]))];
    case "invalid_payload":
      return [...misfits(details), "  What a function takes: engine trigger FUNCTION --help"];
    case "timeout":
    case "TIMEOUT":
      return ["  Give it more time with --timeout-ms, or see what its worker says"];
    case "invocation_stopped":
      return ["  Its worker ended while it ran; see: engine worker list"];
    case "overloaded":
      return ["  Try again in a moment"];
    case "isolation_unavailable":
    case "address_in_use":
    case "address_not_available":
    case "store_unavailable":
      // The message says it all.
      return [];
    default:
      return details && Object.keys(details).length > 0
        ? [`  ${renderJson(details).replaceAll("\n", "\n  ")}`]
        : [];
  }
}

function similarTo(similar: readonly string[]): string {
  if (similar.length > 0) return `  Did you mean ${similar.join(" or ")}?`;
  return "  A worker that has just been added may need a moment; what there is: engine functions";
}

function misfits(details: JsonObject | undefined): string[] {
  const errors = details?.["errors"];
  if (!Array.isArray(errors)) return [];
  return errors.map((error) => {
    const { path, message } = (error ?? {}) as { path?: Json; message?: Json };
    return `  ${path || "payload"}: ${message ?? renderJson(error)}`;
  });
}

function textsOf(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
