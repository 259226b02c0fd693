/**
 * The YAML that most config.yaml files are made of, read without the parser.
 *
 * Loading the parser is a fifth of what an engine does before it listens. Most files have nothing
 * but nested keys, lists, words, numbers and comments, one to a line. Each line must match a strict
 * form here; with the first one that does not, nothing is read, and the parser has the whole text.
 * So this file never reports a mistake, and need not know all of YAML. The test compares the two.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { YAML_VALUES_MAX } from "../../sdk/typescript/wire/limits.ts";
import { pathOf, Places } from "./yaml_places.ts";
import type { YamlText } from "./yaml_text.ts";

/** Blank, or nothing but a comment. */
const NOTHING = /^ *(#.*)?$/;
/** Indent, dash, key, what stands behind it; the key or the rest may be missing. */
const LINE = /^( *)(- )?(?:([A-Za-z][\w-]*):(?= |$))? *(.*)$/;
/** One value and a comment: quoted without escapes and variables, `[]`, `{}` ... */
const VALUE = /^(?:"([^"\\$]*)"|'([^'$]*)'|(\[\]|\{\})|([^"'#[\]{}]*?))(?: +#.*)?$/;
/** ... or words: what begins like a number or has a sign of YAML's is for the parser. */
const WORDS = /^(?:\.{1,2}\/|[A-Za-z/])[\w./@+=~-]*(?::[\w./@+=~-]+)*(?: [\w./@+=~-]+)*$/;
/** Words that mean something else. */
const NO_TEXT = /^(?:true|false|null|nan|inf|yes|no|on|off|y|n)$/i;
const NUMBER = /^(?:0|[1-9]\d{0,14})(?:\.\d{1,6})?$/;

/** What is deeper is not usual, and this reader calls itself for each level. */
const INDENT_MAX = 64;

/** One key, or one item of a list, or the value of an item. */
interface Line {
  readonly number: number;
  readonly indent: number;
  readonly isItem: boolean;
  readonly key: string | undefined;
  /** `undefined`: what follows is inside. */
  readonly value: Scalar | undefined;
}

/** A value that stands on one line, and how it was written if that was not as text. */
interface Scalar {
  readonly value: Json;
  readonly source?: string;
}

/** Thrown inside only: this text is for the parser. */
class NotPlain extends Error {}

/** Reads a text that is plain in every line; `undefined` for any other. */
export function readPlainYaml(file: string, text: string): YamlText | undefined {
  if (!/^[\n -~]*$/.test(text)) return undefined;
  try {
    return new PlainReader(file, linesOf(text));
  } catch (thrown) {
    if (thrown instanceof NotPlain) return undefined;
    throw thrown;
  }
}

function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  text.split("\n").forEach((line, i) => {
    if (NOTHING.test(line)) return;
    const [, spaces = "", dash, key, rest = ""] = LINE.exec(line)!;
    const number = i + 1;
    let indent = spaces.length;
    if (indent > INDENT_MAX) throw new NotPlain();
    if (dash !== undefined) {
      lines.push({ number, indent, isItem: true, key: undefined, value: undefined });
      indent += dash.length;
    }
    if (key !== undefined && NO_TEXT.test(key)) throw new NotPlain();
    const value = scalarOf(rest);
    if (key === undefined && (dash === undefined || value === undefined)) throw new NotPlain();
    lines.push({ number, indent, isItem: false, key, value });
  });
  if (lines.length > YAML_VALUES_MAX) throw new NotPlain();
  return lines;
}

/** The value of the rest of a line; `undefined` when there is none. */
function scalarOf(rest: string): Scalar | undefined {
  if (NOTHING.test(rest)) return undefined;
  const [, double, single, empty, plain = ""] = VALUE.exec(rest) ?? fail();
  const quoted = double ?? single;
  if (quoted !== undefined) return { value: quoted };
  if (empty !== undefined) return { value: empty === "[]" ? [] : {} };
  if (NUMBER.test(plain)) return { value: Number(plain), source: plain };
  if (plain === "true" || plain === "false") return { value: plain === "true", source: plain };
  if (WORDS.test(plain) && !NO_TEXT.test(plain)) return { value: plain };
  return fail();
}

function fail(): never {
  throw new NotPlain();
}

/** Puts lines into each other by their indents. */
class PlainReader implements YamlText {
  readonly file: string;
  readonly value: Json;
  readonly problems = [];
  readonly #places = new Places();
  readonly #sources = new Map<string, string>();
  readonly #lines: readonly Line[];
  #at = 0;

  /** @throws {NotPlain} */
  constructor(file: string, lines: readonly Line[]) {
    this.file = file;
    this.#lines = lines;
    this.value = lines.length === 0 ? null : this.#block("", lines[0]!.indent);
    if (this.#at < lines.length) fail();
  }

  lineOf(path: string): number | undefined {
    return this.#places.nearest(path);
  }

  textOf(path: string): string | undefined {
    return this.#sources.get(path);
  }

  /** Variables are for the parser. */
  isFilledIn(): boolean {
    return false;
  }

  /** Variables are for the parser. */
  variableOf(): undefined {}

  /** Everything from here on with this indent, and what is inside. */
  #block(path: string, indent: number): Json {
    this.#places.note(path, this.#lines[this.#at]!.number);
    return this.#lines[this.#at]!.isItem ? this.#list(path, indent) : this.#map(path, indent);
  }

  #list(path: string, indent: number): Json[] {
    const items: Json[] = [];
    for (;;) {
      const line = this.#lines[this.#at];
      if (line?.indent !== indent || !line.isItem) return items;
      const inner = pathOf(path, items.length);
      const next = this.#lines[++this.#at]!; // What stands behind the dash.
      items.push(next.key === undefined ? this.#scalar(inner) : this.#block(inner, next.indent));
    }
  }

  #map(path: string, indent: number): JsonObject {
    const value: JsonObject = {};
    for (;;) {
      const line = this.#lines[this.#at];
      if (line?.indent !== indent || line.isItem) return value;
      const { key = fail() } = line;
      if (Object.hasOwn(value, key)) fail();
      const inner = pathOf(path, key);
      this.#places.note(inner, line.number);
      value[key] = line.value ? this.#scalar(inner) : this.#inside(inner, indent);
    }
  }

  #scalar(path: string): Json {
    const { number, value: { value, source } = fail() } = this.#lines[this.#at++]!;
    this.#places.note(path, number);
    if (source !== undefined) this.#sources.set(path, source);
    return value;
  }

  /** What a key has below it; a list may stand as far left as the key. */
  #inside(path: string, indent: number): Json {
    const next = this.#lines[++this.#at];
    if (!next || next.indent < indent || (next.indent === indent && !next.isItem)) fail();
    return this.#block(path, next.indent);
  }
}
