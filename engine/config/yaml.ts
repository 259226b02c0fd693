/**
 * YAML as values with their lines; the only place that knows the parser.
 *
 * Nothing here knows which keys there are. Reading reports everything that is wrong with the text
 * itself; the values come with the line of each, so that later checks can name it.
 *
 * @module
 */
import * as yaml from "yaml";
import type { LineCounter, Node, Scalar, YAMLMap } from "yaml";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Values in one YAML file; those behind an alias count each time. */
const YAML_VALUES_MAX = 20_000;
/** Characters of all values of one file; those behind an alias count each time. */
const YAML_CHARS_MAX = 1024 * 1024;
/** Levels of lists and mappings, an alias included. */
const YAML_DEPTH_MAX = 64;
/** Characters of a value that a problem quotes. */
const QUOTE_CHARS_MAX = 100;

/** A YAML text as values with their lines. Paths are such as `workers[1].config.port`. */
export interface YamlText {
  /** Name of the file, such as `config.yaml`: the path of problems of the whole text. */
  readonly file: string;
  /** `null` for an empty text. */
  readonly value: Json;
  /** Problems of the text itself; empty when it can be used. */
  readonly problems: readonly string[];
  /** Line of the value at a path, or of the nearest one around it. */
  lineOf(path: string): number | undefined;
  /** The scalar at a path as it was written, if it was read as something else than text. */
  textOf(path: string): string | undefined;
  /** Whether one variable gave the whole value at a path. */
  isFilledIn(path: string): boolean;
  /** The first variable in the value at a path, if there is one. */
  variableOf(path: string): string | undefined;
}

/** The value of an environment variable; `undefined` when it is not set. */
export type Variables = (name: string) => string | undefined;

/** The content of a file, for `${file:PATH}`; an {@linkcode Error} says why there is none. */
export type ReadFile = (path: string) => string | Error;

/** The error for a file that cannot be used; `details.problems` lists all problems. */
export function invalidFile(
  code: "config_invalid" | "manifest_invalid",
  file: string,
  problems: readonly string[],
): EngineError {
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  const [first = ""] = problems;
  const message = first.startsWith(file) ? first : `${file} cannot be used: ${first}${more}`;
  return new EngineError(code, message, { details: { problems: [...problems] } });
}

/** Further problems of one text are not reported: one mistake may cause thousands. */
const SYNTAX_PROBLEMS_MAX = 100;

/** One problem as people read it. */
export function problemText(
  path: string,
  expected: string,
  received: string,
  line?: number,
): string {
  return `${path}: expected ${expected}, received ${received}${line ? ` (line ${line})` : ""}`;
}

/**
 * Reads YAML. With `variables`, `${NAME}`, `${NAME:default}` and `${file:PATH}` in values are
 * filled in after parsing, so that a value cannot add keys; `$${` stands for `${`. An unquoted
 * value that is one variable as a whole is read as YAML would read it, so that a port is a number.
 */
export function readYaml(
  file: string,
  text: string,
  variables?: Variables,
  readFile?: ReadFile,
): YamlText {
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: false,
    prettyErrors: false, // Each would quote the text, which takes time in proportion to it.
  });
  const reader = new YamlReader(file, lines, variables, readFile);
  const wrong = [...document.errors, ...document.warnings].slice(0, SYNTAX_PROBLEMS_MAX);
  for (const { code, message, pos } of wrong) {
    reader.syntax(code, message, lines.linePos(pos[0]).line);
  }
  if (reader.problems.length === 0) reader.value = reader.read(document.contents, "");
  return reader;
}

/** Walks the nodes once, and keeps their values, lines and texts. */
class YamlReader implements YamlText {
  value: Json = null;
  readonly problems: string[] = [];
  readonly file: string;
  readonly #lines: LineCounter;
  readonly #variables: Variables | undefined;
  readonly #readFile: ReadFile | undefined;
  readonly #lineByPath = new Map<string, number>();
  readonly #textByPath = new Map<string, string>();
  readonly #filledIn = new Set<string>();
  readonly #variableByPath = new Map<string, string>();
  /** Targets of aliases that are being read: an alias must not contain itself. */
  readonly #open = new Set<Node>();
  /** The node of each anchor so far. The library would search the whole text for each alias. */
  readonly #anchors = new Map<string, Node>();
  readonly #anchored = new Set<Node>();
  #count = 0;
  #chars = 0;
  #depth = 0;
  #isTooDeep = false;

