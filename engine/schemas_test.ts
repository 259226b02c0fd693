import assert from "node:assert/strict";
import { writeSchemas } from "./schemas.ts";

Deno.test("writeSchemas() writes both schemas, and touches only files that differ", async () => {
  const directory = await Deno.makeTempDir({ prefix: "engine-schemas-" });
  try {
    const path = `${directory}/schemas/config.json`;
    await writeSchemas(directory);
    const first = await Deno.stat(path);
    const { properties } = JSON.parse(await Deno.readTextFile(path));
    assert.deepEqual(Object.keys(properties), ["engine", "log", "workers"]);

    await Deno.writeTextFile(`${directory}/schemas/engine.worker.json`, "{}");
    await writeSchemas(directory);

    assert.equal((await Deno.stat(path)).ino, first.ino);
    const manifest = JSON.parse(await Deno.readTextFile(`${directory}/schemas/engine.worker.json`));
    assert.deepEqual(manifest.required, ["name", "runtime"]);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
