import assert from "node:assert/strict";
import { fitRequest, ITEM_ID_BYTES_MAX, NAME_BYTES_MAX, REQUESTS } from "./payloads.ts";

const group = { stream_name: "s", group_id: "g" };

Deno.test("names are as long as they may be, in bytes, and no longer", () => {
  const get = (stream_name: string, item_id: string) =>
    fitRequest("get", REQUESTS.get, { ...group, stream_name, item_id });

  get("x".repeat(NAME_BYTES_MAX), "x".repeat(ITEM_ID_BYTES_MAX));
  get("ü".repeat(NAME_BYTES_MAX / 2), "i");
  for (const name of ["x".repeat(NAME_BYTES_MAX + 1), "ü".repeat(NAME_BYTES_MAX / 2 + 1)]) {
    assert.throws(() => get(name, "i"), { code: "JSON_ERROR" });
  }
  assert.throws(() => get("s", "x".repeat(ITEM_ID_BYTES_MAX + 1)), { code: "JSON_ERROR" });
});

Deno.test("an error names the function and every path that does not fit", () => {
  assert.throws(() => fitRequest("set", REQUESTS.set, { stream_name: 1 }), {
    code: "JSON_ERROR",
    message: "Failed to deserialize input for stream::set: " +
      "stream_name: expected string, received 1; " +
      "group_id: expected string, received nothing; item_id: expected string, received nothing",
  });
});

Deno.test("null is data, and data that is left out is not", () => {
  const place = { ...group, item_id: "i" };

  assert.equal(fitRequest("set", REQUESTS.set, { ...place, data: null }).data, null);
  assert.throws(() => fitRequest("set", REQUESTS.set, place), { code: "JSON_ERROR" });
  assert.equal(fitRequest("send", REQUESTS.send, { ...group, type: "t" }).data, null);
});
