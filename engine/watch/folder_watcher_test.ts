import assert from "node:assert/strict";
import { FolderWatcher, type Watched } from "./folder_watcher.ts";
import { runChunked } from "./source_scan.ts";
import { until } from "../../tests/fakes/until.ts";

async function setup(watch?: typeof Deno.watchFs) {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  const seen: string[] = [];
  const onEvent = ({ paths }: Deno.FsEvent): void => {
    seen.push(...paths.map((path) => path.slice(directory.length + 1)));
  };
  const platform = Deno.build.os;
  const notices = new FolderWatcher({ onEvent, platform, ...watch ? { watch } : {} });
  /** The root and folders in it; text after a colon is the identity. */
  const folders = (...names: string[]): Watched => ({
    root: `${directory}/root`,
    folders: ["", ...names].map((text) => {
      const [name, identity = ""] = text.split(":");
      const path = name === "" ? `${directory}/root` : `${directory}/root/${name}`;
      Deno.mkdirSync(path, { recursive: true });
      return { path, name, identity };
    }),
  });
  const run = (watched: Watched) => runChunked(notices.watch(watched), () => true);
  const write = (path: string) => Deno.writeTextFileSync(`${directory}/${path}`, "1");
  const end = async (): Promise<void> => {
    await runChunked(notices.close(), () => true);
    await Deno.remove(directory, { recursive: true });
  };
  return { directory, notices, seen, folders, run, write, [Symbol.asyncDispose]: end };
}

Deno.test("FolderWatcher reports events in every listed folder, also outside the root", async () => {
  await using there = await setup();
  const { directory, seen } = there;
  Deno.mkdirSync(`${directory}/outside`);
  const { root, folders } = there.folders("a", "a/deep");
  const outside = { path: `${directory}/outside`, name: undefined, identity: "" };
  await there.run({ root, folders: [...folders, outside] });

  for (const path of ["root/x", "root/a/x", "root/a/deep/x", "outside/x"]) {
    there.write(path);
    await until(() => seen.includes(path));
  }
});

Deno.test("FolderWatcher reports events in many folders", async () => {
  await using there = await setup();
  const names = Array.from({ length: 450 }, (_, i) => `f${i}`);
  await there.run(there.folders(...names));

  for (const name of ["f0", "f199", "f200", "f449"]) {
    there.write(`root/${name}/x`);
    await until(() => there.seen.includes(`root/${name}/x`));
  }
});

Deno.test("FolderWatcher.watch() replaces the folders of the call before", async () => {
  await using there = await setup();
  await there.run(there.folders("a", "b"));
  await there.run(there.folders("b"));

  there.write("root/a/x");
  there.write("root/b/y");
  await until(() => there.seen.includes("root/b/y"));

  assert.ok(!there.seen.includes("root/a/x"));
});

Deno.test("FolderWatcher.watch() watches a folder that was deleted and created again", async () => {
  await using there = await setup();
  await there.run(there.folders("a:1"));
  for (const identity of [2, 3]) {
    Deno.removeSync(`${there.directory}/root/a`, { recursive: true });
    there.seen.length = 0;

    await there.run(there.folders(`a:${identity}`));
    there.write("root/a/x");

    await until(() => there.seen.includes("root/a/x"));
  }
});

Deno.test("FolderWatcher.watch() watches a root that was deleted and created again", async () => {
  await using there = await setup();
  await there.run(there.folders("a"));
  for (const identity of [2, 3]) {
    Deno.removeSync(`${there.directory}/root`, { recursive: true });
    const watched = there.folders(`a:${identity}`);
    there.seen.length = 0;

    await there.run(watched);
    there.write("root/x");

    await until(() => there.seen.includes("root/x"));
  }
});

Deno.test("FolderWatcher.isWatching() ignores the order of folders", async () => {
  await using there = await setup();
  const { notices, folders } = there;
  await there.run(folders("a:1", "b"));

  assert.ok(notices.isWatching(folders("b", "a:1")));
  assert.ok(!notices.isWatching(folders("a:1")));
  assert.ok(!notices.isWatching(folders("a:2", "b")));
  notices.invalidate();
  assert.ok(!notices.isWatching(folders("a:1", "b")));
});

Deno.test("FolderWatcher leaves out missing folders", async () => {
  await using there = await setup();
  const watched = there.folders("a", "gone", "b");
  Deno.removeSync(`${there.directory}/root/gone`);

  await there.run(watched);
  there.write("root/b/y");

  await until(() => there.seen.includes("root/b/y"));
  assert.equal(there.notices.failure, null);
});

Deno.test("FolderWatcher.failure explains why the system watches no more folders", async () => {
  let isFull = true;
  await using there = await setup((paths, options) => {
    if (isFull) throw new Error('OS file watch limit reached. about ["/some/where"]');
    return Deno.watchFs(paths, options);
  });

  await there.run(there.folders("a"));
  assert.equal(there.notices.failure, "OS file watch limit reached");

  isFull = false;
  await there.run(there.folders("a"));
  assert.equal(there.notices.failure, null);
});

Deno.test("FolderWatcher reports nothing after close()", async () => {
  await using there = await setup();
  await there.run(there.folders("a"));

  there.write("root/a/x");
  await runChunked(there.notices.close(), () => true);
  const before = there.seen.length;
  await new Promise((resolve) => setTimeout(resolve, 100));

  assert.equal(there.seen.length, before);
});

Deno.test("FolderWatcher reports a rescan when its listener ends by itself", async () => {
  const flags: unknown[] = [];
  const broken = {
    close: () => {},
    [Symbol.dispose]: () => {},
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("no more")) }),
  };
  const notices = new FolderWatcher({
    onEvent: ({ flag }) => void flags.push(flag),
    platform: "linux",
    watch: () => broken as unknown as Deno.FsWatcher,
  });
  const folder = { path: "/w", name: "", identity: "1" };

  await runChunked(notices.watch({ root: "/w", folders: [folder] }), () => true);
  await until(() => flags.length > 0);

  assert.deepEqual(flags, ["rescan"]);
});
