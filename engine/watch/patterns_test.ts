import assert from "node:assert/strict";
import { Glob, globProblem, partsOf, WatchPatterns } from "./patterns.ts";

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
  Deno.test(`Glob ${pattern} matches the listed paths`, () => {
    for (const path of yes) assert.ok(matches(pattern, path), path);
    for (const path of no) assert.ok(!matches(pattern, path), path);
  });
}

Deno.test("Glob.covers() matches paths in a matching folder", () => {
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

Deno.test("Glob.names holds the leading names without wildcards", () => {
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

Deno.test("globProblem() accepts paths, globs and exceptions", () => {
  for (const text of [".", "src", "src/", "a b.py", "!gen/**", "..a/b..", "}", "a,b", "]"]) {
    assert.equal(globProblem(text), undefined, text);
  }
});

Deno.test("Glob matches in bounded time with many stars", () => {
  const name = "a".repeat(200);

  const found = matches(`${"*a".repeat(50)}b`, name) ||
    matches(`${"**/".repeat(60)}x`, "a/".repeat(200));

  assert.equal(found, false);
});

function assertCounts(
  patterns: readonly string[],
  yes: readonly string[],
  no: readonly string[],
): void {
  const watch = new WatchPatterns(patterns);
  for (const path of yes) assert.ok(watch.counts(path), `${path} counts`);
  for (const path of no) assert.ok(!watch.counts(path), `${path} does not count`);
}

Deno.test("WatchPatterns matches sources in a named folder and below", () => {
  const sources = ["src/a.py", "src/deep/b.ts", "src/requirements.txt", "src/.env"];
  const others = ["a.py", "src/data.bin", "src/log.txt", "srcs/a.py"];

  assertCounts(["src"], sources, others);
  assertCounts(["./src/"], sources, others);
});

Deno.test("WatchPatterns matches the whole directory for a dot", () => {
  assertCounts(["."], ["a.py", "x/y/z.html", "engine.worker.yaml"], ["a.bin", "x/notes.md"]);
});

Deno.test("WatchPatterns matches a named file of any type, and nothing beside it", () => {
  assertCounts(["data.bin", "a/x.swp"], ["data.bin", "a/x.swp"], ["data.bin2", "b.bin", "a/b.py"]);
});

Deno.test("WatchPatterns matches files of any type with a glob", () => {
  assertCounts(
    ["src/**/*.{py,json}", "*.yaml"],
    ["src/a.py", "src/b/c.json", "x.yaml"],
    ["a.py", "src/a.ts", "b/x.yaml", "src/b"],
  );
  assertCounts(["src/*"], ["src/a"], ["src/a/b.py"]);
});

Deno.test("WatchPatterns prefers exceptions, in any order", () => {
  assertCounts(
    ["!generated/**", ".", "!**/*_pb2.py", "!docs", "!src/one.py"],
    ["a.py", "src/two.py", "x/generated/a.py"],
    [
      "generated/a.py",
      "generated/b/c.py",
      "src/x_pb2.py",
      "x_pb2.py",
      "docs/conf.py",
      "src/one.py",
    ],
  );
});

Deno.test("WatchPatterns leaves out folders that programs write, also under globs", () => {
  const filled = [
    ".git/hooks/a.py",
    "__pycache__/a.py",
    "x/.mypy_cache/a.py",
    "node_modules/a/b.js",
    ".deno/a.ts",
    "venv/lib/a.py",
    ".venv/a.py",
  ];

  assertCounts(["."], [], filled);
  assertCounts(["**/*"], ["a.anything"], filled);
});

Deno.test("WatchPatterns matches a folder that programs write when it is named in full", () => {
  assertCounts(["node_modules/mine"], ["node_modules/mine/a.js"], [
    "node_modules/a.js",
    "node_modules/mine/node_modules/b.js",
  ]);
  assertCounts([".git/HEAD"], [".git/HEAD"], [".git/index"]);
});

for (
  const name of [
    "main.py~",
    ".main.py.swp",
    ".main.py.swx",
    ".main.py.swo",
    ".#main.py",
    "#main.py#",
    "main.py.tmp",
    "main.py___jb_tmp___",
    ".goutputstream-AB12",
    ".main.py.kate-swp",
  ]
) {
  Deno.test(`WatchPatterns leaves out ${name}, a temporary file of an editor`, () => {
    assertCounts([".", "**"], [], [name, `src/${name}`]);
  });
}

Deno.test("WatchPatterns.reach() tells folders on the way, below and outside apart", () => {
  const watch = new WatchPatterns(["src/app", "lib/**/*.py", "conf/x.ini", "!lib/gen"]);

  assert.deepEqual(
    ["", "src", "src/app", "lib", "conf"].map((folder) => watch.reach(folder)),
    ["named", "named", "named", "named", "named"],
  );
  assert.deepEqual(["src/app/deep", "lib/x/y"].map((folder) => watch.reach(folder)), [
    "below",
    "below",
  ]);
  assert.deepEqual(
    ["src/other", "doc", "lib/gen", "lib/gen/a", "src/app/.git", "conf/deep"]
      .map((folder) => watch.reach(folder)),
    ["outside", "outside", "outside", "outside", "outside", "outside"],
  );
});

Deno.test("WatchPatterns of an empty list match nothing", () => {
  assertCounts([], [], ["a.py"]);
  assert.equal(new WatchPatterns([]).reach(""), "outside");
});
