import assert from "node:assert/strict";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { markerPath } from "./marker.ts";
import { FILE_FORMAT, FILE_HEAD_KEY, openKvFile } from "./kv_file.ts";

const openKv = Deno.openKv;

async function withDirectory(body: (directory: string) => Promise<void>): Promise<void> {
  const directory = await Deno.makeTempDir();
  try {
    await body(directory);
  } finally {
    await Deno.chmod(directory, 0o700);
    await Deno.remove(directory, { recursive: true });
  }
}

Deno.test("openKvFile() makes a file that is not there, and opens it again", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      using file = await openKvFile(path, openKv);
      assert.equal(file.version, 0);
      await file.kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT, version: 7, ...file.marker });
    }

    using file = await openKvFile(path, openKv);

    assert.equal(file.version, 7);
  }));

Deno.test("openKvFile() refuses a file that is open already, and names the process", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    using _file = await openKvFile(path, openKv);

    await assert.rejects(openKvFile(path, openKv), {
      name: "EngineError",
      code: "store_unavailable",
      message: `The state file ${path} is in use by process ${Deno.pid}; stop that engine first`,
      details: { path, pid: Deno.pid },
    });
  }));

Deno.test("openKvFile() takes over what a process left that is dead", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    await Deno.writeTextFile(`${path}.lock`, "999999999 and more\n");

    using _file = await openKvFile(path, openKv);

    assert.equal(await Deno.readTextFile(`${path}.lock`), `${Deno.pid}\n`);
  }));

Deno.test("openKvFile() leaves the lock to others when it is disposed, or could not open", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    const broken = () => Promise.reject(new Error("out of luck"));
    await assert.rejects(openKvFile(path, broken), { code: "store_unavailable" });
    (await openKvFile(path, openKv))[Symbol.dispose]();

    using _file = await openKvFile(path, openKv);
    assert.ok(true);
  }));

Deno.test("openKvFile() refuses a file that is not a database, and leaves it as it is", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    const text = "this is a letter, not a database. ".repeat(300);
    await Deno.writeTextFile(path, text);

    await assert.rejects(openKvFile(path, openKv), {
      code: "store_unavailable",
      message:
        `The state file ${path} is not a state file or is damaged; move it away or choose another one`,
      details: { path },
    });
    assert.equal(await Deno.readTextFile(path), text);
  }));

