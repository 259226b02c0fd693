/**
 * Writes a client in Python: a class with a method for each function, and a coroutine beside it,
 * and the types of payloads and results, for mypy and pyright.
 *
 * @module
 */
import {
  acceptsNull,
  type Definition,
  type Member,
  Names,
  type ObjectShape,
  type Shape,
  typeName,
} from "./shape.ts";
import { type Api, type LiveFunction, type Node, readApi, type TypedFunction } from "./tree.ts";

const KEYWORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield").split(" "),
);

/** Built-in types that the file uses: within a class, a method of the same name hides one. */
const BUILTINS = ["bool", "dict", "float", "int", "list", "str"];

/** Names of the file itself, and of what it imports. */
const RESERVED = [
  ...["Any", "Api", "CallOptions", "Literal", "Mapping", "NotRequired", "Sequence", "TypeAlias"],
  ...["TypedDict", "Union", "Unpack", "Worker", "builtins", "cast"],
];

const HEAD = `"""
The functions of the live system.

Written by \`\`engine types --lang py\`\`; it is overwritten when functions change.
"""
# ruff: noqa
# fmt: off

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Union, cast

if TYPE_CHECKING:
    from typing_extensions import NotRequired, Unpack

    from engine_sdk import CallOptions, Worker

`;

/** The text of a client. */
export function writePython(
  functions: readonly LiveFunction[],
  namespace: string | undefined,
): string {
  const names = new Names([...RESERVED, ...BUILTINS]);
  const api = readApi(functions, names);
  const writer = new TypeWriter(api, hidesBuiltin(api.root) ? "builtins." : "");
  const space = namespace === undefined ? "" : `, "namespace": ${JSON.stringify(namespace)}`;
  const classes = new ClassWriter(names, writer, api);
  classes.add(api.root, "Api", "The functions of the live system.");
  return [
    HEAD,
    ...[...api.definitions.values()].map((each) => `${writer.definition(each)}\n`),
    `def _request(function_id: str, payload: Any, options: Any) -> Any:\n` +
    `    return {"function_id": function_id, "payload": payload${space}, **options}\n\n`,
    ...classes.texts,
  ].join("\n").trimEnd() + "\n";
}

/** Whether a method has the name of a built-in type. */
function hidesBuiltin({ below }: Node): boolean {
  return [...below].some(([part, node]) => BUILTINS.includes(part) || hidesBuiltin(node));
}

/** Writes a class for each node that has others below it, the innermost first. */
class ClassWriter {
  readonly texts: string[] = [];
  readonly #names: Names;
  readonly #types: TypeWriter;
  readonly #api: Api;

  constructor(names: Names, types: TypeWriter, api: Api) {
    this.#names = names;
    this.#types = types;
    this.#api = api;
  }

