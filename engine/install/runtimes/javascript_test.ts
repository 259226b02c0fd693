import assert from "node:assert/strict";
import { findProgram } from "../../process/programs.ts";
import { pathWithDeno } from "./javascript.ts";

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
