/**
 * Files of a worker, with real pipes, links and deep folders.
 *
 * @module
 */
import assert from "node:assert/strict";
import { readWorkerText, removeOthers, removeTree, WorkerFile } from "./worker_files.ts";

async function setup() {
  const base = await Deno.makeTempDir();
  const directory = `${base}/worker`;
  await Deno.mkdir(directory);
  await Deno.writeTextFile(`${base}/secret`, "password");
  const read = (name: string, max = 100) => readWorkerText(directory, name, max);
  const remove = () => Deno.remove(base, { recursive: true });
  return { base, directory, read, [Symbol.asyncDispose]: remove };
}

Deno.test("readWorkerText() reads a file in the directory, also through a link", async () => {
  await using it = await setup();
  await Deno.mkdir(`${it.directory}/sub`);
  await Deno.writeTextFile(`${it.directory}/sub/a.txt`, "héllo");
  await Deno.symlink("sub/a.txt", `${it.directory}/b.txt`);
  await Deno.symlink(it.directory, `${it.base}/alias`);

  assert.equal(it.read("sub/a.txt"), "héllo");
  assert.equal(it.read("b.txt"), "héllo");
  assert.equal(readWorkerText(`${it.base}/alias`, "b.txt", 100), "héllo");
});

Deno.test("readWorkerText() reads long texts whole", async () => {
  await using it = await setup();
  const text = "é".repeat(300_001);
  await Deno.writeTextFile(`${it.directory}/long`, text);

  assert.ok(it.read("long", 1_000_000) === text);
});

Deno.test("readWorkerText() follows no link out of the directory", async () => {
  await using it = await setup();
  const leadsOut = { message: "a link that leads out of the worker's directory" };
  await Deno.symlink("../secret", `${it.directory}/relative`);
  await Deno.symlink(`${it.base}/secret`, `${it.directory}/absolute`);
  await Deno.symlink(it.base, `${it.directory}/folder`);
  await Deno.mkdir(`${it.base}/worker-2`);
  await Deno.writeTextFile(`${it.base}/worker-2/a`, "another's");
  await Deno.symlink(`${it.base}/worker-2`, `${it.directory}/neighbour`);

  assert.throws(() => it.read("relative"), leadsOut);
  assert.throws(() => it.read("absolute"), leadsOut);
  assert.throws(() => it.read("folder/secret"), leadsOut);
  assert.throws(() => it.read("neighbour/a"), leadsOut);
  assert.throws(() => it.read("../secret"), leadsOut);
});

Deno.test("readWorkerText() neither waits for a pipe nor reads a device or a folder", async () => {
  await using it = await setup();
  await new Deno.Command("mkfifo", { args: [`${it.directory}/pipe`] }).output();
  await Deno.symlink("/dev/zero", `${it.directory}/zero`);
  await Deno.mkdir(`${it.directory}/folder`);

  assert.throws(() => it.read("pipe"), { message: "no ordinary file" });
  assert.throws(() => it.read("zero"), /leads out/);
  assert.throws(() => readWorkerText("/dev", "zero", 100), { message: "no ordinary file" });
  assert.throws(() => it.read("folder"), { message: "no ordinary file" });
});

Deno.test("readWorkerText() refuses a file that is too large", async () => {
  await using it = await setup();
  await Deno.writeTextFile(`${it.directory}/huge`, "");
  await Deno.truncate(`${it.directory}/huge`, 10 * 1024 ** 4);
  await Deno.writeTextFile(`${it.directory}/fits`, "x".repeat(100));

  assert.throws(() => it.read("huge"), {
    message: `${10 * 1024 ** 4} bytes, and at most 100 are read`,
  });
  assert.equal(it.read("fits").length, 100);
});

Deno.test("readWorkerText() reports a missing file", async () => {
  await using it = await setup();
  await Deno.symlink("loop", `${it.directory}/loop`);
  await Deno.symlink("nowhere", `${it.directory}/dead`);

  assert.throws(() => it.read("missing"), Deno.errors.NotFound);
  assert.throws(() => it.read("dead"), Deno.errors.NotFound);
  assert.throws(() => readWorkerText("/nowhere/at/all", "a", 100), Deno.errors.NotFound);
  assert.throws(() => it.read("loop"));
});

Deno.test("WorkerFile reads a growing file up to its size when opened", async () => {
  await using it = await setup();
  await Deno.writeTextFile(`${it.directory}/log`, "one");
  using file = WorkerFile.open(it.directory, "log");
  await Deno.writeTextFile(`${it.directory}/log`, "two", { append: true });

  const text = [...file.pieces()].map((piece) => new TextDecoder().decode(piece)).join("");

  assert.equal(text, "one");
});

Deno.test("WorkerFile leaves no descriptor open", async () => {
  await using it = await setup();
  const count = async () => (await Array.fromAsync(Deno.readDir("/proc/self/fd"))).length;
  await new Deno.Command("mkfifo", { args: [`${it.directory}/pipe`] }).output();
  await Deno.symlink(`${it.base}/secret`, `${it.directory}/out`);
  await Deno.writeTextFile(`${it.directory}/fine`, "x");
  const before = await count();

  for (let i = 0; i < 50; i++) {
    for (const name of ["pipe", "out", "missing"]) assert.throws(() => it.read(name));
    it.read("fine");
  }

  assert.ok(await count() < before + 20);
});

function isThere(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => true, () => false);
}

Deno.test("removeTree() removes a tree without following links", async () => {
  const base = await Deno.makeTempDir();
  await Deno.mkdir(`${base}/kept/sub`, { recursive: true });
  await Deno.mkdir(`${base}/-rf ' $x/sub`, { recursive: true });
  await Deno.symlink(`${base}/kept`, `${base}/-rf ' $x/sub/link`);
  await Deno.symlink(`${base}/kept`, `${base}/link`);

  await removeTree(`${base}/-rf ' $x`);
  await removeTree(`${base}/link`);
  await removeTree(`${base}/missing`);

  assert.ok(await isThere(`${base}/kept/sub`));
  assert.deepEqual((await Array.fromAsync(Deno.readDir(base))).map(({ name }) => name), ["kept"]);
  await Deno.remove(base, { recursive: true });
});

Deno.test("removeOthers() removes everything except the named entries", async () => {
  const base = await Deno.makeTempDir();
  await Promise.all(
    Array.from({ length: 450 }, (_, i) => Deno.mkdir(`${base}/f${i}/g`, { recursive: true })),
  );
  await Deno.writeTextFile(`${base}/file`, "");

  await removeOthers(base, ["f7", "f449", "missing"]);
  await removeOthers(`${base}/nowhere`, []);

  const left = (await Array.fromAsync(Deno.readDir(base))).map(({ name }) => name).sort();
  assert.deepEqual(left, ["f449", "f7"]);
  await removeTree(base);
});

Deno.test("removeTree() removes very deep folders", async () => {
  const base = await Deno.makeTempDir();
  // Its path is longer than a system call takes.
  const script = `const depth = 4_000;
    Deno.chdir(${JSON.stringify(base)});
    for (let i = 0; i < depth; i++) { Deno.mkdirSync("a"); Deno.chdir("a"); }`;
  const made = await new Deno.Command(Deno.execPath(), { args: ["eval", script] }).output();
  assert.ok(made.success);

  await removeTree(`${base}/a`);

  assert.equal(await isThere(`${base}/a`), false);
  await Deno.remove(base);
});
