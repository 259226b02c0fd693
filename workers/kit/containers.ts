/**
 * Shapes of lists and objects, and of values that have one of several shapes.
 *
 * @module
 */
import { Found, type Issue, say } from "./issue.ts";
import { type Options, wordsOf } from "./scalars.ts";
import { anyOf, type Kind } from "./kind.ts";
import { type Any, type Output, Shape } from "./shape.ts";

/** Shapes of members by key. */
export type Members = Readonly<Record<string, Any>>;

/** The same members as one type. */
type Flat<Of> = { [Key in keyof Of]: Of[Key] };
/** The keys whose members may be missing. */
type Missing<Of> = {
  [Key in keyof Of]: Of[Key] extends { readonly mayMiss: true } ? Key : never;
}[keyof Of];

/** The type of an object with such members. */
export type ObjectOf<Of> = Flat<
  & { [Key in Exclude<keyof Of, Missing<Of>>]: Output<Of[Key]> }
  & { [Key in Missing<Of>]?: Output<Of[Key]> }
>;

/** The types of the items of a list, one by one. */
type Items<Of extends readonly Any[]> = { -readonly [At in keyof Of]: Output<Of[At]> };

/** What becomes of keys that no member has. */
type Others = "dropped" | "refused" | "kept";

/** An object; keys that nobody knows are left out of what it gives. */
export function object<Of extends Members>(members: Of): Shape<ObjectOf<Of>, false, Of> {
  return objectOf(members, "dropped");
}

/** An object in which keys that nobody knows are wrong. */
export function strictObject<Of extends Members>(members: Of): Shape<ObjectOf<Of>, false, Of> {
  return objectOf(members, "refused");
}

/** An object that keeps keys that nobody knows. */
export function looseObject<Of extends Members>(
  members: Of,
): Shape<ObjectOf<Of> & { readonly [key: string]: unknown }, false, Of> {
  return objectOf(members, "kept");
}

/** The members of two shapes; the second wins. */
export function extend<First extends Members, Second extends Members>(
  first: Shape<unknown, false, First>,
  more: Second,
): Shape<ObjectOf<Omit<First, keyof Second> & Second>, false, Omit<First, keyof Second> & Second> {
  const members = { ...first.members, ...more };
  return objectOf(members, "dropped");
}

/** An object of texts and values, whatever its keys are. */
export function record<Out>(member: Shape<Out>): Shape<Record<string, Out>> {
  return shapeOf({
    read(value, found) {
      if (!isObject(value)) return found.addType("record", value);
      const read: Record<string, unknown> = {};
      for (const key of Object.keys(value)) {
        if (key === "__proto__") continue; // It would be the object's prototype.
        read[key] = readAt(member, value[key], key, found);
      }
      return read;
    },
    schema: (side) => ({
      type: "object",
      propertyNames: { type: "string" },
      additionalProperties: member.schema(side),
    }),
  });
}

/** A list of items of one shape. */
export function array<Out>(item: Shape<Out, boolean>, options?: Options): Shape<Out[]> {
  const words = wordsOf(options);
  return shapeOf({
    measured: "array",
    read(value, found) {
      if (!Array.isArray(value)) return notOf("array", value, found, words);
      return value.map((each, i) => readAt(item, each, i, found));
    },
    schema: (side) => ({ type: "array", items: item.schema(side) }),
  });
}

/** A list of so many items, each of its own shape. */
export function tuple<const Of extends readonly Any[]>(items: Of): Shape<Items<Of>> {
  const count = items.length;
  return shapeOf({
    read(value, found) {
      if (!Array.isArray(value)) return notOf("tuple", value, found);
      if (value.length < count) return found.addGrave(lengthIssue("too_small", count));
      if (value.length > count) found.addGrave(lengthIssue("too_big", count));
      return items.map((item, i) => readAt(item, value[i], i, found));
    },
    schema: (side) => ({
      type: "array",
      prefixItems: items.map((item) => item.schema(side)),
      items: false,
      minItems: count,
      maxItems: count,
    }),
  });
}

/** A value of any of these shapes; the first that fits says what it becomes. */
export function union<const Of extends readonly Any[]>(
  choices: Of,
  options?: Options,
): Shape<Output<Of[number]>> {
  const words = wordsOf(options);
  return shapeOf({
    read(value, found) {
      const readings: Found[] = [];
      for (const choice of choices) {
        const reading = new Found(found.path);
        const read = choice.read(value, reading);
        if (reading.issues.length === 0) return read;
        readings.push(reading);
      }
      // Where the sort of value is right in one of them, that one says what is wrong.
      const near = readings.filter(({ grave, isStopped }) => grave === 0 && !isStopped);
      if (near.length === 1) found.take(near[0]!);
      else found.addGrave({ code: "invalid_union", message: say(words, value) ?? "Invalid input" });
      return value;
    },
    schema: (side) => anyOf(choices.map((choice) => choice.schema(side))),
  });
}

