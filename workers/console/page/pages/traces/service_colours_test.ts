import assert from "node:assert/strict";
import { span } from "../../../../../tests/fakes/page_spans.ts";
import { serviceColours } from "./service_colours.ts";
import { spanTree } from "./span_tree.ts";

Deno.test("serviceColours() gives each service one colour, and begins anew after the last", () => {
  const services = ["a", "b", "a", "c", "d", "e", "f", "g"];
  const tree = spanTree(services.map((service, i) => span({ id: `${i}`, service, startMs: i })));

  const colours = [...serviceColours(tree)];

  assert.deepEqual(colours, [["a", 1], ["b", 2], ["c", 3], ["d", 4], ["e", 5], ["f", 6], ["g", 1]]);
});
