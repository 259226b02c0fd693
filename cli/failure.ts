/**
 * How a command fails: its exit code, and the message for the user.
 *
 * An invalid command line is a {@linkcode UsageError} (exit code 2); every other failure ends with
 * exit code 1, unless the command chooses its own ({@linkcode ExitWith}). Failed calls are
 * recognised by their `code` alone, so this file imports only types of the SDK.
 *
 * @module
 */
import type { Json, JsonObject } from "../mod.ts";
import { printable, renderJson, renderStack } from "./render.ts";

/** Exit code of a command that succeeded. */
export const EXIT_DONE = 0;
/** Exit code of a command that failed. */
export const EXIT_FAILED = 1;
/** Exit code for an invalid command line or config.yaml. */
export const EXIT_NOT_UNDERSTOOD = 2;
/** Exit code when a worker did not reach the desired state within `--timeout`. */
export const EXIT_NOT_READY = 3;
/** Exit code of a command that Ctrl-C ended. */
export const EXIT_INTERRUPTED = 130;

/** The command line is invalid. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** A command failed for a reason that has no error code. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}

/** Ends a command with an exit code of its own. */
export class ExitWith extends Error {
  override readonly name = "ExitWith";
  readonly exitCode: number;
  /** Printed to standard error before the process ends. */
  readonly lines: readonly string[];

  constructor(exitCode: number, lines: readonly string[] = []) {
    super(`exit code ${exitCode}`);
    this.exitCode = exitCode;
    this.lines = lines;
  }
}

/** A failure as it is printed. */
export interface Failure {
  /** For standard error: the first says what happened, the others what to do about it. */
  readonly lines: readonly string[];
  readonly exitCode: number;
}

/** The connection to the engine was lost during a call, whose outcome is therefore unknown. */
export class ConnectionLost extends CommandError {
  constructor(function_id: string) {
    super(
      `The connection to the engine was lost while ${function_id} ran, which may still run; ` +
        "to check the engine: engine doctor",
    );
  }
}

/** Converts what a command threw into lines and an exit code. */
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
  // The message of a failed call begins with its code already.
  const text = thrown.message.startsWith(`${code}: `)
    ? thrown.message
    : `${code}: ${thrown.message}`;
  const lines = [`error: ${text}`, ...adviceOn(code, details), ...stackOf(thrown)];
  return { lines, exitCode: EXIT_FAILED };
}

/** The stack trace of the handler that failed, if its worker sent one. */
function stackOf(thrown: Error): string[] {
  const { stacktrace, function_id } = thrown as { stacktrace?: unknown; function_id?: unknown };
  if (typeof stacktrace !== "string" || stacktrace === "") return [];
  return renderStack(stacktrace, String(function_id ?? "the function"));
}

function describeProblems(
  text: string,
  details: JsonObject | undefined,
  exitCode: number,
): Failure {
  const message = text.replace(/^\w+_invalid: /, ""); // The code of a failed call.
  const problems = textsOf(details?.["problems"]);
  // With a single problem the message may be that problem already.
  const shown = problems.filter((problem) => !message.includes(problem));
  return {
    lines: [`error: ${message}`, ...shown.map((problem) => `  ${problem}`)],
    exitCode,
  };
}

/** What to do about an error code; without advice, the details of the error. */
function adviceOn(code: string, details: JsonObject | undefined): string[] {
  switch (code) {
    case "function_not_found":
      return notFound(details);
    case "invalid_payload":
      return [
        ...validationErrors(details),
        "  What a function takes: engine trigger FUNCTION --help",
      ];
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
    case "too_few_descriptors":
      // The message is complete.
      return [];
    default:
      return details && Object.keys(details).length > 0
        ? [`  ${renderJson(details).replaceAll("\n", "\n  ")}`]
        : [];
  }
}

/** The command line's own name as a worker: its calls need no caller. */
const OWN_NAME = "engine-cli";

/** Why a function is not there and what to type, and which worker called it. */
function notFound(details: JsonObject | undefined): string[] {
  const { reason, command, caller } = details ?? {};
  const why = typeof reason === "string"
    ? [`  ${printable(reason)}`]
    : [similarTo(textsOf(details?.["similar"]))];
  return [
    ...typeof caller === "string" && caller !== OWN_NAME
      ? [`  It was called by worker ${printable(caller)}`]
      : [],
    ...why,
    ...typeof command === "string" ? [`  To fix it: ${printable(command)}`] : [],
  ];
}

function similarTo(similar: readonly string[]): string {
  if (similar.length > 0) return `  Did you mean ${similar.join(" or ")}?`;
  return "  A worker that has just been added may need a moment; see engine functions";
}

function validationErrors(details: JsonObject | undefined): string[] {
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
