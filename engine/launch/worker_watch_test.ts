import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { until } from "../../tests/launcher_contract.ts";
import { watchWorker, type WorkerChange } from "./worker_watch.ts";

/** A worker's directory under watch; `settle` waits for notices and lets the quiet time pass. */
async function setup(watch: readonly string[] = ["."]) {
  const directory = await Deno.makeTempDir();
  await Deno.mkdir(`${directory}/src/deep`, { recursive: true });
  await Deno.mkdir(`${directory}/node_modules`);
  await Deno.writeTextFile(`${directory}/main.py`, "1");
  await Deno.writeTextFile(`${directory}/data.bin`, "1");
  const clock = new FakeClock();
  const changes: WorkerChange[] = [];
  const watching = watchWorker({
    directory,
    watch,
    clock,
    onChange: (change) => void changes.push(change),
    onFailure: (reason) => assert.fail(reason),
  });
  const write = (path: string) => Deno.writeTextFile(`${directory}/${path}`, crypto.randomUUID());
  const end = async (): Promise<void> => {
    watching[Symbol.dispose]();
    await Deno.remove(directory, { recursive: true });
  };
  return { directory, clock, changes, watching, write, [Symbol.asyncDispose]: end };
}

type Setup = Awaited<ReturnType<typeof setup>>;

/** Waits until something that counts was noticed, then lets the quiet time pass. */
async function told({ clock, changes }: Setup): Promise<WorkerChange> {
  await until(() => clock.waiting > 0);
  await new Promise((resolve) => setTimeout(resolve, 250)); // Notices of one edit come apart.
  clock.tick(1_000);
  return changes.at(-1)!;
}

Deno.test("watchWorker() tells edits of sources, several in short order as one", async () => {
  await using there = await setup();

  await there.write("main.py");
  await there.write("src/deep/part.ts");
  const change = await told(there);

  assert.deepEqual(change.paths, ["main.py", "src/deep/part.ts"]);
  assert.equal(change.dependencies, false);
  assert.ok(Math.abs(change.changedAtMs - Date.now()) < 60_000);
  assert.equal(there.changes.length, 1);
});

Deno.test("watchWorker() dates an edit to the millisecond, and no earlier than it was", async () => {
  await using there = await setup();
  const path = `${there.directory}/main.py`;
  for (const at of [200, 700]) {
    const second = Math.floor(Date.now() / 1_000) * 1_000;
    const written = new Date(second + 60_000 + at); // Later than the change, which is now.
    await Deno.utime(path, written, written);
    assert.equal((await told(there)).changedAtMs, written.getTime());
  }

  const old = new Date("2020-01-01T00:00:00Z");
  const before = Date.now();
  await Deno.utime(path, old, old);

  assert.ok((await told(there)).changedAtMs >= before);
});

for (
  const name of ["engine.worker.yaml", "requirements.txt", "requirements-dev.txt", "deno.json"]
) {
  Deno.test(`watchWorker() says that ${name} concerns dependencies`, async () => {
    await using there = await setup();

    await there.write(name);

    assert.equal((await told(there)).dependencies, true);
  });
}

Deno.test("watchWorker() sees an editor that writes beside and renames", async () => {
  await using there = await setup();
  const { directory } = there;

  await there.write("main.py.tmp");
  await Deno.rename(`${directory}/main.py.tmp`, `${directory}/main.py`);

  assert.deepEqual((await told(there)).paths, ["main.py"]);
});

Deno.test("watchWorker() sees a file that is removed", async () => {
  await using there = await setup();

  await Deno.remove(`${there.directory}/main.py`);

  assert.deepEqual((await told(there)).paths, ["main.py"]);
});

Deno.test("watchWorker() sees what is made in a new folder, and later edits there", async () => {
  await using there = await setup();

  await Deno.mkdir(`${there.directory}/fresh/er`, { recursive: true });
  await there.write("fresh/er/a.py");
  assert.deepEqual((await told(there)).paths, ["fresh/er/a.py"]);

  await there.write("fresh/er/b.py");
  assert.ok((await told(there)).paths.includes("fresh/er/b.py"));
});

Deno.test("watchWorker() ignores what programs and editors leave", async () => {
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

  assert.deepEqual((await told(there)).paths, ["last.py"]);
});

Deno.test("watchWorker() counts a named file whatever it is, and nothing beside it", async () => {
  await using there = await setup(["data.bin", "src", "later.conf"]);

  await there.write("main.py");
  await there.write("data.bin");
  await there.write("src/a.py");
  await there.write("later.conf");

  assert.deepEqual((await told(there)).paths, ["data.bin", "later.conf", "src/a.py"]);
});

Deno.test("watchWorker() watches nothing when nothing is listed", async () => {
  await using there = await setup([]);
  await using other = await setup();

  await there.write("main.py");
  await other.write("main.py");
  await told(other);

  assert.equal(there.clock.waiting, 0);
});

Deno.test("watchWorker() tells nothing after it was closed", async () => {
  await using there = await setup();
  await there.write("main.py");
  await until(() => there.clock.waiting > 0);

  there.watching[Symbol.dispose]();
  there.clock.tick(1_000);

  assert.deepEqual(there.changes, []);
});

Deno.test("watchWorker() bears a directory that does not exist", () => {
  const options = { directory: "/nowhere/w", watch: ["."], clock: new FakeClock() };

  using watching = watchWorker({ ...options, onChange: () => {}, onFailure: () => {} });

  assert.ok(watching);
});
