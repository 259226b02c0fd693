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
