import assert from "node:assert/strict";
import { WatchPatterns } from "./patterns.ts";
import { type ChunkedWork, runChunked, scanSources, type SourceScan } from "./source_scan.ts";

/** A directory with files (a path that ends with a slash is a folder). */
async function setup(paths: readonly string[]) {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  for (const path of paths) {
    const folder = path.slice(0, path.lastIndexOf("/") + 1);
    await Deno.mkdir(`${directory}/${folder}`, { recursive: true });
    if (path !== folder) await Deno.writeTextFile(`${directory}/${path}`, "1");
  }
  const scan = async (...patterns: string[]): Promise<SourceScan> => {
    return (await runChunked(scanSources(directory, new WatchPatterns(patterns)), () => true))!;
  };
  const end = () => Deno.remove(directory, { recursive: true });
  return { directory, scan, [Symbol.asyncDispose]: end };
}

function foldersOf({ folders }: SourceScan): (string | undefined)[] {
  return folders.map(({ name }) => name).sort();
}

Deno.test("scanSources() finds sources and the folders that may contain them", async () => {
  await using there = await setup(["main.py", "data.bin", "src/a.ts", "src/deep/b.ts", "src/x.md"]);

  const scan = await there.scan(".");

  assert.deepEqual([...scan.files.keys()].sort(), ["main.py", "src/a.ts", "src/deep/b.ts"]);
  assert.deepEqual(foldersOf(scan), ["", "src", "src/deep"]);
  assert.equal(scan.folders[0]!.path, there.directory);
  assert.deepEqual([scan.exists, scan.isCut], [true, false]);
});

Deno.test("scanSources() leaves out folders that programs write", async () => {
  await using there = await setup([
    "main.py",
    "node_modules/big/index.js",
    "src/__pycache__/a.py",
    "src/a.py",
    "packages/one/node_modules/x.js",
    "env/pyvenv.cfg",
    "env/lib/pip.py",
  ]);

  const scan = await there.scan(".");
  const named = await there.scan("env");

  assert.deepEqual([...scan.files.keys()].sort(), ["main.py", "src/a.py"]);
  assert.deepEqual(foldersOf(scan), ["", "packages", "packages/one", "src"]);
  assert.deepEqual([...named.files.keys()].sort(), ["env/lib/pip.py", "env/pyvenv.cfg"]);
});

Deno.test("scanSources() visits only folders that patterns reach", async () => {
  await using there = await setup([
    "src/a.py",
    "src/deep/b.py",
    "doc/c.py",
    "conf/x.ini",
    "main.py",
  ]);

  const globs = await there.scan("src/*.py", "conf/x.ini");
  const except = await there.scan(".", "!src/deep");

  assert.deepEqual([...globs.files.keys()].sort(), ["conf/x.ini", "src/a.py"]);
  assert.deepEqual(foldersOf(globs), ["", "conf", "src"]);
  assert.deepEqual([...except.files.keys()].sort(), [
    "conf/x.ini",
    "doc/c.py",
    "main.py",
    "src/a.py",
  ]);
});

Deno.test("scanSources() follows links, but not in circles or to a folder that contains the worker", async () => {
  await using there = await setup(["worker/src/a.py", "shared/s.py", "one/x.py", "one/y.py"]);
  const { directory } = there;
  await Deno.symlink("../shared", `${directory}/worker/shared`);
  await Deno.symlink("../one/x.py", `${directory}/worker/linked.py`);
  await Deno.symlink("..", `${directory}/worker/src/up`);
  await Deno.symlink("/", `${directory}/worker/src/all`);
  await Deno.symlink("nowhere", `${directory}/worker/broken.py`);
  const patterns = new WatchPatterns(["."]);

  const scan = (await runChunked(scanSources(`${directory}/worker`, patterns), () => true))!;

  assert.deepEqual([...scan.files.keys()].sort(), ["linked.py", "shared/s.py", "src/a.py"]);
  assert.deepEqual(foldersOf(scan), ["", "shared", "src", undefined]);
  assert.deepEqual([...scan.targets], [`${directory}/one/x.py`]);
  assert.equal(scan.folders.at(-1)!.path, `${directory}/one`);
});

Deno.test("scanSources() follows no link out of the directory of a contained worker", async () => {
  await using there = await setup([
    "worker/real.py",
    "worker/src/a.py",
    "home/b.py",
    "worker-2/c.py",
  ]);
  const directory = `${there.directory}/worker`;
  await Deno.symlink("../home", `${directory}/home`);
  await Deno.symlink(`${there.directory}/home/b.py`, `${directory}/b.py`);
  await Deno.symlink("../worker-2", `${directory}/two`);
  await Deno.symlink("src/a.py", `${directory}/inner.py`);
  await Deno.symlink(directory, `${there.directory}/current`);
  const patterns = new WatchPatterns(["."]);

  for (const place of [directory, `${there.directory}/current`]) {
    const scan = (await runChunked(scanSources(place, patterns, true), () => true))!;

    assert.deepEqual([...scan.files.keys()].sort(), ["inner.py", "real.py", "src/a.py"]);
    assert.deepEqual(
      scan.folders.map(({ path }) => path).filter((path) => path.startsWith(directory)),
      [directory, `${directory}/src`],
    );
    assert.ok(![...scan.targets].some((path) => path.includes("home")));
    assert.ok(!scan.folders.some(({ path }) => /home|worker-2/.test(path)));
  }
});

