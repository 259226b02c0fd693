/**
 * The key of the command line: who gets it, who does not, and what becomes of its file.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { isProcessDead, keyFolder, openControlKey, readControlKey } from "./control_key.ts";

const URL_HERE = "ws://127.0.0.1:49134";

/** A folder for keys that is not there yet, and a log. */
async function setup() {
  const root = await Deno.makeTempDir({ prefix: "engine-key-" });
  const lines: LogLine[] = [];
  return {
    root,
    folder: `${root}/state/engine`,
    lines,
    log: recordingLog(lines),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

/** Writes a file as an engine would have. */
async function leave(folder: string, port: number, record: object | string): Promise<string> {
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  const path = `${folder}/${port}.json`;
  const text = typeof record === "string" ? record : JSON.stringify(record);
  await Deno.writeTextFile(path, text);
  return path;
}

/** The id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), { args: ["--version"], stdout: "null" }).spawn();
  await child.status;
  return child.pid;
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.lstat(path).then(() => true, () => false);
}

Deno.test("a key is read by the command line, matches, and is removed with its engine", async () => {
  await using it = await setup();
  const key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

  const read = await readControlKey(URL_HERE, it.folder);

  assert.match(read!, /^[0-9a-f]{64}$/);
  assert.equal(key.problem, null);
  assert.equal(key.path, `${it.folder}/49134.json`);
  assert.equal(key.matches(read!), true);
  assert.deepEqual(it.lines, []);
  await key[Symbol.asyncDispose]();
  assert.equal(await readControlKey(URL_HERE, it.folder), undefined);
  assert.deepEqual([...Deno.readDirSync(it.folder)], []);
});

Deno.test("anything but the key does not match", async () => {
  await using it = await setup();
  await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });
  const right = (await readControlKey(URL_HERE, it.folder))!;

  const wrong = [null, "", "0", right.slice(1), `${right}0`, `${right}, ${right}`, "0".repeat(64)];

  for (const header of [...wrong, right.toUpperCase().replace(/[^A-F]/g, "A")]) {
    assert.equal(key.matches(header), false, String(header));
  }
});

Deno.test({
  name: "the file of a key and its folder are closed to other users, whatever they were",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using it = await setup();
    await Deno.mkdir(it.folder, { recursive: true, mode: 0o755 });
    await Deno.chmod(it.folder, 0o777);
    await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

    assert.equal((await Deno.stat(it.folder)).mode! & 0o777, 0o700);
    assert.equal((await Deno.stat(key.path)).mode! & 0o777, 0o600);
  },
});

for (
  const [url, gets] of [
    ["ws://localhost:49134", true],
    ["ws://127.0.0.1:49134/?token=x", true],
    ["ws://127.8.8.8:49134", true],
    ["ws://[::1]:49134", true],
    ["ws://10.1.2.3:49134", true],
    ["ws://10.1.2.4:49134", false],
    ["ws://example.org:49134", false],
    ["ws://127.0.0.1.example.org:49134", false],
    ["ws://localhost.example.org:49134", false],
    ["wss://[2001:db8::1]:49134", false],
    ["ws://127.0.0.1:49135", false],
    ["ws://127.0.0.1", false],
    ["not an address", false],
  ] as const
) {
  Deno.test(`${url} ${gets ? "gets" : "never gets"} the key of an engine on 10.1.2.3:49134`, async () => {
    await using it = await setup();
    await using _key = await openControlKey("ws://10.1.2.3:49134", it.log, { folder: it.folder });

    assert.equal(await readControlKey(url, it.folder) !== undefined, gets);
  });
}

Deno.test("an engine on a port that was used before has another key", async () => {
  await using it = await setup();
  const first = await openControlKey(URL_HERE, it.log, { folder: it.folder }); // Killed: never disposed of.
  const old = (await readControlKey(URL_HERE, it.folder))!;
  await using second = await openControlKey(URL_HERE, it.log, { folder: it.folder });

  assert.equal(second.matches(old), false);
  assert.equal(second.matches((await readControlKey(URL_HERE, it.folder))!), true);

  await first[Symbol.asyncDispose](); // It ends late: the file is not its own any more.
  assert.equal(second.matches((await readControlKey(URL_HERE, it.folder))!), true);
});

Deno.test("files of dead engines are removed, those of others are left", async () => {
  await using it = await setup();
  const dead = { url: "ws://127.0.0.1:1", pid: await deadPid(), key: "a".repeat(64) };
  const machine = Deno.hostname();
  const stale = await leave(it.folder, 1, { ...dead, machine });
  const elsewhere = await leave(it.folder, 2, { ...dead, machine: "another" });
  const alive = await leave(it.folder, 3, { ...dead, machine, pid: Deno.pid });
  const foreign = await leave(it.folder, 4, "not JSON");

  await using _key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

  assert.equal(await isThere(stale), false);
  for (const path of [elsewhere, alive, foreign]) assert.equal(await isThere(path), true, path);
});

for (
  const [what, record] of [
    ["text", "hello"],
    ["nothing", ""],
    ["no object", "null"],
    ["a short key", { url: URL_HERE, pid: 1, machine: "m", key: "abc" }],
    ["no address", { url: "here", pid: 1, machine: "m", key: "a".repeat(64) }],
    ["no pid", { url: URL_HERE, pid: -1, machine: "m", key: "a".repeat(64) }],
  ] as const
) {
  Deno.test(`a file with ${what} is no key, and is replaced`, async () => {
    await using it = await setup();
    await leave(it.folder, 49134, record);

    assert.equal(await readControlKey(URL_HERE, it.folder), undefined);
    await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });
    assert.equal(key.matches((await readControlKey(URL_HERE, it.folder))!), true);
  });
}

Deno.test("where nothing can be written there is no key, a warning, and the reason", async () => {
  await using it = await setup();
  await Deno.writeTextFile(`${it.root}/state`, "a file, so no folder can be made below it");
  await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

  assert.match(key.problem!, /state\/engine\/49134\.json cannot be written \(.+\)$/);
  assert.equal(it.lines.length, 1);
  assert.equal(it.lines[0]!.level, "warn");
  assert.equal(it.lines[0]!.fields["reason"], key.problem);
  assert.equal(await readControlKey(URL_HERE, it.folder), undefined);
  assert.equal(key.matches(""), false);
});

Deno.test({
  name: "a folder that is a link is not trusted with a key",
  ignore: Deno.build.os === "windows",
  async fn() {
    await using it = await setup();
    await Deno.mkdir(`${it.root}/state`);
    await Deno.symlink(it.root, it.folder);
    await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

    assert.match(key.problem!, /is not a directory/);
  },
});

Deno.test({
  name: "a folder of another user is not trusted with a key",
  ignore: Deno.build.os === "windows" || Deno.uid() !== 0,
  async fn() {
    await using it = await setup();
    await Deno.mkdir(it.folder, { recursive: true });
    await Deno.chown(it.folder, 12_345, 12_345);
    await using key = await openControlKey(URL_HERE, it.log, { folder: it.folder });

    assert.match(key.problem!, /belongs to another user/);
    assert.deepEqual([...Deno.readDirSync(it.folder)], []);
  },
});

for (
  const [platform, env, folder] of [
    ["linux", { XDG_STATE_HOME: "/s", HOME: "/home/u" }, "/s/engine"],
    ["linux", { XDG_STATE_HOME: "relative", HOME: "/home/u" }, "/home/u/.local/state/engine"],
    ["linux", { HOME: "/home/u" }, "/home/u/.local/state/engine"],
    ["linux", {}, "/tmp/engine-1000/engine"],
    ["linux", { HOME: "relative", TMPDIR: "/t/" }, "/t/engine-1000/engine"],
    ["darwin", { HOME: "/Users/u" }, "/Users/u/.local/state/engine"],
    ["darwin", { TMPDIR: "/var/folders/x/T/" }, "/var/folders/x/T/engine-1000/engine"],
    [
      "windows",
      { LOCALAPPDATA: "C:\\Users\\u\\AppData\\Local", HOME: "/c/u" },
      "C:/Users/u/AppData/Local/engine",
    ],
    ["windows", { TEMP: "D:\\T" }, "D:/T/engine"],
    ["windows", {}, "C:/Windows/Temp/engine"],
  ] as [string, Record<string, string>, string][]
) {
  Deno.test(`on ${platform} with ${JSON.stringify(env)} keys lie in ${folder}`, () => {
    assert.equal(keyFolder({ platform, env: (name) => env[name], uid: 1000 }), folder);
  });
}

Deno.test("isProcessDead() distinguishes a process that has ended from a running one", async () => {
  const child = new Deno.Command("sleep", { args: ["600"] }).spawn();
  assert.equal(isProcessDead(child.pid), false);

  child.kill("SIGKILL");
  await child.status;

  assert.equal(isProcessDead(child.pid), true);
});
