import assert from "node:assert/strict";
import { Glob, globProblem, partsOf } from "./glob.ts";

function matches(pattern: string, path: string): boolean {
  return Glob.parse(pattern).some((glob) => glob.matches(partsOf(path)));
}

for (
  const [pattern, yes, no] of [
    ["src/a.py", ["src/a.py"], ["src/b.py", "a.py", "src/a.py/x", "src"]],
    ["./src//a.py", ["src/a.py"], []],
    ["*.py", ["a.py", ".py", "a.b.py"], ["src/a.py", "a.pyc", "py"]],
    ["src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "lib/a.py", "src/a.js", "srcx/a.py"]],
    ["**/*.sql", ["a.sql", "x/a.sql", "x/y/a.sql"], ["a.sqlx"]],
    ["src/**", ["src/a", "src/x/y"], ["a", "lib/src/a"]],
    ["a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c", "a/b/b/c"], ["a/c", "a/b/x", "b/c"]],
    ["a?.txt", ["ab.txt", "aé.txt", "a😀.txt"], ["a.txt", "abc.txt"]],
    ["[ab]-[0-9].[!x]", ["a-3.y", "b-0.z"], ["c-3.y", "a-x.y", "a-3.x"]],
    ["[]-]", ["]", "-"], ["a"]],
    ["[\\]x", ["\\x"], ["ax"]],
    ["{src,lib/core}/*.{ts,js}", ["src/a.ts", "lib/core/b.js"], ["lib/a.ts", "src/a.py"]],
    ["{a,{b,c}d}x", ["ax", "bdx", "cdx"], ["dx", "abx"]],
    ["\\*.py", ["*.py"], ["a.py"]],
    ["a\\{b,c\\}", ["a{b,c}"], ["ab"]],
    ["a+(b).$", ["a+(b).$"], ["aab."]],
  ] as const
) {
  Deno.test(`Glob ${pattern} means what it says`, () => {
    for (const path of yes) assert.ok(matches(pattern, path), path);
    for (const path of no) assert.ok(!matches(pattern, path), path);
  });
}

Deno.test("Glob.covers() counts what lies in a folder that is meant", () => {
  const covers = (pattern: string, path: string) => Glob.parse(pattern)[0]!.covers(partsOf(path));

  assert.ok(covers("gen", "gen/deep/a.py"));
  assert.ok(covers("gen/**", "gen"));
  assert.ok(covers("**/gen*", "src/gen1/a.py"));
  assert.ok(!covers("gen", "general/a.py"));
  assert.ok(!covers("gen/*.py", "gen"));
});

Deno.test("Glob.mayMatchBelow() rules out folders in which nothing can match", () => {
  const may = (pattern: string, folder: string) =>
    Glob.parse(pattern)[0]!.mayMatchBelow(partsOf(folder));

  assert.ok(may("src/*/x/*.py", "src"));
  assert.ok(may("src/*/x/*.py", "src/a/x"));
  assert.ok(may("src/**", "src/a/b/c"));
  assert.ok(may("src", "src/a"));
  assert.ok(!may("src/*/x/*.py", "src/a/y"));
  assert.ok(!may("src/*.py", "src/a"));
  assert.ok(!may("src/*.py", "lib"));
});

Deno.test("Glob gives the leading names without wildcards", () => {
  assert.deepEqual(Glob.parse("a/b/*.py/c")[0]!.names, ["a", "b"]);
  assert.deepEqual(Glob.parse("a/\\[b\\]")[0]!.names, ["a", "[b]"]);
  assert.deepEqual(Glob.parse(".")[0]!.names, []);
});

for (
  const [text, problem] of [
    ["!", "a path or glob after !"],
    ["/etc", "a path or glob inside the worker's directory"],
    ["!/etc", "a path or glob inside the worker's directory"],
    ["src/../../x", "a path or glob inside the worker's directory"],
    ["src/[ab", "a glob whose [ has a ]"],
    ["src/{a,b", "a glob whose { has a }"],
    ["[z-a]", "a glob whose [z-a] names characters or rising ranges of them"],
    ["{a,b}".repeat(12), "a glob with at most 1000 alternatives"],
  ] as const
) {
  Deno.test(`globProblem() refuses ${text.slice(0, 20)}`, () => {
    assert.equal(globProblem(text), problem);
  });
}

Deno.test("globProblem() takes paths, globs and exceptions", () => {
  for (const text of [".", "src", "src/", "a b.py", "!gen/**", "..a/b..", "}", "a,b", "]"]) {
    assert.equal(globProblem(text), undefined, text);
  }
});

Deno.test("Glob matches in bounded time whatever the stars", () => {
  const name = "a".repeat(200);

  const found = matches(`${"*a".repeat(50)}b`, name) ||
    matches(`${"**/".repeat(60)}x`, "a/".repeat(200));

  assert.equal(found, false);
});
