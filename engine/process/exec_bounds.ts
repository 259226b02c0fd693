/**
 * Runs a command beside a program, within a time and an amount of output.
 *
 * @module
 */
import { EXEC_OUTPUT_BYTES_MAX, EXEC_TIMEOUT_MS } from "../supervisor/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ended, OutputChunk, Running } from "../ports/launcher.ts";

/** What to run, and who hears of it. */
export interface BoundedExec {
  readonly command: readonly string[];
  /** Gets at most `EXEC_OUTPUT_BYTES_MAX` bytes in all. */
  output(chunk: OutputChunk): void;
  /** Aborted: its end is wanted. */
  readonly signal: AbortSignal;
}

/**
 * Runs it to its end; one that a bound ended has the `reason`.
 *
 * @throws {EngineError} `launch_failed`.
 */
export async function execWithin(
  running: Running,
  clock: Clock,
  { command, output, signal }: BoundedExec,
): Promise<Ended> {
  const bound = new AbortController();
  let reason: string | undefined;
  const end = (why: string): void => {
    reason ??= why;
    bound.abort();
  };
  const seconds = EXEC_TIMEOUT_MS / 1_000;
  const cancelTimer = clock.after(EXEC_TIMEOUT_MS, () => end(`took longer than ${seconds} s`));
  let left = EXEC_OUTPUT_BYTES_MAX;
  const take = ({ stream, bytes }: OutputChunk): void => {
    if (left > 0) output({ stream, bytes: bytes.subarray(0, left) });
    left -= bytes.length;
    if (left < 0) end(`printed more than ${EXEC_OUTPUT_BYTES_MAX} bytes`);
  };
  try {
    const ended = await running.exec(command, take, AbortSignal.any([signal, bound.signal]));
    return reason === undefined ? ended : { ...ended, reason };
  } finally {
    cancelTimer();
  }
}
