/**
 * The table of routes, to which routes are added and removed at run time: a trie of path segments,
 * and a map of the paths that have no open segment, which need no trie.
 *
 * A literal segment wins over `:name`, and `:name` over a `*` at the end. Routes of the same method
 * and path form a stack: the newest serves, and when it is removed the one before it serves again.
 * The table does not look at the value of a route.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { LargeMap } from "../../sdk/typescript/wire/large_map.ts";
import { SmallMap } from "../../sdk/typescript/wire/small_map.ts";

/** Longest path of a route, in characters. */
export const ROUTE_CHARS_MAX = 1_024;

/** A route as it is registered. */
export interface Route<T> {
  /** Names the route; only this id can remove it. */
  readonly id: string;
  /** In capitals. */
  readonly method: string;
  /** As its owner wrote it, such as `/orders/:id`; a leading slash may be missing. */
  readonly path: string;
  /** What the route leads to. */
  readonly value: T;
  /** Its place among routes of the same shape and method. Default: it is the newest. */
  readonly order?: RouteOrder | undefined;
}

/** A place by time, then by id: the larger one is newer. */
export interface RouteOrder {
  readonly at: number;
  readonly id: string;
}

/** The route of a request, and the parts of the path that were open. */
export interface Match<T> {
  readonly route: Route<T>;
  /** URL-decoded; the rest of the path stands under `*`. */
  readonly params: Record<string, string>;
}

/** Routes of one shape and method, the newest last; never empty. */
interface Stack<T> {
  /** Names of the open segments; `*` for the rest of the path. */
  readonly names: readonly string[];
  readonly routes: Route<T>[];
}

/** By method; most paths have one. */
type Leaf<T> = SmallMap<string, Stack<T>>;

interface Node<T> {
  /** `undefined`: it has none. */
  literals: LargeMap<Node<T>> | undefined;
  param: Node<T> | undefined;
  /** Ends with `*` here. */
  rest: Leaf<T> | undefined;
  /** Ends here. */
  end: Leaf<T> | undefined;
}

type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "param" }
  | { readonly kind: "rest" };

interface Pattern {
  readonly segments: readonly Segment[];
  readonly names: readonly string[];
  /** The decoded path, when comparing it decides; such a route is not in the trie. */
  readonly exact: string | undefined;
}

const NO_NAMES: readonly string[] = [];

/** A mutable table of routes. */
export class RouteTable<T> {
  readonly #root: Node<T> = makeNode();
  /** Paths without open segments. */
  readonly #exact = new LargeMap<Leaf<T>>();
  readonly #routes = new LargeMap<Route<T>>();
  /** How many routes each method has. */
  readonly #methods = new Map<string, number>();

  /** Routes that are registered, also those a newer one stands in front of. */
  get size(): number {
    return this.#routes.size;
  }

  /**
   * Adds a route; one with the same id is replaced.
   *
   * @returns The route that served until now, if this one stands in front of it.
   * @throws {EngineError} `trigger_registration_failed` when the path cannot be one, or when a
   * route of the same shape names its parameters otherwise. Then nothing has changed.
   */
  add(route: Route<T>): Route<T> | undefined {
    const pattern = readPattern(route.path);
    const rival = this.#stackAt(pattern, route.method);
    if (rival && rival.names.join() !== pattern.names.join()) {
      const other = rival.routes.find((each) => each.id !== route.id);
      if (other) throw conflict(route, other);
    }
    this.remove(route.id);
    const leaf = this.#leafFor(pattern);
    const stack = leaf.get(route.method);
    const before = stack && newest(stack);
    if (stack) {
      const below = stack.routes.findLastIndex((other) => isNewer(route, other));
      stack.routes.splice(below + 1, 0, route);
    } else leaf.set(route.method, { names: pattern.names, routes: [route] });
    this.#routes.set(route.id, route);
    this.#methods.set(route.method, (this.#methods.get(route.method) ?? 0) + 1);
    return stack && newest(stack) !== route ? undefined : before;
  }

