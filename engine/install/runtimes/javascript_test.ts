import assert from "node:assert/strict";
import { findProgram } from "../../process/programs.ts";
import { javascript, pathWithDeno } from "./javascript.ts";

Deno.test("pathWithDeno() does not change a PATH with a deno", async () => {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/deno`, "", { mode: 0o755 });

  assert.equal(await pathWithDeno(directory, "/nowhere", "/x/deno"), directory);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("pathWithDeno() appends the engine's own Deno", async () => {
  const directory = await Deno.makeTempDir();

  const path = await pathWithDeno("/nowhere", directory, "/x/deno-1");
  const again = await pathWithDeno("/nowhere", directory, "/x/deno-2");

  assert.equal(path, `/nowhere:${directory}/bin`);
  assert.equal(again, path);
  assert.equal(await Deno.readLink(`${directory}/bin/deno`), "/x/deno-2");
  assert.equal([...Deno.readDirSync(`${directory}/bin`)].length, 1);
  assert.equal(
    await findProgram("deno", await pathWithDeno("", directory)),
    `${directory}/bin/deno`,
  );
  await Deno.remove(directory, { recursive: true });
});

Deno.test("pathWithDeno() adds nothing for a compiled engine", async () => {
  assert.equal(await pathWithDeno("/nowhere", "/nowhere", null), "/nowhere");
});

/** A worker's directory, and the commands of its installation that run in it with a shell. */
async function setup(install: string | null) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const directory = `${root}/w`;
  const sdk = `${root}/.engine/sdk/typescript`;
  for (const path of [directory, sdk]) await Deno.mkdir(path, { recursive: true });
  await Deno.writeTextFile(`${sdk}/package.json`, '{"name":"engine-sdk"}');
  const PATH = `${root}/bin`;
  await Deno.mkdir(PATH);
  await Deno.writeTextFile(`${PATH}/node`, "#!/bin/sh\n", { mode: 0o755 });
  const plan = await javascript.toolchains.npm.plan({
    name: "w",
    directory,
    env: { PATH },
    entry: "main.js",
    install,
    dataDirectory: `${root}/.engine`,
    isContained: false,
    packageFolder: `${root}/packages`,
    cacheFolder: `${root}/cache`,
  });
  const run = async () => {
    for (const command of plan.commands) {
      const { success } = await new Deno.Command("/bin/sh", {
        args: ["-c", command],
        cwd: directory,
        stderr: "null",
      }).output();
      assert.ok(success, command);
    }
  };
  const remove = () => Deno.remove(root, { recursive: true });
  const place = `${directory}/node_modules/engine-sdk`;
  return { root, sdk, place, plan, run, [Symbol.asyncDispose]: remove };
}

Deno.test("a worker on npm without packages gets the SDK as a link", async () => {
  await using there = await setup(null);
  assert.equal(await there.plan.isComplete(), false);

  await there.run();
  await there.run(); // Once more changes nothing.

  assert.equal(await Deno.readLink(there.place), there.sdk);
  assert.equal(await there.plan.isComplete(), true);
});

Deno.test("a link to the SDK of another project, or to nothing, is replaced", async () => {
  await using there = await setup("true");
  await Deno.mkdir(`${there.root}/w/node_modules`);
  for (const target of ["/nowhere/.engine/sdk/typescript", "/nowhere"]) {
    await Deno.remove(there.place).catch(() => {}); // There is none yet.
    await Deno.symlink(target, there.place);

    await there.run();

    assert.equal(await Deno.readLink(there.place), there.sdk);
  }
});

Deno.test("an engine-sdk that the worker installs itself stays", async () => {
  await using there = await setup(
    "mkdir -p node_modules/engine-sdk && echo own > node_modules/engine-sdk/package.json",
  );

  await there.run();

  assert.equal(await Deno.readTextFile(`${there.place}/package.json`), "own\n");
  assert.equal(await there.plan.isComplete(), true);
});

Deno.test("a directory that takes no link does not fail the installation", async () => {
  await using there = await setup(null);
  await Deno.writeTextFile(`${there.root}/w/node_modules`, "a file");

  await there.run();

  assert.equal(await there.plan.isComplete(), false);
});
