/**
 * Writes a client in TypeScript: an interface with a method for each function, its types, and the
 * function that makes one of a worker.
 *
 * @module
 */
import { acceptsNull, type Definition, type Member, Names, type Shape, union } from "./shape.ts";
import { type Api, type LiveFunction, type Node, readApi, type TypedFunction } from "./tree.ts";

/** Names of the file itself, and of types that every program has. */
const RESERVED = ["Api", "CallOptions", "Promise", "Record", "Worker", "Object"];

const HEAD = `// Written by \`engine types --lang ts\`; it is overwritten when functions change.
// deno-lint-ignore-file
/* eslint-disable */
import type { CallOptions, Worker } from "engine-sdk";
`;

/** The text of a client. */
export function writeTypeScript(
  functions: readonly LiveFunction[],
  namespace: string | undefined,
): string {
  const api = readApi(functions, new Names(RESERVED));
  const writer = new TypeWriter(api);
  const space = namespace === undefined ? "" : `, namespace: ${JSON.stringify(namespace)}`;
  return [
    HEAD,
    ...[...api.definitions.values()].map((each) => `${writer.definition(each)}\n`),
    `/** The functions of the live system. */\nexport interface Api ${writer.node(api.root, 0)}\n`,
    `/** A client of all functions; the worker makes the calls. */`,
    `export function createApi(worker: Pick<Worker, "trigger">): Api {`,
    `  const call = (function_id: string) => (payload?: unknown, options?: CallOptions) =>`,
    `    worker.trigger({ ...options, function_id, payload${space} });`,
    ...hasCallableGroup(api.root) ? NEST : [],
    `  return ${valueOf(api.root, 1)} as unknown as Api;`,
    `}`,
    "",
  ].join("\n");
}

/** A function that has others below it; \`Object.assign\` could not set its \`name\`. */
const NEST = [
  `  const nest = (own: object, below: Record<string, unknown>) => {`,
  `    for (const [name, value] of Object.entries(below)) {`,
  `      Object.defineProperty(own, name, { value, configurable: true, enumerable: true });`,
  `    }`,
  `    return own;`,
  `  };`,
];

function hasCallableGroup({ call, below }: Node): boolean {
  return (call !== undefined && below.size > 0) || [...below.values()].some(hasCallableGroup);
}

/** The object of a node, as an expression. */
function valueOf({ call, below }: Node, level: number): string {
  const own = call && `call(${JSON.stringify(call.id)})`;
  if (own !== undefined && below.size === 0) return own;
  const inner = "  ".repeat(level + 1);
  const members = [...below].map(([name, node]) => {
    // Otherwise a literal would set its prototype.
    const key = name === "__proto__" ? `["__proto__"]` : keyOf(name);
    return `${inner}${key}: ${valueOf(node, level + 1)},\n`;
  });
  const object = members.length === 0 ? "{}" : `{\n${members.join("")}${"  ".repeat(level)}}`;
  return own === undefined ? object : `nest(${own}, ${object})`;
}

/** Writes types as text. */
class TypeWriter {
  readonly #api: Api;
  /** Whether the type is that of a payload, which may be read-only and of an interface. */
  #isInput = false;

  constructor(api: Api) {
    this.#api = api;
  }

  definition({ name, shape, doc }: Definition): string {
    const text = docText(doc, "");
    this.#isInput = this.#api.inputs.has(name);
    if (shape.kind === "object") {
      return `${text}export interface ${name} ${this.type(shape, 0)}`;
    }
    return `${text}export type ${name} = ${this.type(shape, 0)};`;
  }

  node({ call, below }: Node, level: number): string {
    const inner = "  ".repeat(level + 1);
    const own = call === undefined ? [] : [this.#method("", call, inner)];
    const members = [...below].map(([name, node]) => {
      if (node.call && node.below.size === 0) return this.#method(keyOf(name), node.call, inner);
      return `${inner}readonly ${keyOf(name)}: ${this.node(node, level + 1)};\n`;
    });
    return `{\n${[...own, ...members].join("")}${"  ".repeat(level)}}`;
  }

  #method(key: string, { id, doc, payload, result }: TypedFunction, indent: string): string {
    const level = indent.length / 2;
    const text = docText(doc === "" ? `Calls \`${id}\`.` : doc, indent);
    const mark = acceptsNull(payload, this.#api.definitions) ? "?" : "";
    this.#isInput = true;
    const given = `payload${mark}: ${this.type(payload, level)}, options?: CallOptions`;
    this.#isInput = false;
    return `${text}${indent}${key}(${given}): Promise<${this.type(result, level)}>;\n`;
  }

  type(shape: Shape, level: number): string {
    switch (shape.kind) {
      case "integer":
        return "number";
      case "literal":
        return JSON.stringify(shape.value);
      case "named":
        return shape.name;
      case "array":
        return `${this.#readonly}${this.#part(shape.items, level)}[]`;
      case "tuple": {
        const items = shape.items.map((item, i) =>
          i < shape.least ? this.type(item, level) : `(${this.type(item, level)})?`
        );
        const rest = shape.rest ? [`...${this.#part(shape.rest, level)}[]`] : [];
        return `${this.#readonly}[${[...items, ...rest].join(", ")}]`;
      }
      case "union":
        return shape.of.map((each) => this.#part(each, level)).join(" | ");
      case "all":
        return shape.of.map((each) => this.#part(each, level)).join(" & ");
      case "object":
        return this.#object(shape.members, shape.rest, level);
      default:
        return shape.kind;
    }
  }

  /** A type as a part of another one. */
  #part(shape: Shape, level: number): string {
    const text = this.type(shape, level);
    return /^(union|all)$/.test(shape.kind) || text.startsWith("readonly ") ? `(${text})` : text;
  }

  get #readonly(): string {
    return this.#isInput ? "readonly " : "";
  }

  #object(members: readonly Member[], rest: Shape | undefined, level: number): string {
    const inner = "  ".repeat(level + 1);
    const lines = members.map(({ name, shape, isRequired, doc }) => {
      const type = this.type(shape, level + 1);
      return `${docText(doc, inner)}${inner}${keyOf(name)}${isRequired ? "" : "?"}: ${type};\n`;
    });
    if (rest && lines.length === 0) {
      return `{ [key: string]: ${this.#restType(members, rest, level)} }`;
    }
    if (rest) lines.push(`${inner}[key: string]: ${this.#restType(members, rest, level + 1)};\n`);
    return lines.length === 0
      ? "Record<string, never>"
      : `{\n${lines.join("")}${"  ".repeat(level)}}`;
  }

  /** An index signature has to fit the members as well. */
  #restType(members: readonly Member[], rest: Shape, level: number): string {
    // TypeScript assigns an interface to an index signature of this type only.
    if (rest.kind === "unknown") return this.#isInput ? "any" : "unknown";
    const type = this.type(union([rest, ...members.map(({ shape }) => shape)]), level);
    return members.every(({ isRequired }) => isRequired) ? type : `${type} | undefined`;
  }
}

/** A documentation comment. */
function docText(text: string, indent: string): string {
  if (text === "") return "";
  // A comment may not end in the middle of the text.
  const lines = text.replaceAll("*/", "*\\/").split(/\r\n|[\n\r\u2028\u2029]/)
    .map((line) => line.trimEnd());
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  const body = lines.map((line) => `${indent} *${line === "" ? "" : ` ${line}`}\n`);
  return `${indent}/**\n${body.join("")}${indent} */\n`;
}

/** The name of a member, in quotes if it is no identifier. */
function keyOf(name: string): string {
  return /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name) ? name : JSON.stringify(name);
}
