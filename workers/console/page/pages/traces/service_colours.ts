/**
 * Which colour a service has in a trace.
 *
 * @module
 */
import type { SpanTree } from "./span_tree.ts";

/** Colours that the style has: `--series-1` and so on. */
export const SERVICE_COLOURS = 6;

/** Service to the number of its colour, from 1, in the order in which they first appear. */
export function serviceColours(tree: SpanTree): ReadonlyMap<string, number> {
  const colours = new Map<string, number>();
  for (const { span } of tree.rows) {
    if (!colours.has(span.service)) {
      colours.set(span.service, colours.size % SERVICE_COLOURS + 1);
    }
  }
  return colours;
}
