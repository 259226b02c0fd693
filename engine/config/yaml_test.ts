import assert from "node:assert/strict";
import { pathOf, readYaml } from "./yaml.ts";

const env: Record<string, string> = { PORT: "8080", TOKEN: "12345", TRICK: "a: b", EMPTY: "" };
const variables = (name: string): string | undefined => env[name];

Deno.test("readYaml() knows the line of every value", () => {
  const text = "engine:\n  port: 1\nworkers:\n  - name: a\n    config:\n      x y: 2\n";

  const yaml = readYaml("config.yaml", text);

  assert.equal(yaml.lineOf("engine"), 1);
  assert.equal(yaml.lineOf("engine.port"), 2);
  assert.equal(yaml.lineOf("workers[0].name"), 4);
  assert.equal(yaml.lineOf('workers[0].config["x y"]'), 6);
});

Deno.test("readYaml() gives the line around a value that is absent", () => {
  const yaml = readYaml("config.yaml", "a: 1\nworkers:\n  - name: a\n");

  assert.equal(yaml.lineOf("workers[0].path"), 3);
  assert.equal(yaml.lineOf("workers[7]"), 2);
  assert.equal(yaml.lineOf("else"), 1);
});

Deno.test("readYaml() reads a whole unquoted variable as YAML would", () => {
  const text = "a: ${PORT}\nb: ${NONE:49134}\nc: ${NONE:true}\nd: ${EMPTY}\ne: ${NONE:}\n";

  const { value, problems } = readYaml("config.yaml", text, variables);

  assert.deepEqual(problems, []);
  assert.deepEqual(value, { a: 8080, b: 49134, c: true, d: null, e: null });
});

Deno.test("readYaml() leaves a quoted variable and one among other text as text", () => {
  const text = "a: '${PORT}'\nb: http://${NONE:localhost}:${PORT}/\n";

  const { value } = readYaml("config.yaml", text, variables);

  assert.deepEqual(value, { a: "8080", b: "http://localhost:8080/" });
});

Deno.test("readYaml() lets a variable bring no keys, lists or comments along", () => {
  env.LIST = "[1, 2]";
  env.NOTE = "5 # five";
  env.LINES = "x\nb: 2";
  const text = "a: ${TRICK}\nb: ${LIST}\nc: ${NOTE}\nd: ${LINES}\n";

  const { value } = readYaml("config.yaml", text, variables);

  assert.deepEqual(value, { a: "a: b", b: "[1, 2]", c: "5 # five", d: "x\nb: 2" });
});

Deno.test("readYaml() remembers the text of what a variable filled in", () => {
  const yaml = readYaml("config.yaml", "a: ${TOKEN}\nb: 1.10\n", variables);

  assert.equal(yaml.isFilledIn("a"), true);
  assert.equal(yaml.textOf("a"), "12345");
  assert.equal(yaml.isFilledIn("b"), false);
  assert.equal(yaml.textOf("b"), "1.10");
});

Deno.test("readYaml() takes $${ for a literal ${ and no notice without variables", () => {
  assert.deepEqual(readYaml("f", "a: $${PORT}\n", variables).value, { a: "${PORT}" });
  assert.deepEqual(readYaml("f", "a: ${PORT}\n").value, { a: "${PORT}" });
});

Deno.test("readYaml() reports every variable that is missing or mistyped", () => {
  const text = "a: ${NOPE}\nb:\n  - x ${ALSO_NOT}\nc: ${1X}\nd: ${OPEN\n";

  const { problems } = readYaml("config.yaml", text, variables);

  assert.deepEqual(problems, [
    "a: expected the environment variable NOPE to be set, received nothing (line 1)",
    "b[0]: expected the environment variable ALSO_NOT to be set, received nothing (line 3)",
    'c: expected ${NAME}, ${NAME:default} or ${file:PATH}, received "${1X}" (line 4)',
    'd: expected ${NAME}, ${NAME:default} or ${file:PATH}, received "${OPEN" (line 5)',
  ]);
});

Deno.test("readYaml() names tabs, double keys and broken text with their lines", () => {
  const problemsOf = (text: string) => readYaml("config.yaml", text).problems;

  assert.deepEqual(problemsOf("engine:\n\tport: 1\n"), [
    "config.yaml: expected spaces for indentation, received a tab (line 2)",
  ]);
  assert.deepEqual(problemsOf("engine:\n  port: 1\n  port: 2\n"), [
    "engine.port: expected the key once, received it again, first in line 2 (line 3)",
  ]);
  assert.deepEqual(problemsOf("a: b: c\n"), [
    "config.yaml: expected valid YAML, received something else: " +
    "Nested mappings are not allowed in compact mappings (line 1)",
  ]);
  assert.match(problemsOf("a: !odd 1\n")[0]!, /Unresolved tag: !odd \(line 1\)$/);
  assert.match(problemsOf("a: 1\n---\nb: 2\n")[0]!, /multiple documents.* \(line 2\)$/);
});

