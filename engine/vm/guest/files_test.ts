import assert from "node:assert/strict";
import { GuestFiles } from "./files.ts";

async function setup() {
  const root = await Deno.makeTempDir();
  const runDirectory = `${root}/a run`;
  const shares = [{ path: "/usr", writable: false }, { path: "/w", writable: true }];
  const files = new GuestFiles({ name: "math", network: "full", shares, runDirectory });
  await files.write();
  return {
    root,
    runDirectory,
    files,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("GuestFiles shares its two folders and what was asked for, under names of their own", async () => {
  await using at = await setup();

  assert.deepEqual(at.files.folders, [
    { tag: "host", path: `${at.runDirectory}/host`, writable: false },
    { tag: "etc", path: `${at.runDirectory}/etc`, writable: false },
    { tag: "s0", path: "/usr", writable: false },
    { tag: "s1", path: "/w", writable: true },
  ]);
  const boot = await Deno.readTextFile(`${at.runDirectory}/host/boot.sh`);
  assert.match(boot, /^read_only etc \/etc$/m);
  assert.match(boot, /^writable s1 \/w$/m);
  assert.equal(await Deno.readTextFile(`${at.runDirectory}/etc/hostname`), "math\n");
});

Deno.test("GuestFiles are for this user's eyes, though the guest's user is another one", async () => {
  await using at = await setup();

  assert.equal((await Deno.stat(at.runDirectory)).mode! & 0o777, 0o700);
});

Deno.test("GuestFiles numbers programs and forgets them", async () => {
  await using at = await setup();
  const script = { command: ["run"], directory: "/w", env: { TOKEN: "secret" } };

  const numbers = [await at.files.writeScript(script), await at.files.writeScript(script)];
  await at.files.removeScript(1);

  assert.deepEqual(numbers, [1, 2]);
  await assert.rejects(Deno.stat(`${at.runDirectory}/host/1.sh`));
  assert.match(await Deno.readTextFile(`${at.runDirectory}/host/2.sh`), / TOKEN=secret /);
});

Deno.test("GuestFiles leaves nothing, and may be removed twice", async () => {
  await using at = await setup();

  await at.files.remove();
  await at.files.remove();
  await at.files.removeScript(1);

  assert.deepEqual(await Array.fromAsync(Deno.readDir(at.root)), []);
});
