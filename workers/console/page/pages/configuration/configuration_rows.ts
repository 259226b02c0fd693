/**
 * Entries of `engine-configuration`, their changes, and what the references in a value stand for.
 *
 * @module
 */
import type { Json } from "../../../../../sdk/typescript/wire/protocol.ts";
import { isObject, isReference, type JsonPath, pathText } from "../../kit/mod.ts";

/** References of one value that are listed. */
export const REFERENCES_MAX = 200;
/** What the history has in place of a large value. */
const NOT_KEPT = "[too large to be kept]";

/** An entry of `configuration::list`; secrets of its value are masked. */
export interface ConfigurationRow {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  /** `true`: registered without one. */
  readonly schema: Json;
  readonly value: Json;
  readonly has_value: boolean;
  readonly has_secrets: boolean;
  readonly metadata: Json;
  readonly version: number;
  readonly updated_at_ms: number;
  /** Why its readers get an error now. */
  readonly problem: string | null;
}

/** A change of `configuration::history`. */
export interface ConfigurationChange {
  readonly version: number;
  readonly at_ms: number;
  /** The worker that made it. */
  readonly by: string | null;
  readonly old_value: Json;
  readonly new_value: Json;
}

/** A reference in a value. */
export interface FoundReference {
  /** Such as `servers[0].port`. */
  readonly place: string;
  readonly text: string;
  /** What readers get; `undefined`: not known. */
  readonly standsFor: Json | undefined;
}

/** Whether every word of a search occurs in id, name or description. */
export function matchesSearch(row: ConfigurationRow, search: string): boolean {
  const text = `${row.id} ${row.name} ${row.description ?? ""}`.toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** Whether the history has the value of a change, so that it can be set again. */
export function isRestorable({ new_value }: ConfigurationChange): boolean {
  return new_value !== NOT_KEPT;
}

/** The first references in a value, with what they stand for in the expanded one. */
export function referencesIn(value: Json, expanded: Json | undefined): FoundReference[] {
  const found: FoundReference[] = [];
  const look = (part: Json, whole: Json | undefined, path: JsonPath): void => {
    if (found.length >= REFERENCES_MAX) return;
    if (isReference(part)) {
      found.push({ place: pathText(path, "value"), text: part, standsFor: whole });
    } else if (Array.isArray(part)) {
      part.forEach((item, i) =>
        look(item, Array.isArray(whole) ? whole[i] : undefined, [
          ...path,
          i,
        ])
      );
    } else if (isObject(part)) {
      for (const [name, member] of Object.entries(part)) {
        look(member, isObject(whole) ? whole[name] : undefined, [...path, name]);
      }
    }
  };
  look(value, expanded, []);
  return found;
}

/** What to say about the reference at a place; nothing where there is none. */
export function noteOn(
  references: readonly FoundReference[],
): (path: JsonPath) => string | undefined {
  const notes = new Map(
    references.filter(({ standsFor }) => standsFor !== undefined).map((
      { place, text, standsFor },
    ) => [place, `${text} stands for ${JSON.stringify(standsFor)}`]),
  );
  return (path) => notes.get(pathText(path, "value"));
}
