/**
 * Long work of one call, in parts: between them the engine's thread serves its connections.
 *
 * @module
 */
import type { Turns } from "../../engine/ports/turns.ts";

/**
 * Maps each item in turns on the thread; resolves when all are done, and rejects with what `map`
 * throws. The order is kept.
 */
export function mapInTurns<Item, Result>(
  turns: Turns,
  items: readonly Item[],
  map: (item: Item) => Result,
): Promise<Result[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Result[]>();
  const results: Result[] = [];
  const work = (): boolean => {
    try {
      while (results.length < items.length) {
        results.push(map(items[results.length]!));
        if (turns.isSpent()) break;
      }
    } catch (thrown) {
      reject(thrown);
      return false;
    }
    if (results.length < items.length) return true;
    resolve(results);
    return false;
  };
  if (items.length === 0) resolve(results);
  else turns.queue({ work });
  return promise;
}