Deno.test("openKvFile() refuses a file in a directory that is not there", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/none/state.db`;

    await assert.rejects(openKvFile(path, openKv), {
      code: "store_unavailable",
      message:
        `The state file ${path} cannot be made, since its directory does not exist; make it first`,
    });
  }));

Deno.test("openKvFile() refuses a directory in place of a file", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    await Deno.mkdir(path);

    await assert.rejects(openKvFile(path, openKv), {
      code: "store_unavailable",
      message: /cannot be opened \(.*\); check that it is a file on a local disk$/,
    });
  }));

Deno.test("openKvFile() refuses a file that an engine of a later format wrote", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      using file = await openKvFile(path, openKv);
      await file.kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT + 1, version: 7 });
    }

    await assert.rejects(openKvFile(path, openKv), {
      code: "store_unavailable",
      message: /was written by a newer engine/,
    });
  }));

Deno.test("openKvFile() says so when Deno KV is not switched on", () =>
  withDirectory(async (directory) => {
    await assert.rejects(openKvFile(`${directory}/state.db`, undefined), {
      code: "store_unavailable",
      message: /needs Deno KV; start Deno with --unstable-kv$/,
    });
  }));

for (
  const text of [
    "attempt to write a readonly database",
    "Can not write to a read-only database.",
    "unable to open database file: Permission denied (os error 13)",
  ]
) {
  Deno.test(`openKvFile() says who has to be allowed to write, when told: ${text}`, () =>
    withDirectory(async (directory) => {
      const path = `${directory}/state.db`;

      await assert.rejects(openKvFile(path, () => Promise.reject(new TypeError(text))), {
        code: "store_unavailable",
        message:
          `The state file ${path} cannot be written; allow this user to write to it and its directory`,
      });
    }));
}

// The superuser may write to everything, so there is no such file for it.
const isRoot = Deno.build.os === "windows" || Deno.uid() === 0;

Deno.test({
  name: "openKvFile() refuses a file, and a directory, that cannot be written",
  ignore: isRoot,
  fn: () =>
    withDirectory(async (directory) => {
      const path = `${directory}/state.db`;
      (await openKvFile(path, openKv))[Symbol.dispose]();
      const refusal = { code: "store_unavailable", message: /cannot be written; allow this user/ };

      await Deno.chmod(path, 0o400);
      await assert.rejects(openKvFile(path, openKv), refusal);
      await Deno.chmod(path, 0o600);
      await Deno.chmod(directory, 0o500);
      await assert.rejects(openKvFile(`${directory}/other.db`, openKv), refusal);
    }),
});

/** A state file that was opened and closed, with an entry. */
async function closedFile(directory: string): Promise<string> {
  const path = `${directory}/state.db`;
  using file = await openKvFile(path, openKv);
  await file.kv.set(["entry", "a"], new Uint8Array(10));
  return path;
}

const LOSSES: readonly [string, (path: string) => Promise<void>, RegExp][] = [
  [
    "vanished",
    (path) => Deno.remove(path),
    /is missing, but this project has had state; .*restore/,
  ],
  ["was emptied", (path) => Deno.truncate(path), /is empty \(0 bytes\), but .*accept-empty-state/],
  ["was replaced", async (path) => {
    await Deno.remove(path);
    using _other = await Deno.openKv(path);
  }, /is another one than before/],
  ["vanished beside its log", async (path) => {
    await Deno.remove(path);
    await Deno.remove(markerPath(path));
    await Deno.writeTextFile(`${path}-wal`, "log");
  }, /is missing, but its write-ahead log is still there/],
];

for (const [how, lose, message] of LOSSES) {
  Deno.test(`openKvFile() refuses a state file that ${how}, until it is accepted once`, () =>
    withDirectory(async (directory) => {
      const path = await closedFile(directory);
      await lose(path);

      const refusal = { code: "store_unavailable", message, details: { path } };
      await assert.rejects(openKvFile(path, openKv), refusal);
      await assert.rejects(openKvFile(path, openKv), refusal);
      (await openKvFile(path, openKv, { acceptsEmptyState: true }))[Symbol.dispose]();

      using _file = await openKvFile(path, openKv);
      assert.ok(true);
    }));
}

Deno.test("openKvFile() refuses an older copy of the state file", () =>
  withDirectory(async (directory) => {
    const path = await closedFile(directory);
    await Deno.copyFile(path, `${directory}/copy`);
    (await openKvFile(path, openKv))[Symbol.dispose]();
    await Deno.copyFile(`${directory}/copy`, path);

    await assert.rejects(openKvFile(path, openKv), { message: /is an older copy/ });
  }));

Deno.test("openKvFile() gives a file of version 0.1.0 a marker and keeps what it has", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      using kv = await Deno.openKv(path);
      await kv.set(FILE_HEAD_KEY, { format: 1, version: 7 });
      await kv.set(["entry", "a"], new Uint8Array(3));
    }

    using file = await openKvFile(path, openKv);

    assert.equal(file.version, 7);
    assert.deepEqual((await file.kv.get(["entry", "a"])).value, new Uint8Array(3));
    assert.equal(JSON.parse(await Deno.readTextFile(markerPath(path))).id, file.marker.id);
  }));

Deno.test("openKvFile() starts after a crash at any step of the first start", () =>
  withDirectory(async (directory) => {
    const path = await closedFile(directory);
    await Deno.remove(markerPath(path)); // Before the marker.
    (await openKvFile(path, openKv))[Symbol.dispose]();
    await Deno.remove(markerPath(path));
    await Deno.truncate(path); // Before the first page.
    (await openKvFile(path, openKv))[Symbol.dispose]();
    await Deno.remove(markerPath(path));
    await Deno.remove(path);
    (await Deno.openKv(path)).close(); // Before the head.
    (await openKvFile(path, openKv))[Symbol.dispose]();
    await Deno.writeTextFile(`${markerPath(path)}.new`, "{"); // While the marker is written.

    using _file = await openKvFile(path, openKv);
    assert.ok(true);
  }));

Deno.test({
  name: "openKvFile() leaves files that only their user may read",
  ignore: Deno.build.os === "windows",
  fn: () =>
    withDirectory(async (directory) => {
      const path = await closedFile(directory);
      await Deno.chmod(path, 0o644);

      using file = await openKvFile(path, openKv);
      await file.kv.set(["x"], 1);

      for (const { name } of Deno.readDirSync(directory)) {
        assert.equal(Deno.statSync(`${directory}/${name}`).mode! & 0o777, 0o600, name);
      }
    }),
});

Deno.test("openKvFile() reports what is dropped from the end of the write-ahead log", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    {
      using file = await openKvFile(path, openKv);
      for (let i = 0; i < 5; i++) await file.kv.set(["entry", `${i}`], new Uint8Array(9_000));
      for (const end of ["", "-wal", ".id"]) {
        await Deno.copyFile(`${path}${end}`, `${directory}/cut${end}`);
        await Deno.copyFile(`${path}${end}`, `${directory}/bad${end}`);
      }
    }
    const wal = await Deno.readFile(`${directory}/cut-wal`);
    await Deno.writeFile(`${directory}/cut-wal`, wal.subarray(0, wal.length - 100));
    wal[wal.length - 20_000]! ^= 1;
    await Deno.writeFile(`${directory}/bad-wal`, wal);
    const lines: LogLine[] = [];

    for (const name of ["cut", "bad"]) {
      const log = recordingLog(lines);
      (await openKvFile(`${directory}/${name}`, openKv, { log }))[Symbol.dispose]();
    }

    assert.deepEqual(lines.map(({ level, text }) => [level, text]), [
      ["warn", "the end of the state's write-ahead log is incomplete and is dropped"],
      ["error", "the write-ahead log of the state is damaged; acknowledged writes may be lost"],
    ]);
    assert.ok((lines[0]!.fields as { dropped_bytes: number }).dropped_bytes > 0);
    assert.equal((lines[0]!.fields as { copy?: string }).copy, undefined);
    const { copy } = lines[1]!.fields as { copy: string };
    assert.ok(copy.startsWith(`${directory}/bad.`), copy);
    assert.deepEqual(await Deno.readFile(`${copy}-wal`), wal);
  }));

Deno.test("openKvFile() keeps a copy of a damaged log when it refuses what is left", () =>
  withDirectory(async (directory) => {
    const damages = [(wal: Uint8Array) => wal[100]! ^= 1, (wal: Uint8Array) => wal[9]! ^= 1];
    for (const [i, damage] of damages.entries()) {
      const path = `${directory}/${i}.db`;
      {
        using file = await openKvFile(`${directory}/${i}.first`, openKv);
        for (let key = 0; key < 5; key++) await file.kv.set(["entry", `${key}`], key);
        // Nothing was moved to the file itself yet.
        for (const end of ["", "-wal", ".id"]) {
          await Deno.copyFile(`${directory}/${i}.first${end}`, path + end);
        }
      }
      const [before, wal] = [await Deno.readFile(path), await Deno.readFile(`${path}-wal`)];
      damage(wal);
      await Deno.writeFile(`${path}-wal`, wal);

      const refused = await openKvFile(path, openKv).then(() => undefined, (error) => error);

      assert.equal(refused?.code, "store_unavailable");
      const [, copy] = /a copy of both as they were is (\S+)\)/.exec(refused.message)!;
      assert.match(refused.message, /has lost its last writes.* `engine state restore FILE`/);
      assert.deepEqual(await Deno.readFile(copy!), before);
      assert.deepEqual(await Deno.readFile(`${copy}-wal`), wal);
      assert.equal(Deno.statSync(`${copy}-wal`).mode! & 0o777, 0o600);
      const again = await openKvFile(path, openKv).then(() => undefined, (error) => error);
      assert.ok(again.message.includes(`; ${copy} was set aside before; restore a`), again.message);
    }
  }));

Deno.test("openKvFile() tells what becomes of the file while it is open", () =>
  withDirectory(async (directory) => {
    const path = `${directory}/state.db`;
    using file = await openKvFile(path, openKv);
    const before = file.lost?.();

    await Deno.rename(path, `${path}.away`);
    const away = file.lost?.();
    await Deno.copyFile(`${path}.away`, path);
    const copied = file.lost?.();
    await Deno.rename(`${path}.away`, path);
    const back = file.lost?.();

    const told = [before, away, copied, back];
    assert.deepEqual(told, [undefined, "was removed", "was replaced by another one", undefined]);
  }));
