import assert from "node:assert/strict";
import { makePrivate } from "./private_files.ts";

Deno.test({
  name: "makePrivate() takes the rights of others from the data directory, its logs and its files",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const root = await Deno.makeTempDir();
    const directory = `${root}/.engine`;
    try {
      for (const folder of ["logs/old", "sdk", "telemetry"]) {
        await Deno.mkdir(`${directory}/${folder}`, { recursive: true, mode: 0o755 });
      }
      const files = ["state.sqlite", "logs/a.log", "logs/old/b.log", "telemetry/x"];
      for (const file of [...files, "sdk/run"]) {
        await Deno.writeTextFile(`${directory}/${file}`, "", { mode: 0o755 });
      }

      makePrivate(directory);

      const modeOf = (name: string): number => Deno.statSync(`${directory}/${name}`).mode! & 0o777;
      assert.deepEqual(["", "logs", "logs/old", "telemetry"].map(modeOf), Array(4).fill(0o700));
      assert.deepEqual(files.map(modeOf), Array(4).fill(0o600));
      assert.equal(modeOf("sdk/run"), 0o755, "programs stay programs");
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

Deno.test("makePrivate() makes a data directory that is not there", async () => {
  const root = await Deno.makeTempDir();
  makePrivate(`${root}/a/.engine`);
  assert.ok(Deno.statSync(`${root}/a/.engine`).isDirectory);
  await Deno.remove(root, { recursive: true });
});
