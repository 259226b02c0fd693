import assert from "node:assert/strict";
import { DEPENDENCY_FILE_BYTES_MAX, DEPENDENCY_FILES_MAX } from "../supervisor/limits.ts";
import { dependencyHash, isDependencyFile } from "./dependency_hash.ts";

Deno.test("dependencyHash() follows the files that say what to install, and what else matters", async () => {
  const directory = await Deno.makeTempDir();
  const write = (name: string, text: string) => Deno.writeTextFile(`${directory}/${name}`, text);
  await write("engine.worker.yaml", "name: w");
  const first = await dependencyHash(directory, ["3.12"]);

  await write("main.py", "1");
  assert.equal(await dependencyHash(directory, ["3.12"]), first);
  assert.notEqual(await dependencyHash(directory, ["3.13"]), first);

  await write("requirements.txt", "");
  const listed = await dependencyHash(directory, ["3.12"]);
  assert.notEqual(listed, first);
  await write("requirements.txt", "requests");
  assert.notEqual(await dependencyHash(directory, ["3.12"]), listed);
  assert.match(listed, /^[0-9a-f]{16}$/);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() does not wait for what is no file, nor read what has no end", async () => {
  const directory = await Deno.makeTempDir();
  const before = await dependencyHash(directory, []);
  await new Deno.Command("mkfifo", { args: [`${directory}/requirements.txt`] }).output();
  await Deno.symlink("/dev/zero", `${directory}/package.json`);
  await Deno.symlink("/nowhere", `${directory}/uv.lock`);
  await Deno.mkdir(`${directory}/deno.json`);

  assert.notEqual(await dependencyHash(directory, []), before);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() takes a file that is too large by its size and time", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/package-lock.json`;
  await Deno.writeTextFile(path, "");
  await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX + 1);
  const first = await dependencyHash(directory, []);
  assert.equal(await dependencyHash(directory, []), first);

  await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX + 2);

  assert.notEqual(await dependencyHash(directory, []), first);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() takes what lies elsewhere by its size and time, and reads none of it", async () => {
  const directory = await Deno.makeTempDir();
  const other = await Deno.makeTempFile();
  await Deno.symlink(other, `${directory}/requirements.txt`);
  const when = new Date(1_700_000_000_000);
  const hash = async (text: string, time: Date): Promise<string> => {
    await Deno.writeTextFile(other, text);
    await Deno.utime(other, time, time);
    return await dependencyHash(directory, []);
  };

  const first = await hash("secret 1", when);

  assert.equal(await hash("secret 2", when), first);
  assert.notEqual(await hash("secret 12", when), first);
  assert.notEqual(await hash("secret 2", new Date()), first);
  await Deno.remove(directory, { recursive: true });
  await Deno.remove(other);
});

Deno.test("dependencyHash() reads so much in all and so many files", async () => {
  const directory = await Deno.makeTempDir();
  for (let i = 0; i < 40; i++) {
    const path = `${directory}/requirements-${i}.txt`;
    await Deno.writeTextFile(path, "");
    await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX / 2);
  }
  const began = performance.now();
  const first = await dependencyHash(directory, []);
  assert.ok(performance.now() - began < 10_000, "it does not read them all");
  await Deno.remove(`${directory}/requirements-9.txt`);
  assert.notEqual(await dependencyHash(directory, []), first);

  for (let i = 0; i < DEPENDENCY_FILES_MAX; i++) {
    await Deno.writeTextFile(`${directory}/requirements-${i}.txt`, "");
  }
  await Deno.writeTextFile(`${directory}/requirements-z.txt`, "one");
  const many = await dependencyHash(directory, []);
  await Deno.writeTextFile(`${directory}/requirements-z.txt`, "another");
  assert.equal(await dependencyHash(directory, []), many);
  await Deno.remove(`${directory}/requirements-z.txt`);
  assert.notEqual(await dependencyHash(directory, []), many);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("isDependencyFile() knows manifests, lists and locks", () => {
  for (
    const name of ["engine.worker.yaml", "requirements.txt", "requirements-dev.txt", "uv.lock"]
  ) assert.ok(isDependencyFile(name), name);
  for (const name of ["main.py", "requirements.md", "my.lock"]) {
    assert.ok(!isDependencyFile(name), name);
  }
});