  add({ call, below }: Node, name: string, doc: string): void {
    const taken = new Names(["_worker"]);
    const fields: string[] = [];
    const methods = call === undefined ? [] : [this.#method("__call__", call, false)];
    for (const [part, node] of below) {
      const own = taken.add(identifier(part));
      const awaited = node.call && taken.add(`${own}_async`);
      if (node.below.size > 0) {
        const group = this.#names.add(`_${name === "Api" ? "" : name.slice(1)}${typeName(part)}`);
        this.add(node, group, node.call?.doc || `Functions below \`\`${part}\`\`.`);
        fields.push(`        self.${own} = ${group}(worker)\n`);
      } else if (node.call) {
        methods.push(this.#method(own, node.call, false));
      }
      if (node.call) methods.push(this.#method(awaited!, node.call, true));
    }
    const start =
      `    def __init__(self, worker: Worker) -> None:\n        self._worker = worker\n`;
    const body = [`${start}${fields.join("")}`, ...methods].join("\n");
    this.texts.push(`class ${name}:\n${docText(doc, "    ")}\n${body}\n`);
  }

  #method(name: string, found: TypedFunction, isAsync: boolean): string {
    const { id, doc, payload, result } = found;
    const mayLack = acceptsNull(payload, this.#api.definitions);
    const given = `payload: ${this.#types.expression(payload, true)}${mayLack ? " = None" : ""}`;
    const type = this.#types.expression(result, false);
    const start = `    ${isAsync ? "async " : ""}def ${name}(\n        self, ${given}, ` +
      `**options: Unpack[CallOptions]\n    ) -> ${type}:\n`;
    const call = isAsync ? "await self._worker.trigger_async" : "self._worker.trigger";
    const value = `${call}(_request(${JSON.stringify(id)}, payload, options))`;
    const returned = type === "Any" ? value : `cast(${JSON.stringify(type)}, ${value})`;
    const text = docText(doc === "" ? `Call \`\`${id}\`\`.` : doc, "        ");
    return `${start}${text}        return ${returned}\n`;
  }
}

const PLAIN = { boolean: "bool", integer: "int", number: "float", string: "str" } as const;

/** Writes types as text. */
class TypeWriter {
  readonly #api: Api;
  /** Before the name of a built-in type. */
  readonly #prefix: string;

  constructor(api: Api, prefix: string) {
    this.#api = api;
    this.#prefix = prefix;
  }

  definition({ name, shape, doc }: Definition): string {
    const isInput = this.#api.inputs.has(name);
    if (shape.kind !== "object" || shape.members.length === 0) {
      const comment = doc.split(/\r\n|[\n\r]/).filter(Boolean).map((line) => `# ${line}\n`);
      const type = JSON.stringify(this.expression(shape, isInput));
      return `${comment.join("")}${name}: TypeAlias = ${type}\n`;
    }
    return this.#typedDict(name, shape, doc, isInput);
  }

  #typedDict(name: string, { members, rest }: ObjectShape, doc: string, isInput: boolean): string {
    const more = rest ? `Further keys: ${this.expression(rest, isInput)}.` : "";
    const text = [doc, more].filter(Boolean).join("\n\n");
    if (members.every((member) => isAttribute(member.name))) {
      const lines = members.map((member) => {
        const type = this.#memberType(member, isInput);
        return `    ${member.name}: ${type}\n${docText(member.doc, "    ")}`;
      });
      return `class ${name}(TypedDict):\n${docText(text, "    ")}${lines.join("")}`;
    }
    const comment = text.split(/\r\n|[\n\r]/).filter(Boolean).map((line) => `# ${line}\n`);
    const lines = members.map((member) => {
      const type = JSON.stringify(this.#memberType(member, isInput));
      return `    ${JSON.stringify(member.name)}: ${type},\n`;
    });
    return `${comment.join("")}${name} = TypedDict(${JSON.stringify(name)}, {\n${
      lines.join("")
    }})\n`;
  }

  #memberType({ shape, isRequired }: Member, isInput: boolean): string {
    const type = this.expression(shape, isInput);
    return isRequired ? type : `NotRequired[${type}]`;
  }

  expression(shape: Shape, isInput: boolean): string {
    switch (shape.kind) {
      case "unknown":
      case "never":
        return "Any";
      case "null":
        return "None";
      case "boolean":
      case "integer":
      case "number":
      case "string":
        return `${this.#prefix}${PLAIN[shape.kind]}`;
      case "literal":
        return this.#literal(shape.value);
      case "named":
        return this.#named(shape.name, isInput);
      case "array":
        return this.#list(this.expression(shape.items, isInput), isInput);
      case "tuple":
        return this.#tuple(shape.items, shape.rest, isInput);
      case "union":
        return this.#union(shape.of, isInput);
      case "all":
        // Python has no type for it; the first part that is known is a wider one.
        return this.expression(shape.of[0]!, isInput);
      case "object":
        return this.#mapping(shape, isInput);
    }
  }

  /** A TypedDict has no further keys, so a payload that may have them may also be any dict. */
  #named(name: string, isInput: boolean): string {
    const shape = this.#api.definitions.get(name)?.shape;
    const isMixed = shape?.kind === "object" && shape.members.length > 0 && shape.rest;
    return isInput && isMixed ? `Union[${name}, Mapping[str, Any]]` : name;
  }

  /** Decoded JSON has lists only, and a list may be passed where a tuple is wanted. */
  #tuple(items: readonly Shape[], rest: Shape | undefined, isInput: boolean): string {
    const all = rest ? [...items, rest] : items;
    return this.#list(this.#union(all, isInput), isInput);
  }

  #list(item: string, isInput: boolean): string {
    return `${isInput ? "Sequence" : `${this.#prefix}list`}[${item}]`;
  }

  #union(shapes: readonly Shape[], isInput: boolean): string {
    const parts = [...new Set(shapes.map((each) => this.expression(each, isInput)))];
    if (parts.includes("Any")) return "Any";
    return parts.length === 1 ? parts[0]! : `Union[${parts.join(", ")}]`;
  }

  /** An object inside of another type: its members have no name of their own. */
  #mapping({ members, rest }: ObjectShape, isInput: boolean): string {
    const shapes = [...members.map(({ shape }) => shape), ...rest ? [rest] : []];
    const value = shapes.length === 0 ? "Any" : this.#union(shapes, isInput);
    const name = isInput ? "Mapping" : `${this.#prefix}dict`;
    return `${name}[${this.#prefix}str, ${value}]`;
  }

  #literal(value: null | boolean | number | string): string {
    if (typeof value === "string") return `Literal[${JSON.stringify(value)}]`;
    if (typeof value === "boolean") return `Literal[${value ? "True" : "False"}]`;
    if (value === null) return "None";
    return Number.isSafeInteger(value) ? `Literal[${value}]` : `${this.#prefix}float`;
  }
}

/** A part of an id as a name of Python; different parts may have the same. */
function identifier(part: string): string {
  const words = part.replaceAll(/[^\p{ID_Continue}]+/gu, "_").replace(/^_+/, "");
  const name = /^\p{ID_Start}/u.test(words) ? words : `f_${words}`;
  return KEYWORDS.has(name) || RESERVED.includes(name) ? `${name}_` : name;
}

/** Whether a class can have an attribute of this name, without hiding a type. */
function isAttribute(name: string): boolean {
  return /^[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(name) && !name.startsWith("__") &&
    ![...KEYWORDS, ...RESERVED, ...BUILTINS].includes(name);
}

/** A docstring. */
function docText(text: string, indent: string): string {
  if (text === "") return "";
  const safe = text.replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  const lines = safe.split(/\r\n|[\n\r\f\v\u2028\u2029]/).map((line) => line.trimEnd());
  if (lines.length === 1) return `${indent}"""${lines[0]}"""\n`;
  const body = lines.map((line) => line === "" ? "\n" : `${indent}${line}\n`);
  return `${indent}"""\n${body.join("")}${indent}"""\n`;
}
