import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import {
  EditWatch,
  watchWorker,
  type WorkerChange,
  type WorkerWatchOptions,
} from "./worker_watch.ts";
import { until } from "../../tests/fakes/until.ts";

/** A worker's directory under watch. */
async function setup(
  watch: readonly string[] = ["."],
  prepare?: (root: string) => Promise<void> | void,
) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const directory = `${root}/worker`;
  await Deno.mkdir(`${directory}/src/deep`, { recursive: true });
  await Deno.mkdir(`${directory}/node_modules`);
  await Deno.writeTextFile(`${directory}/main.py`, "1");
  await Deno.writeTextFile(`${directory}/data.bin`, "1");
  await prepare?.(root);
  const clock = new FakeClock();
  const changes: WorkerChange[] = [];
  const failures: string[] = [];
  const watching = watchWorker({
    directory,
    watch,
    clock,
    onChange: (change) => void changes.push(change),
    onFailure: (reason) => void failures.push(reason),
  });
  const write = (path: string) => Deno.writeTextFile(`${directory}/${path}`, crypto.randomUUID());
  const end = async (): Promise<void> => {
    watching[Symbol.dispose]();
    await Deno.remove(root, { recursive: true });
    assert.deepEqual(failures.splice(0), []);
  };
  return {
    root,
    directory,
    clock,
    changes,
    failures,
    watching,
    write,
    [Symbol.asyncDispose]: end,
  };
}

type Setup = Pick<Awaited<ReturnType<typeof setup>>, "clock" | "changes">;

/** Waits until an event of a source arrived, then lets the debounce time pass. */
async function reported({ clock, changes }: Setup): Promise<WorkerChange> {
  const before = changes.length;
  for (let i = 0; changes.length === before; i++) {
    await until(() => clock.waiting > 0 || changes.length > before);
    await quiet(clock); // One edit causes several events.
    clock.tick(1_000);
    await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(i < 1_000, "nothing was reported");
  }
  return changes.at(-1)!;
}

