/**
 * The operations of `state::update`: a value and operations in, a value and errors out.
 *
 * Pure. An operation that cannot be applied is skipped and reported; the others apply. Objects and
 * lists are copied on their first change, so the old value is not modified. All names are own
 * members, `__proto__` included; nothing is looked up on a prototype.
 *
 * @module
 */
import { JSON_DEPTH_MAX } from "../../sdk/typescript/wire/json_depth.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";

/** Operations of one update. */
export const UPDATE_OPS_MAX = 1_000;
/** Names in the path of an operation. */
const UPDATE_PATH_DEPTH_MAX = 32;
/** UTF-8 length of such a name. */
const UPDATE_SEGMENT_BYTES_MAX = 256;
/** Members of the value of one `merge`. */
const MERGE_KEYS_MAX = 1_024;
/** Levels of the value of one `merge`. */
const MERGE_DEPTH_MAX = 16;
/** Levels of the new value: with its `scope` and `key` it is a payload of `state::set` again. */
const VALUE_DEPTH_MAX = JSON_DEPTH_MAX - 1;
/** Names that a list in `path` may have; a longer one is a mistake of its caller's program. */
const PATH_ITEMS_MAX = 1_024;

const AnyJson = v.custom<Json>(
  (value) => value !== undefined,
  "expected a value, received nothing",
);
const Name = v.string();
const Path = v.nullish(
  v.union(
    [v.string(), v.list(v.string(), PATH_ITEMS_MAX)],
    "expected string or array of strings",
  ),
);
const By = v.int();

/** An operation on the wire. */
export const UpdateOp = v.variant("type", [
  v.object({ type: v.literal("set"), path: Name, value: AnyJson }),
  v.object({ type: v.literal("merge"), path: Path, value: AnyJson }),
  v.object({ type: v.literal("increment"), path: Name, by: By }),
  v.object({ type: v.literal("decrement"), path: Name, by: By }),
  v.object({ type: v.literal("append"), path: Path, value: AnyJson }),
  v.object({ type: v.literal("remove"), path: Name }),
], "expected set, merge, increment, decrement, append or remove");

/** A parsed operation. */
export type UpdateOp = v.InferOutput<typeof UpdateOp>;

/** An operation that was skipped. */
export interface OpError {
  /** Position of the operation, from 0. */
  readonly op_index: number;
  /** Such as `increment.not_number`. */
  readonly code: string;
  readonly message: string;
}

/** Result of {@linkcode applyOps}. */
export interface Updated {
  readonly value: Json;
  /** In the order of the operations. */
  readonly errors: OpError[];
}

/** Applies operations in order. A missing value counts as `{}`. */
export function applyOps(old: Json | undefined, ops: readonly UpdateOp[]): Updated {
  const draft = new Draft(old ?? (old === undefined ? {} : null));
  const errors: OpError[] = [];
  ops.forEach((op, op_index) => {
    const problem = applyOp(draft, op);
    if (problem) errors.push({ op_index, code: `${op.type}.${problem[0]}`, message: problem[1] });
  });
  return { value: draft.root, errors };
}

/** Suffix of an error code, and a message; `undefined`: applied. */
type Problem = readonly [code: string, message: string] | undefined;

function applyOp(draft: Draft, op: UpdateOp): Problem {
  switch (op.type) {
    case "set":
      return setMember(draft, op.path, op.value);
    case "merge":
      return merge(draft, namesOf(op.path), op.value);
    case "increment":
      return add(draft, op.path, op.by);
    case "decrement":
      return add(draft, op.path, -op.by);
    case "append":
      return append(draft, namesOf(op.path), op.value);
    case "remove":
      return remove(draft, op.path);
  }
}

function setMember(draft: Draft, path: string, value: Json): Problem {
  const names = path === "" ? [] : [path];
  if (path !== "" && !isObject(draft.root)) return notAnObject(draft.root, []);
  if (isTooDeepAt(names, value)) return tooDeep();
  draft.set(names, value);
  return undefined;
}

function add(draft: Draft, path: string, by: number): Problem {
  if (path !== "" && !isObject(draft.root)) return notAnObject(draft.root, []);
  const names = path === "" ? [] : [path];
  const old = draft.get(names);
  if (old !== undefined && typeof old !== "number") {
    return ["not_number", `The value at ${show(names)} is ${nameOf(old)}, not a number`];
  }
  draft.set(names, (old ?? 0) + by);
  return undefined;
}

function remove(draft: Draft, path: string): Problem {
  if (path === "") draft.root = null;
  else draft.remove(path);
  return undefined;
}

function merge(draft: Draft, names: readonly string[], value: Json): Problem {
  const problem = checkPath(names) ?? checkMerged(value);
  if (problem) return problem;
  draft.merge(names, value as JsonObject);
  return undefined;
}

function append(draft: Draft, names: readonly string[], value: Json): Problem {
  const problem = checkPath(names) ?? checkWay(draft, names);
  if (problem) return problem;
  if (isTooDeepAt([...names, "0"], value)) return tooDeep();
  const old = draft.get(names);
  if (Array.isArray(old)) draft.push(names, value);
  else if (old === undefined || old === null) {
    const isText = typeof value === "string" && names.length < 2;
    draft.set(names, isText ? value : [value]);
  } else if (typeof old === "string" && typeof value === "string") draft.set(names, old + value);
  else {
    const what = `${nameOf(value)} to ${nameOf(old)} at ${show(names)}`;
    return ["type_mismatch", `Cannot append ${what}`];
  }
  return undefined;
}

