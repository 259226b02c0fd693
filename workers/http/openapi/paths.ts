/**
 * Paths of routes as OpenAPI writes them: `/orders/:id` is `/orders/{id}`.
 *
 * Two templates of OpenAPI are the same path when they differ in names only, so routes are grouped
 * by {@linkcode PathTemplate.shape}. A `*` at the end, which OpenAPI does not know, becomes a
 * parameter.
 *
 * @module
 */

/** Name of the parameter that stands for the rest of a path. */
const REST_NAME = "rest";
/** Digits of a hash. */
const HASH_DIGITS = 8;

/** An open segment of a path. */
export interface PathParam {
  /** As the handler finds it in `path_params`; `*` for the rest of the path. */
  readonly key: string;
  /** As the template names it. */
  readonly name: string;
}

/** A path of a route. */
export interface PathTemplate {
  /** Such as `/orders/{id}`. */
  readonly template: string;
  /** Equal for paths that differ in the names of their parameters only: `/orders/{}`. */
  readonly shape: string;
  readonly params: readonly PathParam[];
}

/** Reads the `api_path` of a trigger. */
export function templateOf(path: string): PathTemplate {
  const params: PathParam[] = [];
  const names = new Set<string>();
  const shape: string[] = [];
  const parts = segmentsOf(path).map((segment) => {
    const key = keyOf(segment);
    if (key === undefined) {
      const literal = encode(segment);
      shape.push(literal);
      return literal;
    }
    const name = unique(key === "*" ? REST_NAME : key.replace(/[^A-Za-z0-9_.-]/g, "_"), names);
    params.push({ key, name });
    shape.push("{}");
    return `{${name}}`;
  });
  return { template: `/${parts.join("/")}`, shape: `/${shape.join("/")}`, params };
}

/**
 * A name for an operation that depends on its method and path alone and is different for each pair:
 * `get_orders_by_id`. Paths that words do not tell apart end with digits.
 */
export function operationIdOf(method: string, path: string): string {
  const words = [method.toLowerCase()];
  const segments = segmentsOf(path);
  if (segments.length === 1 && segments[0] === "") return words[0]!;
  let isExact = true;
  for (const segment of segments) {
    const key = keyOf(segment);
    if (key === "*") {
      words.push(REST_NAME);
      continue;
    }
    if (key !== undefined) words.push("by");
    const text = key ?? segment;
    const word = text.replace(/[^A-Za-z0-9-]+/g, "_");
    const isWord = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/.test(text);
    // Underscores divide segments, so those within one are doubled.
    words.push(word.replaceAll("_", "__"));
    const isTaken = key === undefined && (text === "by" || text === REST_NAME);
    if (!isWord || isTaken) isExact = false;
  }
  const id = words.join("_");
  return isExact ? id : `${id}_${hashOf(`${method} /${segments.join("/")}`)}`;
}

function segmentsOf(path: string): string[] {
  return (path.startsWith("/") ? path : `/${path}`).split("/").slice(1);
}

/** The name of an open segment; `undefined` for a literal one. */
function keyOf(segment: string): string | undefined {
  if (segment === "*") return "*";
  return segment.startsWith(":") ? segment.slice(1) : undefined;
}

/** A literal segment with escapes for what a path may not hold as such. */
function encode(segment: string): string {
  let text = segment;
  try {
    text = decodeURIComponent(segment);
  } catch {
    // Not an escape after all: its % is a character as any other.
  }
  return text.toWellFormed().replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@]/gu, encodeURIComponent);
}

function unique(name: string, names: Set<string>): string {
  let found = name;
  for (let n = 2; names.has(found); n++) found = `${name}_${n}`;
  names.add(found);
  return found;
}

/** FNV-1a, 32 bits: the same in every version and on every machine. */
function hashOf(text: string): string {
  return hexOf(addToHash(HASH_START, text));
}

/** The hash of an empty text. */
export const HASH_START = 0x811c9dc5;

/** The hash of a longer text, from that of its beginning. */
export function addToHash(hash: number, text: string): number {
  let next = hash;
  for (let i = 0; i < text.length; i++) next = Math.imul(next ^ text.charCodeAt(i), 0x01000193);
  return next;
}

/** A hash as eight digits. */
export function hexOf(hash: number): string {
  return (hash >>> 0).toString(16).padStart(HASH_DIGITS, "0");
}