/** Waits until no event has come for a while. */
async function quiet(clock: FakeClock): Promise<void> {
  for (let seen = -1; seen !== clock.asked;) {
    seen = clock.asked;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

Deno.test("watchWorker() reports edits in quick succession as one", async () => {
  await using there = await setup();

  await there.write("main.py");
  await there.write("src/deep/part.ts");
  const change = await reported(there);

  assert.deepEqual(change.paths, ["main.py", "src/deep/part.ts"]);
  assert.ok(Math.abs(change.changedAtMs - Date.now()) < 60_000);
  assert.equal(there.changes.length, 1);
});

Deno.test("watchWorker() dates an edit to the millisecond, and never too early", async () => {
  /** Reported after a change of the time of a file; one file each, as it may be reported twice. */
  const changedAtMs = async (written: Date): Promise<number> => {
    await using there = await setup();
    await Deno.utime(`${there.directory}/main.py`, written, written);
    return (await reported(there)).changedAtMs;
  };
  for (const at of [200, 700]) {
    const second = Math.floor(Date.now() / 1_000) * 1_000;
    const written = new Date(second + 60_000 + at); // Later than the change, which is now.
    assert.equal(await changedAtMs(written), written.getTime());
  }

  const before = Date.now() - 10; // The resolution of the times of files.

  assert.ok(await changedAtMs(new Date("2020-01-01T00:00:00Z")) >= before);
});

for (
  const name of ["engine.worker.yaml", "requirements.txt", "requirements-dev.txt", "deno.json"]
) {
  Deno.test(`watchWorker() reports an edit of ${name}`, async () => {
    await using there = await setup();

    await there.write(name);

    assert.deepEqual((await reported(there)).paths, [name]);
  });
}

Deno.test("watchWorker() reports an editor that writes a new file and renames it", async () => {
  await using there = await setup();
  const { directory } = there;

  await there.write("main.py.tmp");
  await Deno.rename(`${directory}/main.py.tmp`, `${directory}/main.py`);

  assert.deepEqual((await reported(there)).paths, ["main.py"]);
});

Deno.test("watchWorker() reports a removed file", async () => {
  await using there = await setup();

  await Deno.remove(`${there.directory}/main.py`);

  assert.deepEqual((await reported(there)).paths, ["main.py"]);
});

Deno.test("watchWorker() reports files in a new folder, and later edits there", async () => {
  await using there = await setup();

  await Deno.mkdir(`${there.directory}/fresh/er`, { recursive: true });
  await there.write("fresh/er/a.py");
  assert.deepEqual((await reported(there)).paths, ["fresh/er/a.py"]);

  await there.write("fresh/er/b.py");
  assert.ok((await reported(there)).paths.includes("fresh/er/b.py"));
});

Deno.test("watchWorker() ignores files that programs and editors write", async () => {
  await using there = await setup();

  await there.write("data.bin");
  await there.write("notes.txt");
  await there.write("node_modules/x.js");
  await there.write("main.py~");
  await there.write(".main.py.swp");
  await there.write(".#main.py");
  await Deno.mkdir(`${there.directory}/__pycache__`);
  await there.write("__pycache__/main.py");
  await there.write("last.py");

  assert.deepEqual((await reported(there)).paths, ["last.py"]);
});

Deno.test("watchWorker() reports a named file of any type, and nothing beside it", async () => {
  await using there = await setup(["data.bin", "src", "later.conf"]);

  await there.write("main.py");
  await there.write("data.bin");
  await there.write("src/a.py");
  await there.write("later.conf");

  assert.deepEqual((await reported(there)).paths, ["data.bin", "later.conf", "src/a.py"]);
});

Deno.test("watchWorker() reports files that match globs, without exceptions", async () => {
  await using there = await setup(["src/**/*.{py,json}", "!src/gen/**", "conf/*.ini"]);

  await there.write("main.py");
  await Deno.mkdir(`${there.directory}/src/gen`);
  await there.write("src/gen/made.py");
  await there.write("src/deep/a.json");
  await there.write("src/deep/a.txt");
  await Deno.mkdir(`${there.directory}/conf`);
  await there.write("conf/x.ini");

  assert.deepEqual((await reported(there)).paths, ["conf/x.ini", "src/deep/a.json"]);
});

Deno.test("watchWorker() reports a checkout of thousands of files once", async () => {
  const paths = Array.from({ length: 2_000 }, (_, i) => `p${i % 50}/deep/f${i}.py`);
  await using there = await setup(["."], (root) => {
    for (let i = 0; i < 50; i++) Deno.mkdirSync(`${root}/worker/p${i}/deep`, { recursive: true });
    for (const path of paths) Deno.writeTextFileSync(`${root}/worker/${path}`, "1");
  });

  await there.write("main.py");
  await reported(there); // From now on it knows all of them.
  for (const path of paths) Deno.writeTextFileSync(`${there.directory}/${path}`, "2");
  Deno.mkdirSync(`${there.directory}/later/deep`, { recursive: true });
  Deno.writeTextFileSync(`${there.directory}/later/deep/requirements.txt`, "");
  const change = await reported(there);

  assert.equal(there.changes.length, 2);
  assert.equal(change.paths.length, 20); // Of many, the first few.
  assert.ok(Date.now() - change.changedAtMs < 60_000);
});

Deno.test("watchWorker() reports continuous edits after a while", async () => {
  await using there = await setup();
  const { clock, changes } = there;

  while (clock.now() < 4_800) {
    await there.write("main.py");
    await until(() => clock.nextIn === 150);
    clock.tick(100);
    assert.deepEqual(changes, []);
  }
  await there.write("main.py");
  await until(() => clock.nextIn === 150);
  clock.tick(100);
  await there.write("main.py");
  await until(() => clock.nextIn === 100); // Not 150: five seconds are over then.
  clock.tick(100);

  await until(() => changes.length === 1);
});

Deno.test("watchWorker() reports a folder that is moved away, and one that is moved here", async () => {
  await using there = await setup();
  const { directory, root } = there;
  await there.write("src/deep/a.py");
  await reported(there);
  const long = new Date("2020-01-01T00:00:00Z");
  await Deno.utime(`${directory}/src/deep/a.py`, long, long);
  await reported(there);

  await Deno.rename(`${directory}/src`, `${root}/elsewhere`);
  assert.deepEqual((await reported(there)).paths, ["src/deep/a.py"]);

  const { ctime } = await Deno.stat(`${root}/elsewhere/deep/a.py`);
  await until(() => Date.now() > ctime!.getTime() + 2_000);
  const before = Date.now();
  await Deno.rename(`${root}/elsewhere`, `${directory}/lib`);
  const { paths, changedAtMs } = await reported(there);
  assert.deepEqual(paths, ["lib/deep/a.py"]);
  assert.ok(changedAtMs >= before); // Its files are old, but not here.

  await there.write("lib/deep/a.py");
  assert.deepEqual((await reported(there)).paths, ["lib/deep/a.py"]);
});

Deno.test("watchWorker() ignores folders without sources that come and go", async () => {
  await using there = await setup();

  for (let i = 0; i < 20; i++) {
    await Deno.mkdir(`${there.directory}/tmp${i}`);
    await there.write(`tmp${i}/data.bin`);
    await Deno.remove(`${there.directory}/tmp${i}`, { recursive: true });
  }
  await there.write("last.py");

  assert.deepEqual((await reported(there)).paths, ["last.py"]);
});

Deno.test("watchWorker() leaves out a virtual environment of any name", async () => {
  await using there = await setup(["."], async (root) => {
    await Deno.mkdir(`${root}/worker/old-env/lib`, { recursive: true });
    await Deno.writeTextFile(`${root}/worker/old-env/pyvenv.cfg`, "");
  });

  await Deno.mkdir(`${there.directory}/my-env/lib`, { recursive: true });
  await there.write("my-env/pyvenv.cfg");
  await there.write("my-env/lib/pip.py");
  await there.write("old-env/lib/pip.py");
  await there.write("last.py");

  assert.deepEqual((await reported(there)).paths, ["last.py"]);
});

Deno.test("watchWorker() follows links to folders and files, but not in circles", async () => {
  await using there = await setup(["."], async (root) => {
    await Deno.mkdir(`${root}/shared/more`, { recursive: true });
    await Deno.writeTextFile(`${root}/shared/more/s.py`, "1");
    await Deno.writeTextFile(`${root}/one.py`, "1");
    await Deno.symlink(`${root}/shared`, `${root}/worker/shared`);
    await Deno.symlink(`${root}/one.py`, `${root}/worker/linked.py`);
    await Deno.symlink("..", `${root}/worker/src/up`);
    await Deno.symlink(root, `${root}/worker/src/above`);
    await Deno.symlink("/nowhere", `${root}/worker/broken.py`);
  });
  const { root } = there;

  await Deno.writeTextFile(`${root}/shared/more/s.py`, "2");
  await Deno.writeTextFile(`${root}/one.py`, "2");
  await Deno.writeTextFile(`${root}/two.py`, "2");
  assert.deepEqual((await reported(there)).paths, ["linked.py", "shared/more/s.py"]);

  await Deno.symlink(`${root}/two.py`, `${root}/worker/second.py`);
  assert.deepEqual((await reported(there)).paths, ["second.py"]);
  await Deno.writeTextFile(`${root}/two.py`, "3");
  assert.deepEqual((await reported(there)).paths, ["second.py"]);

  await Deno.remove(`${root}/worker/shared`);
  assert.deepEqual((await reported(there)).paths, ["shared/more/s.py"]);
});

Deno.test("watchWorker() reports a directory that is deleted and created again", async () => {
  await using there = await setup();
  const { directory, clock } = there;

  await Deno.remove(directory, { recursive: true });
  await reported(there);
  assert.equal(there.changes.length, 1);

  for (let i = 0; i < 10; i++) clock.tick(500); // It looks again and again.
  await Deno.mkdir(`${directory}/src`, { recursive: true });
  await there.write("src/new.py");
  clock.tick(500);
  assert.deepEqual((await reported(there)).paths, ["src/new.py"]);

  await there.write("src/new.py");
  assert.deepEqual((await reported(there)).paths, ["src/new.py"]);
});

Deno.test("watchWorker() reports a directory that is replaced at once", async () => {
  await using there = await setup();
  const { root, directory } = there;
  await Deno.mkdir(`${root}/next`);
  await Deno.writeTextFile(`${root}/next/other.py`, "1");

  await Deno.rename(directory, `${root}/before`);
  await Deno.rename(`${root}/next`, directory);
  there.clock.tick(500); // In case it looked just between the two.
  assert.ok((await reported(there)).paths.includes("other.py"));

  await there.write("other.py");
  assert.deepEqual((await reported(there)).paths, ["other.py"]);
});

Deno.test("watchWorker() reports that a link to the directory has a new target", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  for (const name of ["one", "two"]) {
    await Deno.mkdir(`${root}/${name}`);
    await Deno.writeTextFile(`${root}/${name}/main.py`, name);
  }
  await Deno.symlink(`${root}/one`, `${root}/current`);
  const clock = new FakeClock();
  const changes: WorkerChange[] = [];
  const onChange = (change: WorkerChange): void => void changes.push(change);
  using watching = watchWorker({
    directory: `${root}/current`,
    watch: ["."],
    clock,
    onChange,
    onFailure: assert.fail,
  });

  await Deno.symlink(`${root}/two`, `${root}/next`);
  await Deno.rename(`${root}/next`, `${root}/current`);
  await reported({ clock, changes });
  await Deno.writeTextFile(`${root}/two/main.py`, "3");
  await reported({ clock, changes });

  assert.ok(watching);
  assert.deepEqual(changes.map(({ paths }) => paths), [["main.py"], ["main.py"]]);
  await Deno.remove(root, { recursive: true });
});

Deno.test("watchWorker() bounds the folders it watches, and explains what to do", async () => {
  await using there = await setup(["."], (root) => {
    for (let i = 0; i < 2_100; i++) {
      Deno.mkdirSync(`${root}/worker/many/f${i}`, { recursive: true });
    }
  });

  await until(() => there.failures.length > 0);
  await there.write("main.py");
  await reported(there);

  assert.deepEqual(there.failures.splice(0), [
    "it has more than 2000 folders or 20000 files, and those beyond are left out; " +
    "name those that matter under watch",
  ]);
});

Deno.test("watchWorker() watches nothing for an empty list", async () => {
  await using there = await setup([]);
  await using other = await setup();

  await there.write("main.py");
  await other.write("main.py");
  await reported(other);

  assert.equal(there.clock.waiting, 0);
});

Deno.test("watchWorker() reports nothing after it was disposed of", async () => {
  await using there = await setup();
  await there.write("main.py");
  await until(() => there.clock.waiting > 0);

  there.watching[Symbol.dispose]();
  there.clock.tick(1_000);

  assert.deepEqual(there.changes, []);
});

Deno.test("watchWorker() waits for a directory that does not exist yet", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const directory = `${root}/deep/w`;
  const clock = new FakeClock();
  const changes: WorkerChange[] = [];
  const onChange = (change: WorkerChange): void => void changes.push(change);
  using watching = watchWorker({
    directory,
    watch: ["."],
    clock,
    onChange,
    onFailure: assert.fail,
  });

  await Deno.mkdir(directory, { recursive: true });
  await Deno.writeTextFile(`${directory}/main.py`, "1");
  clock.tick(500);
  const { paths } = await reported({ clock, changes });

  assert.ok(watching);
  assert.deepEqual(paths, ["main.py"]);
  await Deno.remove(root, { recursive: true });
});