/** Requires every value along a path to be an object or absent. */
function checkWay(draft: Draft, names: readonly string[]): Problem {
  for (let i = 0; i < names.length; i++) {
    const way = names.slice(0, i);
    const value = draft.get(way);
    if (value === undefined || (value === null && i > 0)) return undefined;
    if (!isObject(value)) return notAnObject(value, way);
  }
  return undefined;
}

function checkPath(names: readonly string[]): Problem {
  if (names.length > UPDATE_PATH_DEPTH_MAX) {
    return ["path.too_deep", `A path has at most ${UPDATE_PATH_DEPTH_MAX} names`];
  }
  for (const name of names) {
    if (name === "") return ["path.empty_segment", "A name in a path must not be empty"];
    const isLong = name.length > UPDATE_SEGMENT_BYTES_MAX;
    if (isLong || new TextEncoder().encode(name).length > UPDATE_SEGMENT_BYTES_MAX) {
      const message = `A name in a path has at most ${UPDATE_SEGMENT_BYTES_MAX} bytes`;
      return ["path.segment_too_long", message];
    }
    if (isPolluting(name)) return ["path.proto_polluted", `A path must not contain ${name}`];
  }
  return undefined;
}

function checkMerged(value: Json): Problem {
  if (!isObject(value)) {
    return ["value.not_an_object", `Only an object can be merged, not ${nameOf(value)}`];
  }
  if (Object.keys(value).length > MERGE_KEYS_MAX) {
    return ["value.too_many_keys", `At most ${MERGE_KEYS_MAX} keys can be merged at once`];
  }
  return checkLevel(value, 1);
}

function checkLevel(value: Json, level: number): Problem {
  if (value === null || typeof value !== "object") return undefined;
  if (level > MERGE_DEPTH_MAX) {
    return ["value.too_deep", `A merged value has at most ${MERGE_DEPTH_MAX} levels`];
  }
  for (const [name, member] of Object.entries(value)) {
    if (!Array.isArray(value) && isPolluting(name)) {
      return ["value.proto_polluted", `A merged value must not have a member ${name}`];
    }
    const problem = checkLevel(member, level + 1);
    if (problem) return problem;
  }
  return undefined;
}

/** Whether a value would lie too deep below the root; stops at the first level that does. */
function isTooDeepAt(names: readonly string[], value: Json): boolean {
  return isDeeperThan(value, VALUE_DEPTH_MAX - names.length);
}

function isDeeperThan(value: Json, levels: number): boolean {
  if (value === null || typeof value !== "object") return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeperThan(item, levels - 1));
  for (const name in value) if (isDeeperThan(value[name]!, levels - 1)) return true;
  return false;
}

function tooDeep(): Problem {
  return ["value.too_deep", `A stored value has at most ${VALUE_DEPTH_MAX} levels`];
}

function isPolluting(name: string): boolean {
  return name === "__proto__" || name === "constructor" || name === "prototype";
}

function namesOf(path: string | readonly string[] | null | undefined): readonly string[] {
  if (path === undefined || path === null || path === "") return [];
  return typeof path === "string" ? [path] : path;
}

function notAnObject(value: Json, way: readonly string[]): Problem {
  return ["target_not_object", `The value at ${show(way)} is ${nameOf(value)}, not an object`];
}

function show(names: readonly string[]): string {
  return names.length === 0 ? "the root" : names.join(" > ");
}

function nameOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value under modification, with copy-on-write for everything that it did not create. */
class Draft {
  root: Json;
  /** Objects and lists created here, which may be modified. */
  readonly #own = new Set<Json>();

  constructor(root: Json) {
    this.root = root;
  }

  /** The value at a path; `undefined` if absent. */
  get(names: readonly string[]): Json | undefined {
    let value: Json | undefined = this.root;
    for (const name of names) {
      if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
      value = value[name];
    }
    return value;
  }

  /** Sets the value at a path; replaces values along it that are not objects. */
  set(names: readonly string[], value: Json): void {
    const name = names.at(-1);
    if (name === undefined) this.root = value;
    else put(this.#open(names.slice(0, -1)), name, value);
  }

  /** Adds the members of an object at a path, which costs their number, not that of the target. */
  merge(names: readonly string[], members: JsonObject): void {
    const target = this.#open(names);
    for (const [name, value] of Object.entries(members)) put(target, name, value);
  }

  /** Appends to the list at a path. */
  push(names: readonly string[], value: Json): void {
    let list = this.get(names) as Json[];
    if (!this.#own.has(list)) {
      list = [...list];
      this.#own.add(list);
      this.set(names, list);
    }
    list.push(value);
  }

  /** Removes a member of the root, if present. */
  remove(name: string): void {
    if (isObject(this.root) && Object.hasOwn(this.root, name)) delete this.#open([])[name];
  }

  /** The modifiable object at a path. */
  #open(names: readonly string[]): JsonObject {
    let object = this.#ownCopy(this.root);
    this.root = object;
    for (const name of names) {
      const inner = this.#ownCopy(Object.hasOwn(object, name) ? object[name] : undefined);
      put(object, name, inner);
      object = inner;
    }
    return object;
  }

  #ownCopy(value: Json | undefined): JsonObject {
    if (isObject(value) && this.#own.has(value)) return value;
    const copy = isObject(value) ? { ...value } : {};
    this.#own.add(copy);
    return copy;
  }
}

/** Assigns a member, with `__proto__` as an ordinary name. */
function put(object: JsonObject, name: string, value: Json): void {
  if (name !== "__proto__") object[name] = value;
  else {
    Object.defineProperty(object, name, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
}
