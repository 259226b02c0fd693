/**
 * Which subscriptions a topic concerns: a map for plain topics, a tree of parts for patterns.
 *
 * Finding costs the parts of the topic and the branches that match, whatever else is subscribed.
 * Also checks topics and patterns, and words what is wrong with them.
 *
 * @module
 */
import {
  ANY_PART,
  ANY_REST,
  PATTERN_PARTS_MAX,
  TOPIC_CHARS_MAX,
} from "../../engine/ports/topics.ts";

/** Characters of a topic in an error. */
const SHOWN_CHARS_MAX = 60;

/** One part of patterns, and what may follow it. */
interface Node<Item> {
  readonly next: Map<string, Node<Item>>;
  /** Items whose pattern ends here. */
  readonly items: Set<Item>;
  /** Items whose pattern ends with `>` here. */
  readonly rest: Set<Item>;
}

/** Items by topic and pattern. */
export class TopicTree<Item> {
  readonly #topics = new Map<string, Set<Item>>();
  readonly #root: Node<Item> = newNode();
  #patterns = 0;

  /** Adds an item under a topic or pattern that {@linkcode patternProblem} accepts. */
  add(pattern: string, item: Item): void {
    if (!isPattern(pattern)) {
      const items = this.#topics.get(pattern);
      if (items) items.add(item);
      else this.#topics.set(pattern, new Set([item]));
      return;
    }
    const parts = pattern.split(".");
    let node = this.#root;
    for (const part of withoutRest(parts)) {
      let next = node.next.get(part);
      if (!next) node.next.set(part, next = newNode());
      node = next;
    }
    (parts.at(-1) === ANY_REST ? node.rest : node.items).add(item);
    this.#patterns++;
  }

  /** Removes an item that was added under this topic or pattern. */
  remove(pattern: string, item: Item): void {
    if (!isPattern(pattern)) {
      const items = this.#topics.get(pattern);
      if (items?.delete(item) && items.size === 0) this.#topics.delete(pattern);
      return;
    }
    const parts = pattern.split(".");
    if (removeFrom(this.#root, parts, 0, item)) this.#patterns--;
  }

  /** The items that a topic concerns; items that are added or removed meanwhile do not matter. */
  find(topic: string): Item[] {
    const found = [...this.#topics.get(topic) ?? []];
    if (this.#patterns > 0) collect(this.#root, topic, 0, found);
    return found;
  }

  /** Nothing is kept of items that were removed. */
  get isEmpty(): boolean {
    return this.#topics.size === 0 && this.#root.next.size === 0 && this.#root.rest.size === 0;
  }
}

/** Adds the items of all branches that match a topic from the character `at` on. */
function collect<Item>(node: Node<Item>, topic: string, at: number, found: Item[]): void {
  for (const item of node.rest) found.push(item);
  const dot = topic.indexOf(".", at);
  const part = topic.slice(at, dot < 0 ? undefined : dot);
  for (const name of [part, ANY_PART]) {
    const next = node.next.get(name);
    if (!next) continue;
    if (dot >= 0) collect(next, topic, dot + 1, found);
    else for (const item of next.items) found.push(item);
  }
}

/** Removes an item, and the parts that nothing needs any more. */
function removeFrom<Item>(
  node: Node<Item>,
  parts: readonly string[],
  at: number,
  item: Item,
): boolean {
  const part = parts[at];
  if (part === undefined) return node.items.delete(item);
  if (part === ANY_REST && at === parts.length - 1) return node.rest.delete(item);
  const next = node.next.get(part);
  if (!next || !removeFrom(next, parts, at + 1, item)) return false;
  if (next.next.size + next.items.size + next.rest.size === 0) node.next.delete(part);
  return true;
}

function newNode<Item>(): Node<Item> {
  return { next: new Map(), items: new Set(), rest: new Set() };
}

function withoutRest(parts: readonly string[]): readonly string[] {
  return parts.at(-1) === ANY_REST ? parts.slice(0, -1) : parts;
}

/** Whether a text that {@linkcode patternProblem} accepts has wildcards. */
function isPattern(pattern: string): boolean {
  return pattern.includes(ANY_PART) || pattern.includes(ANY_REST);
}

/** Why no message can be published to this topic; `undefined` when it can. */
export function topicProblem(topic: string): string | undefined {
  const problem = lengthProblem(topic);
  if (problem !== undefined || !isPattern(topic)) return problem;
  return `${shown(topic)} has a wildcard; only subscriptions may have ${ANY_PART} and ${ANY_REST}`;
}

/** Why nothing can subscribe to this topic or pattern; `undefined` when it can. */
export function patternProblem(pattern: string): string | undefined {
  const problem = lengthProblem(pattern);
  if (problem !== undefined || !isPattern(pattern)) return problem;
  const parts = pattern.split(".");
  if (parts.length > PATTERN_PARTS_MAX) {
    return `expected a pattern with at most ${PATTERN_PARTS_MAX} parts, received ${parts.length}`;
  }
  for (const [at, part] of parts.entries()) {
    if (part === ANY_PART || !isPattern(part)) continue;
    if (part !== ANY_REST) {
      const hint = `write ${ANY_PART} or ${ANY_REST} as a part of its own, such as orders.*`;
      return `${shown(pattern)} has a wildcard inside the part ${shown(part)}; ${hint}`;
    }
    if (at < parts.length - 1) {
      return `${shown(pattern)} has ${ANY_REST} in part ${at + 1}; it may only be the last part`;
    }
  }
  return undefined;
}

function lengthProblem({ length }: string): string | undefined {
  if (length === 0) return "expected at least 1 character";
  return length <= TOPIC_CHARS_MAX
    ? undefined
    : `expected at most ${TOPIC_CHARS_MAX} characters, received ${length}`;
}

function shown(text: string): string {
  return JSON.stringify(
    text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text,
  );
}
