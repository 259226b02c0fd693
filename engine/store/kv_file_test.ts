import assert from "node:assert/strict";
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
      await file.kv.set(FILE_HEAD_KEY, { format: FILE_FORMAT, version: 7 });
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
      message: /cannot be opened \(.*\); see that it is a file on a local disk$/,
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
