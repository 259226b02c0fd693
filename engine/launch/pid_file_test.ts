import assert from "node:assert/strict";
import { PidFiles } from "./pid_file.ts";

/** A directory for pid files and a program that sleeps in a group of its own. */
async function setup() {
  const directory = await Deno.makeTempDir();
  const child = new Deno.Command("sleep", { args: ["1000"], detached: true }).spawn();
  const end = async (): Promise<void> => {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended already, as most of these tests want.
    }
    await child.status;
    await Deno.remove(directory, { recursive: true });
  };
  const run = `${directory}/run`;
  return { files: new PidFiles(run), run, child, [Symbol.asyncDispose]: end };
}

Deno.test("PidFiles.endLeftover() ends the program in the file", async () => {
  await using there = await setup();
  const { files, child } = there;
  await files.write("w", child.pid, "launch-1");

  assert.equal(await files.endLeftover("w", 5_000), child.pid);

  assert.equal((await child.status).signal, "SIGTERM");
  assert.equal(await files.endLeftover("w", 5_000), undefined);
});

Deno.test({
  name: "PidFiles.endLeftover() ends what the program had started, although it is gone itself",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await using there = await setup();
    const { files, child } = there;
    const launchId = crypto.randomUUID();
    const env = { ENGINE_LAUNCH_ID: launchId };
    const left = new Deno.Command("sleep", { args: ["1000"], detached: true, env }).spawn();
    await files.write("w", child.pid, launchId);
    child.kill("SIGKILL");
    await child.status;

    assert.equal(await files.endLeftover("w", 5_000), undefined);

    assert.equal((await left.status).signal, "SIGTERM");
  },
});

Deno.test("PidFiles.endLeftover() never touches another process with the same id", async () => {
  await using there = await setup();
  const { files, run, child } = there;
  await files.write("w", child.pid, null);
  const record = JSON.parse(await Deno.readTextFile(`${run}/w.json`));
  await Deno.writeTextFile(`${run}/w.json`, JSON.stringify({ ...record, started: "before" }));

  assert.equal(await files.endLeftover("w", 5_000), undefined);

  assert.doesNotThrow(() => Deno.kill(child.pid, 0));
  assert.deepEqual([...Deno.readDirSync(run)], []);
});

for (const text of ["", "{", "null", '{"pid":1,"started":"x"}', '{"pid":-5,"started":"x"}', "[]"]) {
  Deno.test(`PidFiles.endLeftover() makes nothing of the file ${JSON.stringify(text)}`, async () => {
    await using there = await setup();
    await Deno.mkdir(there.run);
    await Deno.writeTextFile(`${there.run}/w.json`, text);

    assert.equal(await there.files.endLeftover("w", 5_000), undefined);
  });
}

Deno.test("PidFiles.remove() leaves the file of a later program", async () => {
  await using there = await setup();
  const { files, run, child } = there;
  await files.write("w", child.pid, null);

  await files.remove("w", child.pid + 1);

  assert.equal([...Deno.readDirSync(run)].length, 1);
});
