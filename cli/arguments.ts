/**
 * The option `--timeout`, the same for every command that waits for a worker.
 *
 * @module
 */
import { UsageError } from "./failure.ts";

/** Default of `--timeout`, in seconds: an installation may take its time. */
export const TIMEOUT_S = 300;
/** Longest `--timeout`, in milliseconds: a day. */
const TIMEOUT_MS_MAX = 86_400_000;

const UNIT_MS: Readonly<Record<string, number>> = { "": 1_000, s: 1_000, m: 60_000, h: 3_600_000 };

/**
 * Milliseconds of a time that was typed: seconds, or with a unit, such as `90`, `90s`, `2m`, `1h`.
 *
 * @throws {UsageError} Naming what is expected.
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

/** Whether a word is a path to a directory rather than the name of a built-in worker. */
export function looksLikePath(word: string): boolean {
  return withSlashes(word).includes("/") || word === "." || word === "..";
}

/** On Windows either slash parts a path; elsewhere a backslash is a character like any other. */
function withSlashes(path: string): string {
  return Deno.build.os === "windows" ? path.replaceAll("\\", "/") : path;
}

/** A word as it would be typed into a shell. */
export function shellWord(word: string): string {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  return `'${word.replaceAll("'", "'\\''")}'`;
}
