/**
 * Waiting for a condition in real time, for tests of sockets, processes and files.
 *
 * @module
 */

/** Longest wait of a test for something that has to happen, also on a machine that is busy. */
export const PATIENCE_MS = 60_000;
const POLL_MS = 10;

/**
 * Polls until `holds` returns true. An error that it throws counts as "not yet".
 *
 * @throws {Error} after {@linkcode PATIENCE_MS}, with `explain` and the last error as its cause.
 */
export async function until(
  holds: () => Promise<boolean> | boolean,
  explain: string | (() => string) = "",
  limitMs = PATIENCE_MS,
): Promise<void> {
  const end = performance.now() + limitMs;
  for (let last: unknown;;) {
    try {
      if (await holds()) return;
      last = undefined;
    } catch (thrown) {
      last = thrown;
    }
    if (performance.now() > end) {
      const why = typeof explain === "string" ? explain : explain();
      throw new Error(`Not within ${limitMs} ms: ${holds}\n${why}`, { cause: last });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
