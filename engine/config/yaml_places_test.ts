import assert from "node:assert/strict";
import { pathOf, Places } from "./yaml_places.ts";

Deno.test("pathOf() writes members, items and keys with signs", () => {
  assert.equal(pathOf("", "engine"), "engine");
  assert.equal(pathOf("engine", "port"), "engine.port");
  assert.equal(pathOf("workers", 2), "workers[2]");
  assert.equal(pathOf("env", "a b"), 'env["a b"]');
});

Deno.test("Places keeps the first line of a path and finds the nearest one around", () => {
  const places = new Places();

  places.note("workers", 3);
  places.note("workers", 9);

  assert.equal(places.at("workers"), 3);
  assert.equal(places.at("workers[1]"), undefined);
  assert.equal(places.nearest('workers[1].env["a b"]'), 3);
  assert.equal(places.nearest("engine.port"), undefined);
});
