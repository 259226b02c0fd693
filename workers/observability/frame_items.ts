/**
 * The records of a frame of OTLP, one after the other, with what stands around them.
 *
 * Frames are read in the engine's only thread, so it is counted how much is looked at, and broken
 * records count like good ones: to find out that one is broken takes longest of all.
 *
 * @module
 */
import { TELEMETRY_FRAME_ITEMS_MAX } from "../limits.ts";

/** Names of the lists in a frame: of resources, of their scopes, of the records. */
export type FrameLists = readonly [resources: string, scopes: string, records: string];

/** What records belong to. */
export interface ItemOrigin {
  /** Attributes of the resource, as they came. */
  readonly resource: readonly unknown[];
  readonly scope_name: string | null;
  readonly scope_version: string | null;
}

/** What a frame held. */
export interface ReadItems<Item> {
  readonly items: Item[];
  /** Broken ones, and those beyond the bound. */
  readonly dropped: number;
}

/**
 * Reads the records of a frame; `origin` hands over what the ones after it belong to, and `read`
 * says what a record is, or `undefined` for a broken one.
 *
 * @throws {Error} When the whole is no frame.
 */
export function readItems<Item>(
  frame: unknown,
  lists: FrameLists,
  origin: (origin: ItemOrigin) => void,
  read: (record: unknown) => Item | undefined,
): ReadItems<Item> {
  const items: Item[] = [];
  let dropped = 0;
  for (const { records, ...from } of groupsOf(frame, lists)) {
    origin(from);
    for (const [at, record] of records.entries()) {
      if (items.length >= TELEMETRY_FRAME_ITEMS_MAX || dropped >= TELEMETRY_FRAME_ITEMS_MAX) {
        dropped += records.length - at;
        break;
      }
      const item = read(record);
      if (item) items.push(item);
      else dropped++;
    }
  }
  return { items, dropped };
}

/** Groups of records, so many at most. */
function* groupsOf(
  frame: unknown,
  [resources, scopes, records]: FrameLists,
): Generator<ItemOrigin & { readonly records: readonly unknown[] }> {
  const all = member(frame, resources);
  if (!Array.isArray(all)) throw new Error(`The frame has no list ${resources}`);
  let left = TELEMETRY_FRAME_ITEMS_MAX;
  for (const each of all) {
    if (left-- <= 0) return;
    if (each === null || typeof each !== "object") {
      throw new Error(`A member of ${resources} is no object`);
    }
    const resource = listIn(member(each, "resource"), "attributes");
    for (const group of listIn(each, scopes)) {
      if (left-- <= 0) return;
      const scope = member(group, "scope");
      yield {
        resource,
        scope_name: textIn(scope, "name"),
        scope_version: textIn(scope, "version"),
        records: listIn(group, records),
      };
    }
  }
}

function member(owner: unknown, name: string): unknown {
  return owner !== null && typeof owner === "object" && Object.hasOwn(owner, name)
    ? (owner as Record<string, unknown>)[name]
    : undefined;
}

function listIn(owner: unknown, name: string): readonly unknown[] {
  const list = member(owner, name);
  return Array.isArray(list) ? list : [];
}

function textIn(owner: unknown, name: string): string | null {
  const text = member(owner, name);
  return typeof text === "string" && text !== "" ? text : null;
}
