import assert from "node:assert/strict";
import type * as shape from "../kit/mod.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { FORMATS } from "./formats.ts";
import {
  EntriesRequest,
  PlaceRequest,
  ScopeRequest,
  SetRequest,
  UpdateRequest,
} from "./payloads.ts";

const CHECKED: Readonly<Record<string, shape.Any>> = {
  set: SetRequest,
  get: PlaceRequest,
  entry: PlaceRequest,
  delete: PlaceRequest,
  update: UpdateRequest,
  list: ScopeRequest,
  list_entries: EntriesRequest,
};
const EXAMPLES: Readonly<Record<string, Json>> = {
  string: "a",
  integer: 1,
  array: [{ type: "increment", path: "items", by: 2 }],
};

for (const [name, shape] of Object.entries(CHECKED)) {
  Deno.test(`what state::${name} says it takes is what it takes`, () => {
    const { required, properties } = FORMATS[name as keyof typeof FORMATS].request_format;
    const payload: JsonObject = {};
    for (const [key, property] of Object.entries(properties as JsonObject)) {
      payload[key] = EXAMPLES[(property as { type?: string }).type ?? "string"]!;
    }

    assert.ok(shape.safeParse(payload).success);
    for (const key of Object.keys(payload)) {
      const { [key]: _, ...rest } = payload;
      const isRequired = (required as string[]).includes(key);
      assert.equal(shape.safeParse(rest).success, !isRequired, key);
    }
  });
}