  constructor(
    file: string,
    lines: LineCounter,
    variables: Variables | undefined,
    readFile: ReadFile | undefined,
  ) {
    this.file = file;
    this.#lines = lines;
    this.#variables = variables;
    this.#readFile = readFile;
  }

  lineOf(path: string): number | undefined {
    for (let rest = path;; rest = rest.replace(/(\.[\w-]+|\[[^[]*\]|^[\w-]+)$/, "")) {
      const line = this.#lineByPath.get(rest);
      if (line !== undefined || rest === "") return line;
    }
  }

  textOf(path: string): string | undefined {
    return this.#textByPath.get(path);
  }

  isFilledIn(path: string): boolean {
    return this.#filledIn.has(path);
  }

  variableOf(path: string): string | undefined {
    return this.#variableByPath.get(path);
  }

  syntax(code: string, message: string, line: number | undefined): void {
    const text = code === "TAB_AS_INDENT"
      ? problemText(this.file, "spaces for indentation", "a tab", line)
      : /call stack/.test(message) // The library's parser is recursive.
      ? problemText(this.file, `at most ${YAML_DEPTH_MAX} levels`, "more", line)
      : problemText(this.file, "valid YAML", `something else: ${plainMessage(message)}`, line);
    if (!this.problems.includes(text)) this.problems.push(text);
  }

  read(node: Node | null, path: string): Json {
    if (node === null) return null;
    if (++this.#count > YAML_VALUES_MAX) {
      if (this.#count === YAML_VALUES_MAX + 1) {
        this.#problem(this.file, `at most ${YAML_VALUES_MAX} values`, "more");
      }
      return null;
    }
    if (this.#depth >= YAML_DEPTH_MAX) {
      if (!this.#isTooDeep) this.#problem(this.file, `at most ${YAML_DEPTH_MAX} levels`, "more");
      this.#isTooDeep = true;
      return null;
    }
    this.#depth++;
    const value = this.#readAny(node, path);
    this.#depth--;
    return value;
  }

  #readAny(node: Node, path: string): Json {
    this.#noteLine(path, this.#lineAt(node));
    this.#noteAnchor(node);
    if (yaml.isMap(node)) return this.#map(node, path);
    if (yaml.isSeq(node)) {
      return node.items.map((item, i) => this.read(item as Node | null, pathOf(path, i)));
    }
    if (yaml.isScalar(node)) return this.#scalar(node, path);
    return this.#alias(node, path);
  }

  #alias(node: Node, path: string): Json {
    const target = yaml.isAlias(node) ? this.#anchors.get(node.source) : undefined;
    if (!target || this.#open.has(target)) {
      this.#problem(path, "an anchor that was named before", String(node));
      return null;
    }
    this.#open.add(target);
    const value = this.read(target, path);
    this.#open.delete(target);
    return value;
  }

  /** A node that is read again through an alias defines no anchor again. */
  #noteAnchor(node: Node): void {
    if (yaml.isAlias(node) || this.#anchored.has(node)) return;
    const { anchor } = node as { anchor?: string };
    if (anchor === undefined) return;
    this.#anchored.add(node);
    this.#anchors.set(anchor, node);
  }