function setupEditWatch() {
  const open = new Set<WorkerWatchOptions>();
  const opened: string[] = [];
  const warned: unknown[] = [];
  const quiet = (): void => {};
  const watch = new EditWatch(
    {
      clock: new FakeClock(),
      log: { debug: quiet, info: quiet, error: quiet, warn: (_text, it) => void warned.push(it) },
      watch: (options) => {
        open.add(options);
        opened.push(`${options.directory} ${options.watch.join(" ")}`);
        return { [Symbol.dispose]: () => void open.delete(options) };
      },
    },
    "w",
    quiet,
  );
  return { watch, open, opened, warned };
}

Deno.test("EditWatch watches the whole directory until its manifest is known", () => {
  const { watch, open, opened } = setupEditWatch();

  watch.watchDirectory("/a", true);
  watch.watchPaths("/a", ["src"], true);
  watch.watchDirectory("/a", true);

  assert.deepEqual(opened, ["/a .", "/a src engine.worker.yaml"]);
  assert.equal(open.size, 1);
});

Deno.test("EditWatch opens another watch only for other paths or another directory", () => {
  const { watch, opened } = setupEditWatch();
  watch.watchPaths("/a", ["."], true);

  watch.watchPaths("/a", ["."], true);
  watch.watchPaths("/a", [], true);
  watch.watchDirectory("/b", true);

  assert.deepEqual(opened, ["/a .", "/a ", "/b ."]);
});

Deno.test("EditWatch passes on whether the worker is contained", () => {
  const { watch, open } = setupEditWatch();
  const isContained = () => [...open].map(({ isContained }) => isContained);

  watch.watchDirectory("/a", true);
  assert.deepEqual(isContained(), [true]);
  watch.watchPaths("/a", ["."], false);
  assert.deepEqual(isContained(), [false]);
});

Deno.test("EditWatch closes when disposed of, and logs when edits may be missed", () => {
  const { watch, open, warned } = setupEditWatch();
  watch.watchDirectory("/a", true);

  [...open][0]!.onFailure("too many");
  watch[Symbol.dispose]();

  assert.deepEqual(warned, [{ worker: "w", reason: "too many" }]);
  assert.equal(open.size, 0);
});

Deno.test("EditWatch watches nothing after it was disposed of", () => {
  const { watch, open } = setupEditWatch();
  watch.watchDirectory("/a", true);

  watch[Symbol.dispose]();
  watch.watchPaths("/a", ["src"], true);
  watch.watchDirectory("/b", true);

  assert.equal(open.size, 0);
});
