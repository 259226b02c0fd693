import assert from "node:assert/strict";
import { readConfig } from "./start_config.ts";

Deno.test("a directory without config.yaml starts with the embedded defaults", async () => {
  await using place = await folder();

  const config = await readConfig({ directory: place.path });

  assert.equal(config.path, null);
  assert.equal(config.directory, place.path);
});

Deno.test("a directory with config.yaml starts with that", async () => {
  await using place = await folder();
  await Deno.writeTextFile(`${place.path}/config.yaml`, "engine: {port: 4000}\n");

  const config = await readConfig({ directory: place.path });

  assert.equal(config.path, `${place.path}/config.yaml`);
  assert.equal(config.engine.port, 4000);
});

Deno.test("a file that is reached over a linked folder is known by its real place", async () => {
  await using place = await folder();
  await Deno.mkdir(`${place.path}/real`);
  await Deno.writeTextFile(`${place.path}/real/other.yaml`, "engine: {port: 4001}\n");
  await Deno.symlink(`${place.path}/real`, `${place.path}/link`);

  const config = await readConfig({ configPath: `${place.path}/link/other.yaml` });

  assert.equal(config.path, `${place.path}/real/other.yaml`);
});

Deno.test("a file that is named and missing is refused, defaults do not step in", async () => {
  await using place = await folder();

  await assert.rejects(readConfig({ configPath: `${place.path}/none.yaml` }), {
    code: "config_invalid",
  });
});

async function folder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await Deno.realPath(await Deno.makeTempDir());
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}
