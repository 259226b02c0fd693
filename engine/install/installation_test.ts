import assert from "node:assert/strict";
import { readInstallation, writeInstallation } from "./installation.ts";

async function withData(check: (data: string) => Promise<void>): Promise<void> {
  const data = await Deno.makeTempDir();
  await check(data);
  await Deno.remove(data, { recursive: true });
}

Deno.test("readInstallation() gives what was written last for a worker", () =>
  withData(async (data) => {
    await writeInstallation(data, "w", { hash: "a", folder: "a-1" });
    await writeInstallation(data, "w", { hash: "b", folder: "b-2" });
    await writeInstallation(data, "w.json", { hash: "c", folder: "c-3" });

    assert.deepEqual(await readInstallation(data, "w"), { hash: "b", folder: "b-2" });
    assert.deepEqual(await readInstallation(data, "w.json"), { hash: "c", folder: "c-3" });
    assert.equal([...Deno.readDirSync(`${data}/installed`)].length, 2);
  }));

Deno.test("readInstallation() knows nothing of what is missing or damaged", () =>
  withData(async (data) => {
    assert.equal(await readInstallation(data, "w"), undefined);
    await Deno.mkdir(`${data}/installed`);
    for (const text of ["", "{", "null", "{}", '{"hash":"a","folder":"../x"}', '{"hash":1}']) {
      await Deno.writeTextFile(`${data}/installed/w.json`, text);

      assert.equal(await readInstallation(data, "w"), undefined, text);
    }
  }));
