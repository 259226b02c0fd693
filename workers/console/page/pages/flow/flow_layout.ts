/**
 * Where the cards and lines of the flow picture stand, in pixels.
 *
 * @module
 */
import type { FlowCard, FlowEnd, FlowGraph } from "./flow_graph.ts";
import { type Layout, layOut } from "../../kit/graph_layout.ts";

/** Heights of a card's parts, and its frame at the top and at the bottom. */
export const CARD = { head: 34, row: 24, frame: 1, foot: 6, minWidth: 190, maxWidth: 330 } as const;

/** Room for the rate of a line, however many digits it has just now. */
const LABEL = { width: 52, height: 16 };
/** Of more lines than these the picture would be mostly rates. */
const LABELLED_MAX = 120;
const CHAR_WIDTH = 7;
/** Room beside a name, for its rate. */
const RATE_WIDTH = 92;

/**
 * Places all of it. `isNarrow`: from top to bottom, where lines end at cards and not at their rows.
 */
export function layOutFlow(graph: FlowGraph, isNarrow = false): Layout {
  const cards = new Map(graph.cards.map((card) => [card.id, card]));
  const boxes = graph.cards.map((card) => ({ id: card.id, ...sizeOf(card) }));
  const lines = graph.lines.map(({ id, from, to }) => ({
    id,
    from: from.card,
    to: to.card,
    ...!isNarrow && { fromY: aboveMiddle(from, cards), toY: aboveMiddle(to, cards) },
  }));
  const label = lines.length > LABELLED_MAX ? undefined : LABEL;
  return layOut(boxes, lines, {
    ...label && { label },
    ...isNarrow ? { gap: 16, columnGap: 40, isDown: true } : { gap: 20, columnGap: 72 },
  });
}

/** How large a card is. */
export function sizeOf(card: FlowCard): { readonly width: number; readonly height: number } {
  const texts = [card.title, ...card.rows.map(({ label }) => label)];
  const longest = Math.max(...texts.map((text) => text.length));
  const wanted = longest * CHAR_WIDTH + RATE_WIDTH;
  const rows = card.rows.length + (card.hidden > 0 ? 1 : 0);
  return {
    width: Math.round(Math.min(CARD.maxWidth, Math.max(CARD.minWidth, wanted))),
    height: 2 * CARD.frame + CARD.head + rows * CARD.row + (rows > 0 ? CARD.foot : 0),
  };
}

/** How far above the middle of its card an end is: at its row, or at the head. */
function aboveMiddle({ card, row }: FlowEnd, cards: ReadonlyMap<string, FlowCard>): number {
  const found = cards.get(card);
  if (found === undefined) return 0;
  const { height } = sizeOf(found);
  const at = found.rows.findIndex(({ id }) => id === row);
  const y = at < 0
    ? CARD.frame + CARD.head / 2
    : CARD.frame + CARD.head + at * CARD.row + CARD.row / 2;
  return height / 2 - y;
}
