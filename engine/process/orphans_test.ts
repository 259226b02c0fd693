import assert from "node:assert/strict";
import { endOrphans, findOrphans, PidFiles } from "./orphans.ts";
import { processStart } from "./process_group.ts";
import { until } from "../../tests/fakes/until.ts";

/** An engine that is gone. */
const GONE = { pid: 4_194_303, started: "before" };

/** A directory for pid files and a program that sleeps in a group of its own. */
async function setup() {
  const directory = await Deno.makeTempDir();
  const run = `${directory}/run`;
  const child = new Deno.Command("sleep", { args: ["1000"], detached: true }).spawn();
  const started = await processStart(child.pid);
  const end = async (): Promise<void> => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await child.status;
    await Deno.remove(directory, { recursive: true });
  };
  /** Writes the record of a gone engine about the program, changed by `more`. */
  const note = async (more: object = {}, file = `w#${child.pid}.json`): Promise<void> => {
    const record = { pid: child.pid, started, launch_id: null, engine: GONE, ...more };
    await Deno.mkdir(run, { recursive: true });
    await Deno.writeTextFile(`${run}/${file}`, JSON.stringify(record));
  };
  const left = (): string[] => [...Deno.readDirSync(run)].map(({ name }) => name);
  return { files: new PidFiles(run), run, child, note, left, [Symbol.asyncDispose]: end };
}

Deno.test("PidFiles.endLeftovers() ends the programs of an engine that is gone", async () => {
  await using there = await setup();
  const { files, child } = there;
  await there.note();

  assert.deepEqual(await files.endLeftovers("w", 5_000), [child.pid]);

  assert.equal((await child.status).signal, "SIGTERM");
  assert.deepEqual(there.left(), []);
  assert.deepEqual(await files.endLeftovers("w", 5_000), []);
});

Deno.test("PidFiles.endLeftovers() leaves programs of a living engine", async () => {
  await using there = await setup();
  const { files, child } = there;
  await files.write("w", child.pid, crypto.randomUUID());

  assert.deepEqual(await files.endLeftovers("w", 5_000), []);

  assert.doesNotThrow(() => Deno.kill(child.pid, 0));
  assert.deepEqual(there.left(), [`w#${child.pid}.json`]);
});

Deno.test({
  name: "PidFiles.endLeftovers() ends what the program had started, although it is gone itself",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using there = await setup();
    const { files, child } = there;
    const launchId = crypto.randomUUID();
    const env = { ENGINE_LAUNCH_ID: launchId };
    const orphan = new Deno.Command("sleep", { args: ["1000"], detached: true, env }).spawn();
    await there.note({ launch_id: launchId });
    child.kill("SIGKILL");
    await child.status;

    assert.deepEqual(await files.endLeftovers("w", 5_000), []);

    assert.equal((await orphan.status).signal, "SIGTERM");
  },
});

Deno.test("PidFiles.endLeftovers() never touches another process with the same id", async () => {
  await using there = await setup();
  const { files, child } = there;
  await there.note({ started: "before" });

  assert.deepEqual(await files.endLeftovers("w", 5_000), []);

  assert.doesNotThrow(() => Deno.kill(child.pid, 0));
  assert.deepEqual(there.left(), []);
});

Deno.test("PidFiles.endLeftovers() touches nothing of other names", async () => {
  await using there = await setup();
  const { files, child } = there;
  const others = ["w2#1.json", "w@2#1.json", "w.1#1.json", "v#1.json"];
  for (const other of others) await there.note({}, other);

  assert.deepEqual(await files.endLeftovers("w", 5_000), []);

  assert.doesNotThrow(() => Deno.kill(child.pid, 0));
  assert.deepEqual(there.left().sort(), others.sort());
});

const engine = JSON.stringify(GONE);
for (
  const text of [
    "",
    "{",
    "null",
    "[]",
    '{"pid":2,"started":"x"}',
    `{"pid":1,"started":"x","engine":${engine}}`,
    `{"pid":-5,"started":"x","engine":${engine}}`,
  ]
) {
  Deno.test(`PidFiles.endLeftovers() ignores the file ${JSON.stringify(text)}`, async () => {
    await using there = await setup();
    await Deno.mkdir(there.run);
    await Deno.writeTextFile(`${there.run}/w#7.json`, text);

    assert.deepEqual(await there.files.endLeftovers("w", 5_000), []);
  });
}

Deno.test("PidFiles.remove() leaves the file of another program", async () => {
  await using there = await setup();
  const { files, child } = there;
  await files.write("w", child.pid, null);

  await files.remove("w", child.pid + 1);

  assert.equal(there.left().length, 1);
  await files.remove("w", child.pid);
  assert.equal(there.left().length, 0);
});

const isLinux = Deno.build.os === "linux";

/** A program of a launch in a session of its own. */
function orphan(launchId: string, script = "exec sleep 1000") {
  const child = new Deno.Command("sh", {
    args: ["-c", script],
    detached: true,
    env: { ENGINE_LAUNCH_ID: launchId },
  }).spawn();
  const end = async (): Promise<void> => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
    await child.status;
  };
  return { pid: child.pid, status: child.status, [Symbol.asyncDispose]: end };
}

/** Whether a program ignores SIGTERM by now. */
async function ignoresTerm(pid: number): Promise<boolean> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const ignored = BigInt(`0x${/^SigIgn:\s*(\w+)$/m.exec(status)![1]}`);
  return (ignored & (1n << 14n)) !== 0n;
}

Deno.test({
  name: "findOrphans() finds processes with the launch in their environment, and their children",
  ignore: !isLinux,
  fn: async () => {
    const id = crypto.randomUUID();
    await using other = orphan(crypto.randomUUID());
    await using one = orphan(id, "setsid sleep 1000 & wait");

    await until(async () => (await findOrphans(id)).length === 2);

    const found = await findOrphans(id);
    assert.ok(found.includes(one.pid));
    assert.ok(!found.includes(other.pid));
    await endOrphans(id, 5_000);
    assert.deepEqual(await findOrphans(id), []);
  },
});

Deno.test({
  name: "endOrphans() sends SIGTERM first, and kills processes that stay",
  ignore: !isLinux,
  fn: async () => {
    const id = crypto.randomUUID();
    await using polite = orphan(id);
    await using stubborn = orphan(id, "trap '' TERM; while :; do sleep 0.1; done");
    await until(async () => (await findOrphans(id)).length >= 2);
    await until(() => ignoresTerm(stubborn.pid));

    await endOrphans(id, 300);

    assert.equal((await stubborn.status).signal, "SIGKILL");
    assert.equal((await polite.status).success, false);
    assert.deepEqual(await findOrphans(id), []);
  },
});

for (const id of [null, "", "launch-1", crypto.randomUUID().slice(1)]) {
  Deno.test(`an id such as ${JSON.stringify(id)}, which other programs may have, finds nothing`, async () => {
    await using one = orphan(id ?? "");

    assert.deepEqual(await findOrphans(id), []);
    await endOrphans(id, 5_000);

    assert.doesNotThrow(() => Deno.kill(one.pid, 0));
  });
}
