import assert from "node:assert/strict";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { fit } from "../kit/fit.ts";
import * as v from "../kit/schema.ts";
import {
  EntriesRequest,
  FORMATS,
  PlaceRequest,
  readPlace,
  readSet,
  ScopeRequest,
  SetRequest,
  STATE_NAME_BYTES_MAX,
  UpdateRequest,
} from "./payloads.ts";

Deno.test("readSet() accepts null for optional members, and null as a value", () => {
  const payload = { scope: "s", key: "k", value: null, expected_version: null, ttl_ms: null };

  assert.deepEqual(readSet(payload), payload);
});

Deno.test("Short payloads pass without a look at their schema, and others fail as they would", () => {
  const set = { scope: "s", key: "k", value: [1] };

  assert.deepEqual(readPlace("f", { scope: "s", key: "k", other: 1 }), { scope: "s", key: "k" });
  assert.deepEqual(readSet({ ...set, other: 1 }), {
    ...set,
    ttl_ms: undefined,
    expected_version: undefined,
  });
  const wrong: Json[] = [
    null,
    "s",
    [],
    { scope: "s" },
    { scope: "", key: "k" },
    { scope: "s", key: "\ud800" },
    { scope: 1, key: "k" },
  ];
  for (const payload of wrong) {
    const error = { code: "deserialization_error" };
    assert.throws(() => readPlace("f", payload), error, JSON.stringify(payload));
    const withValue = payload?.constructor === Object ? { ...payload as JsonObject, value: 1 } : 1;
    assert.throws(() => readSet(withValue), error);
  }
  assert.throws(() => readSet({ scope: "s", key: "k" }), /expected a value/);
  assert.throws(() => readSet({ ...set, expected_version: -1 }), /expected_version/);
  assert.equal(readSet({ scope: "s", key: "k", data: 2 }).value, 2);
});

Deno.test("EntriesRequest has defaults, and bounds the limit", () => {
  assert.deepEqual(fit("f", EntriesRequest, { scope: "s" }), {
    scope: "s",
    prefix: "",
    limit: 100,
  });
  assert.equal(fit("f", EntriesRequest, { scope: "s", limit: 1e6, prefix: null }).limit, 1_000);
});

for (const [name, sign, bytes] of [["x", "x", 1], ["☃", "☃", 3], ["a zero", "\0", 2]] as const) {
  Deno.test(`A name of ${name} may be as long as the store accepts`, () => {
    const longest = sign.repeat(STATE_NAME_BYTES_MAX / bytes);

    assert.equal(readPlace("f", { scope: longest, key: longest }).key, longest);
    assert.throws(() => readPlace("f", { scope: "s", key: `${longest}${sign}` }), {
      message: "Failed to deserialize input for f: key: expected at most 900 bytes",
    });
  });
}

const CHECKED: Readonly<Record<string, v.Schema>> = {
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

for (const [name, schema] of Object.entries(CHECKED)) {
  Deno.test(`the published schema of state::${name} matches its check`, () => {
    const { required, properties } = FORMATS[name as keyof typeof FORMATS].request_format;
    const payload: JsonObject = {};
    for (const [key, property] of Object.entries(properties as JsonObject)) {
      payload[key] = EXAMPLES[(property as { type?: string }).type ?? "string"]!;
    }

    assert.ok(v.safeParse(schema, payload).success);
    for (const key of Object.keys(payload)) {
      const { [key]: _, ...rest } = payload;
      const isRequired = (required as string[]).includes(key);
      assert.equal(v.safeParse(schema, rest).success, !isRequired, key);
    }
  });
}
