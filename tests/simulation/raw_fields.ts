/**
 * The fields of a frame from its whole text, as {@linkcode ParsedFrame} has them.
 *
 * @module
 */
import { fieldText } from "../../engine/core/wire/json_scan.ts";
import type { RawFields } from "../../engine/core/wire/parsed_frame.ts";

/** The fields of a frame that was parsed as a whole. */
export function rawFields(text: string): RawFields {
  return { field: (name) => fieldText(text, name) };
}