  /** Removes the route with this id and returns it; `undefined` when there is none. */
  remove(id: string): Route<T> | undefined {
    const route = this.#routes.get(id);
    if (!route) return undefined;
    this.#routes.delete(id);
    const pattern = readPattern(route.path);
    const left = this.#methods.get(route.method)! - 1;
    if (left > 0) this.#methods.set(route.method, left);
    else this.#methods.delete(route.method);
    const stack = this.#stackAt(pattern, route.method)!;
    stack.routes.splice(stack.routes.indexOf(route), 1);
    if (stack.routes.length === 0) this.#prune(pattern, route.method);
    return route;
  }

  /** The route of a method and a raw path (as in the request line, without the query). */
  find(method: string, path: string): Match<T> | undefined {
    const isEscaped = path.includes("%");
    const exact = isEscaped ? exactOf(path.split("/").map(decode)) : path;
    const stack = exact === undefined ? undefined : this.#exact.get(exact)?.get(method);
    if (stack) return { route: newest(stack), params: {} };
    const values: string[] = [];
    const found = walk(this.#root, method, path, 1, isEscaped, values);
    if (!found) return undefined;
    const params: Record<string, string> = {};
    for (let i = 0; i < found.names.length; i++) params[found.names[i]!] = values[i]!;
    return { route: newest(found), params };
  }

  /** The routes that serve, one for each method and path, in no order; also while some change. */
  *served(): Generator<Route<T>> {
    for (const route of this.#routes.values()) {
      const stack = this.#stackAt(readPattern(route.path), route.method)!;
      if (newest(stack) === route) yield route;
    }
  }

  /** The methods for which a path has a route, sorted; for `Allow`. */
  methods(path: string): string[] {
    return [...this.#methods.keys()].filter((method) => this.find(method, path)).sort();
  }

  #stackAt({ segments, exact }: Pattern, method: string): Stack<T> | undefined {
    if (exact !== undefined) return this.#exact.get(exact)?.get(method);
    let node: Node<T> | undefined = this.#root;
    for (const segment of segments) {
      if (segment.kind === "rest") return node.rest?.get(method);
      node = segment.kind === "param" ? node.param : node.literals?.get(segment.text);
      if (!node) return undefined;
    }
    return node.end?.get(method);
  }

  #leafFor({ segments, exact }: Pattern): Leaf<T> {
    if (exact !== undefined) {
      const known = this.#exact.get(exact);
      if (known) return known;
      const leaf: Leaf<T> = new SmallMap();
      this.#exact.set(exact, leaf);
      return leaf;
    }
    let node = this.#root;
    for (const segment of segments) {
      if (segment.kind === "rest") return node.rest ??= new SmallMap();
      if (segment.kind === "param") node = node.param ??= makeNode();
      else node = childOf(node, segment.text);
    }
    return node.end ??= new SmallMap();
  }

  /** Takes an empty stack out, and every node that nothing needs any more. */
  #prune({ segments, exact }: Pattern, method: string): void {
    if (exact !== undefined) {
      const leaf = this.#exact.get(exact)!;
      leaf.delete(method);
      if (leaf.size === 0) this.#exact.delete(exact);
      return;
    }
    const way: Node<T>[] = [this.#root];
    for (const segment of segments) {
      const node = way[way.length - 1]!;
      if (segment.kind === "rest") break;
      way.push(segment.kind === "param" ? node.param! : node.literals!.get(segment.text)!);
    }
    const last = way[way.length - 1]!;
    const isRest = segments[segments.length - 1]?.kind === "rest";
    const leaf = (isRest ? last.rest : last.end)!;
    leaf.delete(method);
    if (leaf.size > 0) return;
    if (isRest) last.rest = undefined;
    else last.end = undefined;
    for (let i = way.length - 1; i > 0 && isEmpty(way[i]!); i--) {
      const segment = segments[i - 1]!;
      if (segment.kind === "literal") way[i - 1]!.literals!.delete(segment.text);
      else way[i - 1]!.param = undefined;
    }
  }
}

