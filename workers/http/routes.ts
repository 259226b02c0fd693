/**
 * The table of routes: a trie of path segments, to which routes are added and removed at run time.
 *
 * A literal segment wins over `:name`, and `:name` over a `*` at the end. Routes of the same method
 * and path form a stack: the newest serves, and when it is removed the one before it serves again.
 * The table does not look at the value of a route.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { LargeMap } from "../../sdk/typescript/wire/large_map.ts";

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

type Leaf<T> = Map<string, Stack<T>>;

interface Node<T> {
  readonly literals: LargeMap<Node<T>>;
  param: Node<T> | undefined;
  /** Ends with `*` here. */
  rest: Leaf<T> | undefined;
  /** Ends here. */
  end: Leaf<T> | undefined;
}

/** A registered route and its pattern. */
interface Place<T> {
  readonly route: Route<T>;
  readonly pattern: Pattern;
}

type Segment =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "param" }
  | { readonly kind: "rest" };

interface Pattern {
  readonly segments: readonly Segment[];
  readonly names: readonly string[];
  /** The path itself when a plain comparison decides, else `undefined`. */
  readonly exact: string | undefined;
}

/** A mutable table of routes. */
export class RouteTable<T> {
  readonly #root: Node<T> = makeNode();
  /** Paths without open segments, for the quick way. */
  readonly #exact = new LargeMap<Leaf<T>>();
  readonly #places = new LargeMap<Place<T>>();
  /** How many routes each method has. */
  readonly #methods = new Map<string, number>();

  /** Routes that are registered, also those a newer one stands in front of. */
  get size(): number {
    return this.#places.size;
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
    this.#places.set(route.id, { route, pattern });
    this.#methods.set(route.method, (this.#methods.get(route.method) ?? 0) + 1);
    return stack && newest(stack) !== route ? undefined : before;
  }

  /** Removes the route with this id and returns it; `undefined` when there is none. */
  remove(id: string): Route<T> | undefined {
    const place = this.#places.get(id);
    if (!place) return undefined;
    this.#places.delete(id);
    const { route, pattern } = place;
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
    const stack = this.#exact.get(path)?.get(method);
    if (stack) return { route: newest(stack), params: {} };
    const values: string[] = [];
    const found = walk(this.#root, method, path, 1, path.includes("%"), values);
    if (!found) return undefined;
    const params: Record<string, string> = {};
    for (let i = 0; i < found.names.length; i++) params[found.names[i]!] = values[i]!;
    return { route: newest(found), params };
  }

  /** The routes that serve, one for each method and path, in no order; also while some change. */
  *served(): Generator<Route<T>> {
    for (const { route, pattern } of this.#places.values()) {
      if (newest(this.#stackAt(pattern, route.method)!) === route) yield route;
    }
  }

  /** The methods for which a path has a route, sorted; for `Allow`. */
  methods(path: string): string[] {
    return [...this.#methods.keys()].filter((method) => this.find(method, path)).sort();
  }

  #stackAt(pattern: Pattern, method: string): Stack<T> | undefined {
    let node: Node<T> | undefined = this.#root;
    for (const segment of pattern.segments) {
      if (segment.kind === "rest") return node.rest?.get(method);
      node = segment.kind === "param" ? node.param : node.literals.get(segment.text);
      if (!node) return undefined;
    }
    return node.end?.get(method);
  }

  #leafFor(pattern: Pattern): Leaf<T> {
    let node = this.#root;
    for (const segment of pattern.segments) {
      if (segment.kind === "rest") return node.rest ??= new Map();
      if (segment.kind === "param") node = node.param ??= makeNode();
      else node = childOf(node, segment.text);
    }
    const leaf: Leaf<T> = node.end ??= new Map();
    if (pattern.exact !== undefined) this.#exact.set(pattern.exact, leaf);
    return leaf;
  }

  /** Takes an empty stack out, and every node that nothing needs any more. */
  #prune(pattern: Pattern, method: string): void {
    const way: Node<T>[] = [this.#root];
    for (const segment of pattern.segments) {
      const node = way[way.length - 1]!;
      if (segment.kind === "rest") break;
      way.push(segment.kind === "param" ? node.param! : node.literals.get(segment.text)!);
    }
    const last = way[way.length - 1]!;
    const isRest = pattern.segments[pattern.segments.length - 1]?.kind === "rest";
    const leaf = (isRest ? last.rest : last.end)!;
    leaf.delete(method);
    if (leaf.size > 0) return;
    if (isRest) last.rest = undefined;
    else last.end = undefined;
    if (pattern.exact !== undefined) this.#exact.delete(pattern.exact);
    for (let i = way.length - 1; i > 0 && isEmpty(way[i]!); i--) {
      const segment = pattern.segments[i - 1]!;
      if (segment.kind === "literal") way[i - 1]!.literals.delete(segment.text);
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
  const isPlain = names.length === 0 && !whole.includes("%");
  return { segments, names, exact: isPlain ? whole : undefined };
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
  const literal = node.literals.get(segment);
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
  return { literals: new LargeMap(), param: undefined, rest: undefined, end: undefined };
}

function childOf<T>(node: Node<T>, text: string): Node<T> {
  let child = node.literals.get(text);
  if (!child) node.literals.set(text, child = makeNode());
  return child;
}

function isEmpty<T>(node: Node<T>): boolean {
  return node.literals.size === 0 && !node.param && !node.rest && !node.end;
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
