/**
 * Spans of one trace from several engines, as one answer.
 *
 * Each engine records its part of a trace: the call that leaves, and what runs where it arrives.
 * The span of a call is the parent of those at the other engine, so their trees fit together.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { EngineAnswer } from "../../kit/engines.ts";

/** Spans that are taken from all other engines together. */
const SPANS_MAX = 10_000;

interface Node extends JsonObject {
  children: Json[];
}

/** The answer of `engine::traces::tree` with the spans of other engines at their places. */
export function joinTrees(own: JsonObject, answers: readonly EngineAnswer[]): JsonObject {
  if (answers.length === 0) return own;
  const roots = rootsOf(own);
  const known = new Map<Json | undefined, Node>();
  for (const node of walk(roots)) known.set(node.span_id, node);
  const added: Node[] = [];
  let left = SPANS_MAX;
  for (const { engine, result } of answers) {
    for (const root of rootsOf(result as JsonObject)) {
      for (const node of walk([root])) {
        if (left-- <= 0) break;
        node.engine = engine;
        if (!known.has(node.span_id)) known.set(node.span_id, node);
      }
      added.push(root);
    }
  }
  for (const node of added) {
    if (known.get(node.span_id) !== node) continue; // Two engines have the same span.
    const parent = known.get(node.parent_span_id);
    place(parent && !isWithin(parent, node) ? parent.children as Node[] : roots, node);
  }
  // A root here may belong below a span of another engine.
  const placed = roots.filter((node) => {
    const parent = known.get(node.parent_span_id);
    if (!parent || parent === node || isWithin(parent, node)) return true;
    place(parent.children as Node[], node);
    return false;
  });
  return { ...own, roots: placed };
}

/** The answer of `engine::traces::list` for given traces, with the spans of other engines. */
export function joinLists(own: JsonObject, answers: readonly EngineAnswer[]): JsonObject {
  const spans = [...own.spans as JsonObject[]];
  const known = new Set(spans.map(({ span_id }) => span_id));
  for (const { engine, result } of answers) {
    const { spans: others } = result as { spans?: JsonObject[] };
    if (!Array.isArray(others)) continue;
    for (const span of others) {
      if (known.has(span.span_id!) || spans.length >= SPANS_MAX) continue;
      known.add(span.span_id!);
      spans.push({ ...span, engine });
    }
  }
  const added = spans.length - (own.spans as Json[]).length;
  return { ...own, spans, total: (own.total as number) + added };
}

function rootsOf({ roots }: JsonObject): Node[] {
  return Array.isArray(roots) ? roots as Node[] : [];
}

function* walk(roots: readonly Node[]): Generator<Node> {
  const waiting = [...roots];
  for (let node = waiting.pop(); node; node = waiting.pop()) {
    yield node;
    waiting.push(...node.children as Node[]);
  }
}

/** Whether a span is one of those below another, which ids of untrusted spans can cause. */
function isWithin(span: Node, top: Node): boolean {
  for (const node of walk([top])) if (node === span) return true;
  return false;
}

/** Puts a span among its siblings by its start. */
function place(siblings: Node[], node: Node): void {
  const at = siblings.findIndex((other) => startOf(other) > startOf(node));
  siblings.splice(at < 0 ? siblings.length : at, 0, node);
}

function startOf({ start_time_unix_nano }: Node): number {
  return Number(start_time_unix_nano);
}