Deno.test("scanSources() scans the target when the directory is a link", async () => {
  await using there = await setup(["releases/2/main.py"]);
  const { directory } = there;
  await Deno.symlink("releases/2", `${directory}/current`);
  const patterns = new WatchPatterns(["."]);

  const scan = (await runChunked(scanSources(`${directory}/current`, patterns), () => true))!;

  assert.deepEqual([...scan.files.keys()], ["main.py"]);
  assert.deepEqual([...scan.targets], [`${directory}/current`]);
  assert.deepEqual(foldersOf(scan), ["", undefined]);
});

Deno.test("scanSources() tells a changed file by its stamp, a new folder by its identity", async () => {
  await using there = await setup(["a.py", "b.py", "src/c.py"]);
  const { directory, scan } = there;
  const before = await scan(".");
  const other = new Date("2030-01-01T00:00:00.250Z");

  await Deno.utime(`${directory}/a.py`, other, other);
  await Deno.rename(`${directory}/src`, `${directory}/kept`);
  await Deno.mkdir(`${directory}/src`);
  const after = await scan(".");

  assert.notEqual(after.files.get("a.py")!.stamp, before.files.get("a.py")!.stamp);
  assert.equal(after.files.get("a.py")!.changedAtMs, other.getTime());
  assert.deepEqual(after.files.get("b.py"), before.files.get("b.py"));
  const identityOf = ({ folders }: SourceScan, name: string) =>
    folders.find((folder) => folder.name === name)!.identity;
  assert.equal(identityOf(after, ""), identityOf(before, ""));
  assert.notEqual(identityOf(after, "src"), identityOf(before, "src"));
  assert.equal(identityOf(after, "kept"), identityOf(before, "src"));
});

Deno.test("scanSources() accepts a missing directory, or a file in its place", async () => {
  await using there = await setup(["file"]);
  const patterns = new WatchPatterns(["."]);

  for (const path of [`${there.directory}/nothing`, `${there.directory}/file`]) {
    const scan = (await runChunked(scanSources(path, patterns), () => true))!;
    assert.deepEqual([scan.exists, scan.files.size, scan.folders.length], [false, 0, 0]);
  }
});

Deno.test("scanSources() stops at its bounds, with folders near the top first", async () => {
  await using there = await setup(["top/main.py"]);
  for (let i = 0; i < 2_010; i++) {
    Deno.mkdirSync(`${there.directory}/many/f${i}`, { recursive: true });
  }

  const scan = await there.scan(".");

  assert.equal(scan.isCut, true);
  assert.equal(scan.folders.length, 2_000);
  assert.ok(scan.files.has("top/main.py"));
});

function* steps(count: number, busyMs: number): ChunkedWork<number> {
  let done = 0;
  for (let i = 0; i < count; i++) {
    for (const until = performance.now() + busyMs; performance.now() < until;);
    done++;
    yield;
  }
  return done;
}

Deno.test("runChunked() finishes quick work synchronously", async () => {
  let isDone = false;
  function* work(): ChunkedWork<void> {
    yield* steps(30, 0);
    isDone = true;
  }

  const end = runChunked(work(), () => true);

  assert.ok(isDone);
  await end;
});

Deno.test("runChunked() lets timers run during long work", async () => {
  let turns = 0;
  const others = setInterval(() => turns++, 0);

  const done = await runChunked(steps(300, 0.5), () => true);

  clearInterval(others);
  assert.equal(done, 300);
  assert.ok(turns >= 3, `${turns}`);
});

Deno.test("runChunked() awaits promises and returns the result", async () => {
  const order: string[] = [];
  function* work(): ChunkedWork<string> {
    yield Promise.resolve().then(() => void order.push("waited"));
    order.push("went on");
    return "result";
  }

  assert.equal(await runChunked(work(), () => true), "result");
  assert.deepEqual(order, ["waited", "went on"]);
});

Deno.test("runChunked() ends work that is no longer needed, and cleans up", async () => {
  let isClean = false;
  function* work(): ChunkedWork<string> {
    try {
      yield Promise.resolve();
      return "result";
    } finally {
      isClean = true;
    }
  }

  assert.equal(await runChunked(work(), () => false), undefined);
  assert.ok(isClean);
});

Deno.test("runChunked() rejects with the error of the work", async () => {
  function* work(): ChunkedWork<void> {
    yield;
    throw new Error("broken");
  }

  await assert.rejects(runChunked(work(), () => true), /broken/);
});
