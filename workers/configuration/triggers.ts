/**
 * Triggers of type `configuration`: call a function when an entry is registered or changes, in the
 * way of `engine-state`, whose queue and bounds they have.
 *
 * @module
 */
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import { fitTrigger } from "../kit/triggers.ts";
import type { ChangeKind } from "../state/triggers.ts";
import { CONFIGURATION_ID } from "./records.ts";

/** What can happen to an entry; the last is reserved. */
const EVENT_TYPES = [
  "configuration:registered",
  "configuration:updated",
  "configuration:deleted",
] as const;

/** An event as functions get it; secrets are masked. */
export interface ConfigurationEvent {
  readonly type: "configuration";
  readonly event_type: (typeof EVENT_TYPES)[number];
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly schema: Json;
  readonly old_value: Json;
  readonly new_value: Json;
  readonly metadata?: Json;
}

/** The config of a trigger; absent members match everything. */
const Config = v.object({
  configuration_id: v.nullish(v.pipe(
    v.string(),
    v.check(
      (id) => CONFIGURATION_ID.test(id),
      "expected an id: 1 to 64 lower case letters, digits, _ and -",
    ),
  )),
  event_types: v.nullish(v.list(v.picklist(EVENT_TYPES), EVENT_TYPES.length)),
  condition_function_id: v.nullish(v.text(1)),
});

/** Triggers of type `configuration`. */
export const CONFIGURATION_TRIGGERS: ChangeKind<ConfigurationEvent> = {
  type: "configuration",
  read(trigger) {
    const { configuration_id, event_types, condition_function_id } = fitTrigger(Config, trigger);
    return {
      filter: [configuration_id, typeOf(event_types)],
      condition: condition_function_id ?? undefined,
    };
  },
  filtersOf: ({ id, event_type }) => [
    [null, null],
    [id, null],
    [null, event_type],
    [id, event_type],
  ],
  subjectOf: ({ id }) => [id],
};

/** The one event that is wanted; `null`: both that there are. */
function typeOf(wanted: readonly string[] | null | undefined): string | null {
  if (!wanted || wanted.length === 0) return null;
  const [registered, updated, deleted] = EVENT_TYPES.map((type) => wanted.includes(type));
  if (registered && updated) return null;
  return registered ? EVENT_TYPES[0] : updated ? EVENT_TYPES[1] : deleted ? EVENT_TYPES[2] : null;
}

/** What a trigger of the type has in its config. */
export const CONFIGURATION_TRIGGER_FORMAT: JsonObject = {
  type: "object",
  properties: {
    configuration_id: { type: ["string", "null"], description: "Default: all" },
    event_types: { type: ["array", "null"], items: { enum: [...EVENT_TYPES] } },
    condition_function_id: { type: ["string", "null"] },
  },
};

/** What its function gets. */
export const CONFIGURATION_CALL_FORMAT: JsonObject = {
  type: "object",
  properties: {
    type: { const: "configuration" },
    event_type: { enum: [...EVENT_TYPES] },
    id: { type: "string" },
    name: { type: "string" },
    description: { type: ["string", "null"] },
    schema: {},
    old_value: {
      description: "The value with its references as they were set; secrets are [redacted]",
    },
    new_value: {
      description: "The value with its references as they were set; secrets are [redacted]",
    },
    metadata: {},
  },
};
