import assert from "node:assert/strict";
import { PATTERN_PARTS_MAX, TOPIC_CHARS_MAX } from "../../engine/ports/topics.ts";
import { patternProblem, topicProblem, TopicTree } from "./topic_tree.ts";

/** The patterns among `patterns` that match each topic. */
function matches(patterns: readonly string[], topic: string): string[] {
  const tree = new TopicTree<string>();
  for (const pattern of patterns) tree.add(pattern, pattern);
  return tree.find(topic).sort();
}

const PATTERNS = ["orders", "orders.*", "orders.>", "*.created", ">", "orders.*.eu", "orders.new"];

for (
  const [topic, expected] of [
    ["orders", ["orders", ">"]],
    ["orders.new", ["orders.new", "orders.*", "orders.>", ">"]],
    ["orders.created", ["orders.*", "orders.>", "*.created", ">"]],
    ["orders.new.eu", ["orders.*.eu", "orders.>", ">"]],
    ["orders.", ["orders.*", "orders.>", ">"]],
    ["users.created", ["*.created", ">"]],
    ["ordersx", [">"]],
    ["a b/ü", [">"]],
  ] as const
) {
  Deno.test(`the topic ${topic} concerns ${expected.join(" and ")}`, () => {
    assert.deepEqual(matches(PATTERNS, topic), [...expected].sort());
  });
}

Deno.test("an item under two patterns is found once for each", () => {
  const tree = new TopicTree<string>();
  for (const pattern of ["a.*", "a.b", "a.>"]) tree.add(pattern, "me");

  assert.deepEqual(tree.find("a.b"), ["me", "me", "me"]);
});

Deno.test("what is removed is not found, the others stay, and nothing is kept in the end", () => {
  const tree = new TopicTree<string>();
  const all = PATTERNS.flatMap((pattern) => [[pattern, "x"], [pattern, "y"]] as const);
  for (const [pattern, item] of all) tree.add(pattern, item);

  for (const pattern of PATTERNS) tree.remove(pattern, "x");
  tree.remove("orders.*", "never added");
  tree.remove("never.*.added", "y");
  assert.deepEqual(new Set(tree.find("orders.new")), new Set(["y"]));
  assert.equal(tree.isEmpty, false);

  for (const pattern of PATTERNS) tree.remove(pattern, "y");
  assert.deepEqual(tree.find("orders.new"), []);
  assert.equal(tree.isEmpty, true);
});

Deno.test("a topic finds its own among 100,000 patterns with bounded work", () => {
  const tree = new TopicTree<number>();
  for (let i = 0; i < 100_000; i++) tree.add(`t.${i}.*`, i);
  let asked = 0;
  const get = Map.prototype.get;
  Map.prototype.get = function (key) {
    asked++;
    return get.call(this, key);
  };
  try {
    assert.deepEqual(tree.find("t.77777.x"), [77_777]);
  } finally {
    Map.prototype.get = get;
  }

  assert.ok(asked < 20, `${asked} look-ups`);
});

Deno.test("topics of any text are accepted, wildcards and the bounds are not", () => {
  for (const topic of ["orders", "a.b.c", "a..b", "user:1/x ü", "x".repeat(TOPIC_CHARS_MAX)]) {
    assert.equal(topicProblem(topic), undefined);
    assert.equal(patternProblem(topic), undefined);
  }

  assert.match(topicProblem("") ?? "", /at least 1 character/);
  assert.match(topicProblem("x".repeat(1_000_000)) ?? "", /at most 1024 .*received 1000000/);
  for (const topic of ["orders.*", ">", "a>b", "a*"]) {
    assert.match(topicProblem(topic) ?? "", /has a wildcard; only subscriptions/);
  }
});

Deno.test("a wrong pattern is refused with its place and what to write", () => {
  for (const pattern of ["*", ">", "a.*", "*.*", "a.*.b.>"]) {
    assert.equal(patternProblem(pattern), undefined);
  }

  assert.match(patternProblem("orders*") ?? "", /inside the part "orders\*"; write \* or >/);
  assert.match(patternProblem("a.>.b") ?? "", /has > in part 2; it may only be the last part/);
  assert.match(patternProblem("a.b>") ?? "", /inside the part "b>"/);
  assert.match(patternProblem("x".repeat(1_000_000)) ?? "", /at most 1024/);
  const deep = `${"a.".repeat(PATTERN_PARTS_MAX)}*`;
  assert.match(patternProblem(deep) ?? "", /at most 32 parts, received 33/);
});
