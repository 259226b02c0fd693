/**
 * Functions as a tree of their ids: `a::b::c` is `c` in `b` in `a`. A node may be a function and
 * have nodes below it.
 *
 * @module
 */
import type { Json } from "../../mod.ts";
import { type Definition, type Names, readSchema, type Shape, typeName } from "./shape.ts";

/** A function of the live system. */
export interface LiveFunction {
  readonly function_id: string;
  readonly description?: string | undefined;
  readonly request_schema?: Json | undefined;
  readonly response_schema?: Json | undefined;
}

/** A function with its types. */
export interface TypedFunction {
  readonly id: string;
  readonly doc: string;
  readonly payload: Shape;
  readonly result: Shape;
}

/** A part of ids. */
export interface Node {
  /** The function with this id, if there is one. */
  readonly call: TypedFunction | undefined;
  /** Nodes below, by the next part of their ids. */
  readonly below: ReadonlyMap<string, Node>;
}

/** All functions, and the types with names that they use. */
export interface Api {
  readonly root: Node;
  readonly definitions: ReadonlyMap<string, Definition>;
  /** Names of the definitions in payloads; those of others are in results. */
  readonly inputs: ReadonlySet<string>;
}

interface OpenNode {
  call: TypedFunction | undefined;
  readonly below: Map<string, OpenNode>;
}

/** Reads functions in the order of their ids, whatever order they come in. */
export function readApi(functions: readonly LiveFunction[], names: Names): Api {
  const root: OpenNode = { call: undefined, below: new Map() };
  const definitions = new Map<string, Definition>();
  const inputs = new Set<string>();
  const sorted = functions.toSorted((a, b) => a.function_id < b.function_id ? -1 : 1);
  for (const { function_id, description, request_schema, response_schema } of sorted) {
    const name = typeName(function_id);
    const request = readSchema(request_schema, `${name}Payload`, names);
    const response = readSchema(response_schema, `${name}Result`, names);
    for (const each of request.definitions) inputs.add(each.name);
    for (const each of [...request.definitions, ...response.definitions]) {
      definitions.set(each.name, each);
    }
    nodeOf(root, function_id.split("::")).call = {
      id: function_id,
      doc: description?.trim() ?? "",
      payload: request.shape,
      result: response.shape,
    };
  }
  return { root, definitions, inputs };
}

function nodeOf(root: OpenNode, parts: readonly string[]): OpenNode {
  let node = root;
  for (const part of parts) {
    let next = node.below.get(part);
    if (!next) node.below.set(part, next = { call: undefined, below: new Map() });
    node = next;
  }
  return node;
}
