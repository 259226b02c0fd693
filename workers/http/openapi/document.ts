/**
 * The OpenAPI document of all routes, as text.
 *
 * A generator that yields between short steps, so that ten thousand routes do not hold the thread,
 * and bounded in characters: schemas that do not fit allow anything, routes that do not fit are
 * counted. The text comes in pieces, which nothing ever joins. Equal routes give equal text.
 *
 * @module
 */
import type { FunctionView } from "../../../engine/ports/directory.ts";
import { DEFAULT_NAMESPACE, type JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { Target } from "../handler.ts";
import type { Route } from "../routes.ts";
import {
  ERROR_BODY,
  type FunctionSchemas,
  type ListenerRules,
  operationOf,
  schemasOf,
  SHARED_COMPONENTS,
} from "./operation.ts";
import { addToHash, HASH_START, hexOf, type PathTemplate, templateOf } from "./paths.ts";
import { SchemaComponents } from "./schemas.ts";

/** Routes of a document. */
export const ROUTES_MAX = 20_000;
/** Characters of all paths, and of all schemas beside them. */
export const PATHS_CHARS_MAX = 16 * 1024 * 1024;
/** See {@linkcode PATHS_CHARS_MAX}. */
export const SCHEMAS_CHARS_MAX = 8 * 1024 * 1024;
/** Characters of an operation; a longer one is described without its function's schemas. */
export const OPERATION_CHARS_MAX = 64 * 1024;
/** A piece of the text is complete from here on. */
export const PIECE_CHARS = 256 * 1024;
/** Routes that are read, or sorted, in one step. */
const STEP_ROUTES = 100;
/** Routes that do not appear and are named. */
const OMITTED_NAMED_MAX = 100;

/** What is described. */
export interface Described extends ListenerRules {
  readonly routes: Iterable<Route<Target>>;
  /** `undefined`: no worker offers it now. */
  viewOf(namespace: string, function_id: string): FunctionView | undefined;
}

/** The text of a document. */
export interface DocumentText {
  /** In order; together the JSON text. */
  readonly pieces: readonly string[];
  /** Routes that it describes. */
  readonly routes: number;
}

interface Entry extends PathTemplate {
  readonly route: Route<Target>;
}

/** Writes the document; each `next()` takes well below a millisecond, or one schema's time. */
export function* writeDocument(described: Described): Generator<void, DocumentText> {
  const text = new Text();
  const writer = new PathsWriter(described, text);
  const { entries, omitted } = yield* readRoutes(described);
  text.add('{"openapi":"3.1.0","paths":{');
  let group: Entry[] = [];
  for (const entry of merge(entries)) {
    if (group.length > 0 && group[0]!.shape !== entry.shape) {
      yield* writer.writePath(group);
      group = [];
    }
    group.push(entry);
  }
  if (group.length > 0) yield* writer.writePath(group);
  const { responses, securitySchemes } = SHARED_COMPONENTS;
  const shared = JSON.stringify({ responses, securitySchemes }).slice(1, -1);
  text.add(`},"components":{${shared},"schemas":{"Error":${JSON.stringify(ERROR_BODY)}`);
  for (const member of writer.components.take()) {
    text.add(`,${member}`);
    yield;
  }
  if (writer.components.hasLeftOut) text.add(`,${writer.components.leftOut()}`);
  text.add("}}");
  writer.omitted.count += omitted;
  if (writer.omitted.count > 0) text.add(`,"x-omitted-routes":${JSON.stringify(writer.omitted)}`);
  const info = {
    title: "HTTP routes of the engine",
    description: "Written by engine-http. The version is a hash of the routes and their schemas.",
    version: text.hash,
  };
  text.add(`,"info":${JSON.stringify(info)}}`);
  return { pieces: text.end(), routes: writer.routes };
}

/** Pieces of text, and the hash of all. */
class Text {
  readonly #pieces: string[] = [];
  #open: string[] = [];
  #chars = 0;
  #hash = HASH_START;

  get hash(): string {
    return hexOf(this.#hash);
  }

  add(text: string): void {
    this.#hash = addToHash(this.#hash, text);
    this.#open.push(text);
    this.#chars += text.length;
    if (this.#chars >= PIECE_CHARS) this.#close();
  }

  end(): readonly string[] {
    if (this.#open.length > 0) this.#close();
    return this.#pieces;
  }

  #close(): void {
    this.#pieces.push(this.#open.join(""));
    this.#open = [];
    this.#chars = 0;
  }
}

/** The member `paths`, and the components that it refers to. */
class PathsWriter {
  readonly components = new SchemaComponents(SCHEMAS_CHARS_MAX);
  readonly omitted: { count: number; routes: string[] } = { count: 0, routes: [] };
  routes = 0;
  readonly #described: Described;
  readonly #text: Text;
  readonly #schemas = new Map<string, FunctionSchemas>();
  #chars = 0;
  #isFirst = true;

  constructor(described: Described, text: Text) {
    this.#described = described;
    this.#text = text;
  }

  /** Writes one path: routes of one shape, sorted by method. */
  *writePath(group: readonly Entry[]): Generator<void> {
    // Parameters of one path have one name each, whatever the routes call them.
    const first = group.reduce((a, b) => b.template < a.template ? b : a);
    const members: string[] = [];
    const methods = new Set<string>();
    for (const entry of group) {
      const method = entry.route.method.toLowerCase();
      const text = methods.has(method) ? undefined : this.#operation(entry, first);
      if (text === undefined) this.#omit(entry);
      else {
        methods.add(method);
        members.push(`"${method}":${text}`);
        this.routes++;
      }
      yield;
    }
    if (members.length === 0) return;
    const comma = this.#isFirst ? "" : ",";
    this.#isFirst = false;
    this.#text.add(`${comma}${JSON.stringify(first.template)}:{${members.join(",")}}`);
  }

  /** `undefined` when it does not fit. */
  #operation(entry: Entry, { params: names, template }: Entry): string | undefined {
    const { route: { method, path, value }, params: own } = entry;
    const namespace = value.namespace ?? DEFAULT_NAMESPACE;
    const view = this.#described.viewOf(namespace, value.function_id);
    const params = own.map(({ key }, i) => ({ key, name: names[i]!.name }));
    const { function_id, config } = value;
    const route = { method, path, function_id, config, params, view };
    const write = (schemas: FunctionSchemas | undefined): string =>
      JSON.stringify(operationOf(route, schemas, this.#described));
    let text = write(view && this.#schemasOf(view));
    if (text.length > OPERATION_CHARS_MAX || !this.#fits(text, template)) text = write(undefined);
    if (!this.#fits(text, template)) return undefined;
    this.#chars += text.length + template.length;
    return text;
  }

  #fits(text: string, template: string): boolean {
    return this.#chars + text.length + template.length <= PATHS_CHARS_MAX;
  }

  #schemasOf(view: FunctionView): FunctionSchemas {
    const key = `${view.namespace} ${view.function_id}`;
    const known = this.#schemas.get(key) ?? schemasOf(view, this.components);
    this.#schemas.set(key, known);
    return known;
  }

  #omit({ route: { method, path } }: Entry): void {
    this.omitted.count++;
    if (this.omitted.routes.length < OMITTED_NAMED_MAX) {
      this.omitted.routes.push(`${method} ${path}`);
    }
  }
}

/** The routes as lists that are sorted each; hidden ones are left out. */
function* readRoutes(
  { routes, viewOf }: Described,
): Generator<void, { entries: Entry[][]; omitted: number }> {
  const entries: Entry[][] = [];
  let open: Entry[] = [];
  let read = 0;
  let omitted = 0;
  for (const route of routes) {
    if (read++ % STEP_ROUTES === 0) yield;
    if (isHidden(route.value, viewOf)) continue;
    if (entries.length * STEP_ROUTES >= ROUTES_MAX) {
      omitted++;
      continue;
    }
    open.push({ route, ...templateOf(route.path) });
    if (open.length === STEP_ROUTES) {
      entries.push(open.sort(compare));
      open = [];
    }
  }
  if (open.length > 0) entries.push(open.sort(compare));
  return { entries, omitted };
}

/** A function of the engine itself, or one whose metadata or whose trigger's says `internal`. */
function isHidden(
  { function_id, namespace, metadata }: Target,
  viewOf: Described["viewOf"],
): boolean {
  if (
    function_id.startsWith("engine::") || (metadata as JsonObject | undefined)?.internal === true
  ) {
    return true;
  }
  return viewOf(namespace ?? DEFAULT_NAMESPACE, function_id)?.internal === true;
}

/** Merges sorted lists, of which there are at most two hundred: a heap would be no faster. */
function* merge(lists: readonly Entry[][]): Generator<Entry> {
  const open = lists.map((list) => ({ list, at: 0 }));
  while (open.length > 0) {
    let best = 0;
    for (let i = 1; i < open.length; i++) {
      const [a, b] = [open[i]!, open[best]!];
      if (compare(a.list[a.at]!, b.list[b.at]!) < 0) best = i;
    }
    const { list, at } = open[best]!;
    yield list[at]!;
    open[best]!.at++;
    if (at + 1 === list.length) open.splice(best, 1);
  }
}

/** By path, then method; a parameter before the rest of a path, which it hides. */
function compare(a: Entry, b: Entry): number {
  if (a.shape !== b.shape) return a.shape < b.shape ? -1 : 1;
  if (a.route.method !== b.route.method) return a.route.method < b.route.method ? -1 : 1;
  return Number(a.params.at(-1)?.key === "*") - Number(b.params.at(-1)?.key === "*");
}