Deno.test("readYaml() reports what JSON cannot hold", () => {
  const { problems } = readYaml("config.yaml", "a: .inf\n? [x]\n: 1\n");

  assert.deepEqual(problems, [
    "a: expected a number that JSON can hold, received .inf (line 1)",
    "config.yaml: expected a string as key, received something else (line 2)",
  ]);
});

Deno.test("readYaml() follows aliases, but not for ever", () => {
  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x,x]"];
  for (const [to, from] of ["ba", "cb", "dc", "ed", "fe", "gf", "hg"]) {
    bomb.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(",")}]`);
  }

  assert.deepEqual(readYaml("f", "a: &x { n: 1 }\nb: *x\n").value, { a: { n: 1 }, b: { n: 1 } });
  assert.match(readYaml("f", "a: &x\n  b: *x\n").problems[0]!, /^a\.b\.b: expected an anchor/);
  assert.match(readYaml("f", "a: *nope\n").problems[0]!, /received \*nope \(line 1\)$/);
  assert.deepEqual(readYaml("f", bomb.join("\n")).problems, [
    "f: expected at most 20000 values, received more (line 1)",
  ]);
});

Deno.test("readYaml() bounds the characters that aliases repeat, and what a problem quotes", () => {
  const long = `a: &a ${"x".repeat(100_000)}\nb: [${"*a,".repeat(1_000)}]\n`;

  assert.deepEqual(readYaml("f", long).problems, [
    "f: expected values of at most 1048576 characters, received more (line 1)",
  ]);
  const [problem] = readYaml("f", `a: "${"${X:".repeat(10_000)}"`, () => "").problems;
  assert.ok(problem!.length < 200, problem);
});

Deno.test("readYaml() reads 64 levels and refuses more, however they are written", () => {
  const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const deep = ["f: expected at most 64 levels, received more (line 1)"];

  assert.deepEqual(readYaml("f", nested(64)).problems, []);
  assert.deepEqual(readYaml("f", nested(65)).problems, deep);
  for (const text of [nested(16_000), "[".repeat(32_000), "{a: ".repeat(8_000)]) {
    assert.deepEqual(readYaml("f", text).problems.slice(0, 1), deep, text.slice(0, 9));
  }
});

Deno.test("readYaml() keeps a key named __proto__ as a plain member", () => {
  const { value } = readYaml("f", "__proto__: 1\n");

  assert.deepEqual(Object.keys(value as object), ["__proto__"]);
});

Deno.test("pathOf() quotes keys that are not identifiers", () => {
  assert.equal(pathOf("", "engine"), "engine");
  assert.equal(pathOf("workers", 2), "workers[2]");
  assert.equal(pathOf("workers[2].env", "a b"), 'workers[2].env["a b"]');
});

Deno.test("readYaml() resolves an alias to the last node with its anchor", () => {
  const { value, problems } = readYaml("f", "a: &x 1\nb: *x\nc: &x [2]\nd: *x\n&k e: *k\n");

  assert.deepEqual(problems, []);
  assert.deepEqual(value, { a: 1, b: 1, c: [2], d: [2], e: "e" });
  assert.match(readYaml("f", "a: *x\nb: &x 1\n").problems[0]!, /expected an anchor/);
});

Deno.test("readYaml() is done at once with a text that means to keep it busy", () => {
  const aliases = `a: &a 1\nb: [${"*a,".repeat(20_000)}]\n`;
  const anchors = Array.from({ length: 4_000 }, (_, i) => `k${i}: &a${i} ${i}\nl${i}: *a${i}\n`);

  for (const text of [aliases, anchors.join(""), "%\n".repeat(32_000), "[".repeat(30_000)]) {
    const began = performance.now();
    const { problems } = readYaml("f", text);
    const ms = performance.now() - began;

    assert.ok(ms < 30_000, `${text.slice(0, 20)}: ${Math.round(ms)} ms`);
    assert.ok(problems.length <= 100, `${problems.length} problems`);
  }
});

Deno.test("pathOf() writes members, items and keys with signs", () => {
  assert.equal(pathOf("", "engine"), "engine");
  assert.equal(pathOf("engine", "port"), "engine.port");
  assert.equal(pathOf("workers", 2), "workers[2]");
  assert.equal(pathOf("env", "a b"), 'env["a b"]');
});

Deno.test("readYaml() keeps the first line of a path and finds the nearest one around", () => {
  const yaml = readYaml("config.yaml", "# first\n# second\nworkers:\n  - env:\n      a b: 1\n");

  assert.equal(yaml.lineOf("workers"), 3);
  assert.equal(yaml.lineOf('workers[0].env["a b"]'), 5);
  assert.equal(yaml.lineOf('workers[1].env["a b"]'), 3);
  assert.equal(readYaml("config.yaml", "").lineOf("engine.port"), undefined);
});
