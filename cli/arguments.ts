/**
 * Arguments as people type them: options that several commands share, numbers, times, paths.
 *
 * @module
 */
import type { Isolation, WorkerStatus } from "../engine/mod.ts";
import { UsageError } from "./failure.ts";

const ENGINE_PORT_DEFAULT = 49134;
/** Address of the engine when neither `--url` nor ENGINE_URL is set; the SDK's default too. */
export const ENGINE_URL_DEFAULT = `ws://127.0.0.1:${ENGINE_PORT_DEFAULT}`;
/** Help of `--url`. */
export const URL_HELP =
  "address of the engine (default: ENGINE_URL, the engine of the project here, " +
  `${ENGINE_URL_DEFAULT})`;
/** Help of `--token`. */
export const TOKEN_HELP = "token of the engine (default: ENGINE_TOKEN, that of config.yaml here)";
/** Default of `--timeout`, in seconds: long enough for most installations of dependencies. */
export const TIMEOUT_S = 300;
/** What `--isolation` accepts. */
export const ISOLATIONS = ["microvm", "process"] as const satisfies readonly Isolation[];
/** What `--accel` accepts. */
export const ACCELERATORS = ["auto", "kvm", "tcg"] as const satisfies readonly (
  | "auto"
  | NonNullable<WorkerStatus["accelerator"]>
)[];
/** Most replicas of one worker that the engine accepts. */
export const REPLICAS_MAX = 64;

/** Longest `--timeout`, in milliseconds: a day. */
const TIMEOUT_MS_MAX = 86_400_000;
const UNIT_MS: Readonly<Record<string, number>> = { "": 1_000, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Reads the address of an engine: `ws://` and `wss://`, the same as `http://` and `https://`, or a
 * host with or without a port, such as `localhost:49134`.
 *
 * @throws {UsageError} With the forms that are accepted.
 */
export function readEngineUrl(text: string): string {
  const isHost = /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(text);
  const typed = isHost ? `ws://${text}` : text.replace(/^http(?=s?:\/\/)/i, "ws");
  const url = URL.canParse(typed) ? new URL(typed) : undefined;
  if (url?.protocol === "ws:" || url?.protocol === "wss:") {
    return isHost && !/:\d+$/.test(text) ? `${typed}:${ENGINE_PORT_DEFAULT}` : typed;
  }
  throw new UsageError(
    `The address of the engine must look like ${ENGINE_URL_DEFAULT} or localhost:` +
      `${ENGINE_PORT_DEFAULT}, received ${JSON.stringify(text)}`,
  );
}

/**
 * Reads a whole number within bounds.
 *
 * @throws {UsageError} With the option and the bounds.
 */
export function readNumber(option: string, text: string, least: number, most: number): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`${option}: expected ${least} to ${most}, received ${JSON.stringify(text)}`);
}

/**
 * Reads a time in seconds, or with a unit, such as `90`, `90s`, `2m`, `1h`, as milliseconds.
 *
 * @throws {UsageError} With the formats that are accepted.
 */
export function readTimeout(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(s|m|h|)$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * (UNIT_MS[unit ?? ""] ?? NaN));
  if (ms <= TIMEOUT_MS_MAX) return ms;
  throw new UsageError(
    `--timeout: expected seconds or a time such as 90s or 2m, up to 24h, ` +
      `received ${JSON.stringify(text)}`,
  );
}

/**
 * Reads the value of `--isolation`.
 *
 * @throws {UsageError} With the values that are accepted.
 */
export function readIsolation(text: string): Isolation {
  return readChoice("--isolation", text, ISOLATIONS);
}

/**
 * Reads one of several values.
 *
 * @throws {UsageError} With the option and the values that are accepted.
 */
export function readChoice<T extends string>(
  option: string,
  text: string,
  choices: readonly T[],
): T {
  const choice = choices.find((each) => each === text);
  if (choice !== undefined) return choice;
  const list = `${choices.slice(0, -1).join(", ")} or ${choices.at(-1)}`;
  throw new UsageError(`${option}: expected ${list}, received ${JSON.stringify(text)}`);
}

/** The absolute form of a path that is relative to an absolute directory; `..` is resolved. */
export function absolutePath(directory: string, path: string): string {
  const isAbsolute = path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path);
  const typed = isAbsolute ? path : `${directory}/${path}`;
  const [root = "", ...rest] = withSlashes(typed).split("/");
  const parts: string[] = [];
  for (const part of rest) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `${root}/${parts.join("/")}`;
}

/** Whether an argument is a path to a directory rather than the name of a built-in worker. */
export function looksLikePath(text: string): boolean {
  return withSlashes(text).includes("/") || text === "." || text === "..";
}

/** Both slashes separate paths on Windows; elsewhere a backslash is an ordinary character. */
function withSlashes(path: string): string {
  return Deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** An argument as it would be typed into a shell, in quotes if it needs them. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", "'\\''")}'`;
}
