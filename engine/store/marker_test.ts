import assert from "node:assert/strict";
import { checkPresence, markerPath, moveAside, readMarker, writeMarker } from "./marker.ts";

Deno.test("a marker is read as it was written, and one that is unreadable fits no file", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/state.db`;
  assert.equal(readMarker(path), undefined);
  writeMarker(path, { id: "a", epoch: 3 });
  assert.deepEqual(readMarker(path), { id: "a", epoch: 3 });
  await Deno.writeTextFile(markerPath(path), "{}");
  assert.deepEqual(readMarker(path), { id: "", epoch: 0 });
  await Deno.remove(directory, { recursive: true });
});

Deno.test("moveAside() keeps a state file, its log and its marker under names of their own", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/state.db`;
  for (const end of ["", "-wal", "-shm", ".id"]) await Deno.writeTextFile(path + end, `x${end}`);

  const aside = moveAside(path);

  assert.equal(await Deno.readTextFile(`${aside}-wal`), "x-wal");
  assert.equal([...Deno.readDirSync(directory)].length, 3);
  assert.equal(checkPresence(path, false), "missing");
  await Deno.remove(directory, { recursive: true });
});