/** An object of one of these shapes; the member `key` says of which. */
export function taggedUnion<const Of extends readonly Shape<unknown, false, Members>[]>(
  key: string,
  choices: Of,
  options?: Options,
): Shape<Output<Of[number]>> {
  const words = wordsOf(options);
  const byTag = new Map(choices.flatMap((choice) => {
    const tags = choice.members[key]?.kind.values ?? [];
    return tags.map((tag) => [tag, choice]);
  }));
  const tags = [...byTag.keys()].map((tag) => `'${tag}'`).join(" | ");
  return shapeOf({
    read(value, found) {
      if (!isObject(value)) return notOf("object", value, found, words);
      const choice = byTag.get(value[key]);
      if (choice) return choice.read(value, found);
      const message = say(words, value) ?? `Invalid discriminator value. Expected ${tags}`;
      found.addGrave({ code: "invalid_union", message }, [key]);
      return value;
    },
    schema: (side) => ({ oneOf: choices.map((choice) => choice.schema(side)) }),
  });
}

/** A shape of what is made of a value first. */
export function preprocess<Out, MayMiss extends boolean>(
  prepare: (value: unknown) => unknown,
  next: Shape<Out, MayMiss>,
): Shape<Out, MayMiss> {
  return new Shape({
    ...next.kind,
    absence: "allowed",
    read: (value, found) => next.read(prepare(value), found),
    schema: (side) => next.schema(side),
  }, undefined);
}

function objectOf<Out, Of extends Members>(members: Of, others: Others): Shape<Out, false, Of> {
  const entries = Object.entries(members);
  const keys = Object.keys(members);
  const shapes = Object.values(members);
  const known = new Set(keys);
  const kind: Kind<unknown> = {
    absence: "refused",
    mayBeNothing: false,
    read(value, found) {
      if (!isObject(value)) return notOf("object", value, found);
      const read: Record<string, unknown> = {};
      for (let i = 0; i < keys.length; i++) readMember(keys[i]!, shapes[i]!, value, read, found);
      if (others !== "dropped") {
        readOthers(value, known, others === "kept" ? read : undefined, found);
      }
      return read;
    },
    schema(side) {
      const isRequired = ([, { kind }]: [string, Any]): boolean =>
        side === "input" ? kind.absence === "refused" : !kind.mayBeNothing;
      const required = entries.filter(isRequired).map(([key]) => key);
      const isClosed = others === "refused" || others === "dropped" && side === "output";
      return {
        type: "object",
        properties: Object.fromEntries(entries.map(([key, member]) => [key, member.schema(side)])),
        ...required.length > 0 && { required },
        ...isClosed && { additionalProperties: false },
        ...others === "kept" && { additionalProperties: {} },
      };
    },
  };
  return new Shape(kind, members);
}

function readMember(
  key: string,
  member: Any,
  from: Record<string, unknown>,
  to: Record<string, unknown>,
  found: Found,
): void {
  const { absence, mayBeNothing } = member.kind;
  const isThere = key in from;
  if (!isThere && absence === "allowed" && mayBeNothing) return;
  const before = found.issues.length;
  const read = readAt(member, from[key], key, found);
  if (!isThere && absence === "refused") {
    if (found.issues.length > before) return;
    const expected = "nonoptional";
    const message = `Invalid input: expected ${expected}, received undefined`;
    found.addGrave({ code: "invalid_type", expected, message }, [key]);
  } else if (read !== undefined || isThere) to[key] = read;
}

/** Looks at keys no member has: takes them over, or says that they are wrong. */
function readOthers(
  from: Record<string, unknown>,
  known: ReadonlySet<string>,
  to: Record<string, unknown> | undefined,
  found: Found,
): void {
  const keys = Object.keys(from).filter((key) => !known.has(key));
  if (to) {
    // `__proto__` would be the object's prototype.
    for (const key of keys) if (key !== "__proto__") to[key] = from[key];
  } else if (keys.length > 0) {
    const message = `Unrecognized key${keys.length > 1 ? "s" : ""}: ` +
      keys.map((key) => JSON.stringify(key)).join(", ");
    found.add({ code: "unrecognized_keys", keys, message });
  }
}

/** Reads a part; that it stopped concerns nobody around it. */
function readAt(part: Any, value: unknown, at: string | number, found: Found): unknown {
  found.path.push(at);
  const read = part.read(value, found);
  found.path.pop();
  found.isStopped = false;
  return read;
}

function notOf(
  expected: string,
  value: unknown,
  found: Found,
  words?: ReturnType<typeof wordsOf>,
): unknown {
  found.addType(expected, value, words);
  return value;
}

function lengthIssue(code: "too_small" | "too_big", count: number): Omit<Issue, "path"> {
  const [word, sign] = code === "too_small" ? ["small", ">="] : ["big", "<="];
  const message = `Too ${word}: expected array to have ${sign}${count} items`;
  return { code, message, [code === "too_small" ? "minimum" : "maximum"]: count };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function shapeOf<Out>(
  kind: Pick<Kind<unknown>, "read" | "schema"> & Partial<Kind<unknown>>,
): Shape<Out> {
  return new Shape({ absence: "refused", mayBeNothing: false, ...kind }, undefined);
}
