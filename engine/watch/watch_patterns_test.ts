import assert from "node:assert/strict";
import { WatchPatterns } from "./watch_patterns.ts";

function assertCounts(
  patterns: readonly string[],
  yes: readonly string[],
  no: readonly string[],
): void {
  const watch = new WatchPatterns(patterns);
  for (const path of yes) assert.ok(watch.counts(path), `${path} counts`);
  for (const path of no) assert.ok(!watch.counts(path), `${path} does not count`);
}

Deno.test("WatchPatterns takes a folder for the sources in it and below", () => {
  const sources = ["src/a.py", "src/deep/b.ts", "src/requirements.txt", "src/.env"];
  const others = ["a.py", "src/data.bin", "src/log.txt", "srcs/a.py"];

  assertCounts(["src"], sources, others);
  assertCounts(["./src/"], sources, others);
});

Deno.test("WatchPatterns takes the dot for the whole directory", () => {
  assertCounts(["."], ["a.py", "x/y/z.html", "engine.worker.yaml"], ["a.bin", "x/notes.md"]);
});

Deno.test("WatchPatterns takes a named file whatever it is, and nothing beside it", () => {
  assertCounts(["data.bin", "a/x.swp"], ["data.bin", "a/x.swp"], ["data.bin2", "b.bin", "a/b.py"]);
});

Deno.test("WatchPatterns takes what a glob means, whatever it is", () => {
  assertCounts(
    ["src/**/*.{py,json}", "*.yaml"],
    ["src/a.py", "src/b/c.json", "x.yaml"],
    ["a.py", "src/a.ts", "b/x.yaml", "src/b"],
  );
  assertCounts(["src/*"], ["src/a"], ["src/a/b.py"]);
});

Deno.test("WatchPatterns lets exceptions win, wherever they stand", () => {
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

Deno.test("WatchPatterns leaves out what programs fill, also under globs", () => {
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

Deno.test("WatchPatterns takes what is filled by programs when it is named in full", () => {
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
  Deno.test(`WatchPatterns leaves out ${name}, which an editor leaves for a moment`, () => {
    assertCounts([".", "**"], [], [name, `src/${name}`]);
  });
}

Deno.test("WatchPatterns.reach() tells folders on the way from those below and outside", () => {
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

Deno.test("WatchPatterns of an empty list counts nothing", () => {
  assertCounts([], [], ["a.py"]);
  assert.equal(new WatchPatterns([]).reach(""), "outside");
});