/** Splits a path as its owner wrote it. */
function readPattern(path: string): Pattern {
  if (path.length > ROUTE_CHARS_MAX) {
    throw refusal(`api_path has ${path.length} characters, at most ${ROUTE_CHARS_MAX} are taken`);
  }
  if (/[\s?#]/.test(path)) {
    throw refusal(`api_path ${path} must be a path without query, fragment or spaces`);
  }
  const whole = path.startsWith("/") ? path : `/${path}`;
  const names: string[] = [];
  const parts = whole.split("/").slice(1);
  const segments = parts.map((part, i): Segment => {
    if (part === "*") {
      if (i < parts.length - 1) {
        throw refusal(`api_path ${path} must have its * as the last segment`);
      }
      names.push("*");
      return { kind: "rest" };
    }
    if (!part.startsWith(":")) return { kind: "literal", text: decode(part) };
    const name = part.slice(1);
    if (name === "") throw refusal(`api_path ${path} has a parameter without a name`);
    if (names.includes(name)) throw refusal(`api_path ${path} names ${name} twice`);
    names.push(name);
    return { kind: "param" };
  });
  if (names.length > 0) return { segments, names, exact: undefined };
  return { segments, names: NO_NAMES, exact: exactOf(["", ...parts.map(decode)]) };
}

/** The path of decoded segments; `undefined` when one of them has a slash. */
function exactOf(segments: readonly string[]): string | undefined {
  return segments.some((text) => text.includes("/")) ? undefined : segments.join("/");
}

/** The best stack below `node` for the path from `start` on; literal before param before rest. */
function walk<T>(
  node: Node<T>,
  method: string,
  path: string,
  start: number,
  isEscaped: boolean,
  values: string[],
): Stack<T> | undefined {
  if (start > path.length) return node.end?.get(method);
  let end = path.indexOf("/", start);
  if (end < 0) end = path.length;
  const raw = path.slice(start, end);
  const segment = isEscaped ? decode(raw) : raw;
  const literal = node.literals?.get(segment);
  if (literal) {
    const found = walk(literal, method, path, end + 1, isEscaped, values);
    if (found) return found;
  }
  if (node.param && segment !== "") {
    values.push(segment);
    const found = walk(node.param, method, path, end + 1, isEscaped, values);
    if (found) return found;
    values.pop();
  }
  const rest = node.rest?.get(method);
  if (rest) values.push(path.slice(start).split("/").map(decode).join("/"));
  return rest;
}

/** A URL-decoded segment; one with a broken escape stays as written. */
function decode(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // Not an escape after all.
  }
}

/** Whether something that came now is above another: by its order, or because it came later. */
export function isNewer(
  { order: one }: { readonly order?: RouteOrder | undefined },
  { order: other }: { readonly order?: RouteOrder | undefined },
): boolean {
  if (!one || !other || one.at > other.at) return true;
  return one.at === other.at && one.id > other.id;
}

function newest<T>(stack: Stack<T>): Route<T> {
  return stack.routes[stack.routes.length - 1]!;
}

function makeNode<T>(): Node<T> {
  return { literals: undefined, param: undefined, rest: undefined, end: undefined };
}

function childOf<T>(node: Node<T>, text: string): Node<T> {
  const literals = node.literals ??= new LargeMap();
  let child = literals.get(text);
  if (!child) literals.set(text, child = makeNode());
  return child;
}

function isEmpty<T>(node: Node<T>): boolean {
  return !(node.literals?.size) && !node.param && !node.rest && !node.end;
}

function conflict<T>(route: Route<T>, other: Route<T>): EngineError {
  return refusal(
    `${route.method} ${route.path} conflicts with already-registered route ` +
      `${other.method} ${other.path}; name the parameters alike`,
  );
}

function refusal(message: string): EngineError {
  return new EngineError("trigger_registration_failed", message);
}