  #map(node: YAMLMap, path: string): Json {
    const value: JsonObject = {};
    for (const { key, value: member } of node.items) {
      const at = key as Node;
      const line = this.#lineAt(at);
      if (!yaml.isScalar(at) || at.value === null) {
        this.#problem(path || this.file, "a string as key", "something else", line);
        continue;
      }
      this.#noteAnchor(at);
      const name = String(at.source ?? at.value);
      const inner = pathOf(path, name);
      const before = this.#lineByPath.get(inner);
      if (Object.hasOwn(value, name)) {
        this.#problem(inner, "the key once", `it again, first in line ${before}`, line);
        continue;
      }
      this.#noteLine(inner, line);
      Object.defineProperty(value, name, {
        value: this.read(member as Node | null, inner),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return value;
  }

  #scalar(node: Scalar, path: string): Json {
    const { value } = node;
    if (typeof value === "string") {
      const text = this.#text(value, node.type === yaml.Scalar.PLAIN, path);
      return this.#hasRoom(String(text).length) ? text : null;
    }
    this.#textByPath.set(path, node.source ?? String(value));
    if (typeof value === "number" && !Number.isFinite(value)) {
      this.#problem(path, "a number that JSON can hold", String(node.source));
      return null;
    }
    return value as Json;
  }

  /** Counts characters; one text may stand in thousands of places. */
  #hasRoom(chars: number): boolean {
    const before = this.#chars;
    this.#chars += chars;
    if (this.#chars <= YAML_CHARS_MAX) return true;
    if (before <= YAML_CHARS_MAX) {
      this.#problem(this.file, `values of at most ${YAML_CHARS_MAX} characters`, "more");
    }
    return false;
  }

  #text(text: string, isPlain: boolean, path: string): Json {
    if (!this.#variables || !text.includes("${")) return text;
    let isWhole = false;
    const filled = text.replaceAll(/\$\$\{|\$\{([^}]*)(\}?)/g, (found, inner, end) => {
      if (found === "$${") return "${";
      isWhole = found === text;
      return this.#variable(found, end === "" ? "" : inner, path);
    });
    if (!isWhole || !isPlain) return filled;
    this.#filledIn.add(path);
    this.#textByPath.set(path, filled);
    return plainValue(filled);
  }

  #variable(found: string, inner: string, path: string): string {
    const file = /^file:(.+)$/.exec(inner)?.[1];
    if (file !== undefined && this.#readFile) return this.#file(this.#readFile(file), file, path);
    const parts = /^([A-Za-z_]\w*)(?::(.*))?$/s.exec(inner);
    if (!parts) {
      const quote = JSON.stringify(found.slice(0, QUOTE_CHARS_MAX));
      this.#problem(path, "${NAME}, ${NAME:default} or ${file:PATH}", quote);
      return "";
    }
    const [, name, otherwise] = parts;
    if (!this.#variableByPath.has(path)) this.#variableByPath.set(path, name!);
    const value = this.#variables!(name!) ?? otherwise;
    if (value !== undefined) return value;
    this.#problem(path, `the environment variable ${name} to be set`, "nothing");
    return "";
  }

  /** The content of a file without the line end that most editors put there. */
  #file(content: string | Error, file: string, path: string): string {
    if (!this.#variableByPath.has(path)) this.#variableByPath.set(path, `file:${file}`);
    if (typeof content === "string") return content.replace(/\r?\n$/, "");
    this.#problem(path, `the file ${file} to be readable`, content.message);
    return "";
  }

  #problem(path: string, expected: string, received: string, line = this.lineOf(path)): void {
    this.problems.push(problemText(path, expected, received, line));
  }

  /** The first line of a path stays. */
  #noteLine(path: string, line: number): void {
    if (!this.#lineByPath.has(path)) this.#lineByPath.set(path, line);
  }

  #lineAt(node: Node): number {
    return this.#lines.linePos(node.range?.[0] ?? 0).line;
  }
}

/** The library's message without the quote and the position, which the problem has anyway. */
function plainMessage(message: string): string {
  return message.split("\n")[0]!.replace(/ at line \d+, column \d+:?$/, "");
}

/** The value of an unquoted YAML scalar with this text; never a list or a mapping. */
function plainValue(text: string): Json {
  if (/[\s#]/.test(text)) return text;
  try {
    const value: unknown = yaml.parse(text);
    return value === null || typeof value === "boolean" || Number.isFinite(value)
      ? value as Json
      : text;
  } catch {
    return text; // Not YAML by itself, so it is just text.
  }
}

/** A list of the file's top level, as its items change. */
export type ListChange =
  | { type: "add"; item: JsonObject }
  | { type: "remove"; index: number }
  | { type: "set"; index: number; key: string; value: Json };

/** Has the library write the whole text: comments and order stay, spacing may change. */
export function rewriteYaml(text: string, key: string, change: ListChange): string {
  const document = yaml.parseDocument(text);
  switch (change.type) {
    case "add":
      if (yaml.isSeq(document.get(key))) document.addIn([key], change.item);
      else document.set(key, [change.item]);
      break;
    case "remove":
      document.deleteIn([key, change.index]);
      break;
    case "set":
      document.setIn([key, change.index, change.key], change.value);
      break;
  }
  return document.toString();
}

/** The path of a member: `env` and `PATH` become `env.PATH`. */
export function pathOf(parent: string, key: string | number): string {
  if (typeof key === "number") return `${parent}[${key}]`;
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === "" ? key : `${parent}.${key}`;
}
