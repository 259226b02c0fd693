import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { parseConfig } from "./config.ts";
import { configDifference, watchConfig } from "./watch.ts";
import type { Config } from "../ports/config.ts";
import type { Log, LogFields } from "../ports/log.ts";
import { systemClock } from "../platform/system_clock.ts";
import { until } from "../../tests/fakes/until.ts";

/** A file with the port 1, under watch. */
async function setup() {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "engine: { port: 1 }\n");
  const clock = new FakeClock();
  const applied: Config[] = [];
  const lines: string[] = [];
  const add = (text: string, fields?: LogFields) =>
    void lines.push(`${text} ${JSON.stringify(fields)}`);
  const log: Log = { debug: add, info: add, warn: add, error: add };
  let loads = 0;
  const load = (path: string) => {
    loads++;
    return parseConfig(Deno.readTextFileSync(path), path, [], {});
  };
  const apply = keepIn(applied);
  const watch = watchConfig({ path, clock, log, load, apply });
  const write = (text: string) => Deno.writeTextFile(path, text);
  /** Waits until another text was read, or with `false` until the same text was read again. */
  const noticed = async (isOtherText = true): Promise<void> => {
    const seen = () => loads + lines.length;
    const before = seen();
    await until(() => clock.waiting > 0);
    await until(async () => {
      clock.tick(1_000);
      await watch.idle();
      return !isOtherText || seen() > before;
    });
  };
  const end = async (): Promise<void> => {
    await watch[Symbol.asyncDispose]();
    await Deno.remove(directory, { recursive: true });
  };
  return { directory, path, clock, applied, lines, write, noticed, [Symbol.asyncDispose]: end };
}

/** Puts configurations into force, as a list does. */
function keepIn(applied: Config[]): (read: () => Config | undefined) => Promise<void> {
  return (read) => {
    const config = read();
    if (config) applied.push(config);
    return Promise.resolve();
  };
}

Deno.test("watchConfig() applies an edit and logs what changed", async () => {
  await using there = await setup();

  await there.write("engine: { port: 2 }\nlog: { level: debug }\n");
  await there.noticed();

  assert.deepEqual(there.applied.map(({ engine }) => engine.port), [2]);
  assert.deepEqual(there.lines, ['config.yaml applied {"settings":"engine.port log.level"}']);
});

Deno.test("watchConfig() sees an editor that writes beside and renames", async () => {
  await using there = await setup();

  await Deno.writeTextFile(`${there.path}.new`, "engine: { port: 3 }\n");
  await Deno.rename(`${there.path}.new`, there.path);
  await there.noticed();
  await there.write("engine: { port: 4 }\n");
  await there.noticed();

  assert.deepEqual(there.applied.map(({ engine }) => engine.port), [3, 4]);
});

Deno.test("watchConfig() reports a broken file and changes nothing", async () => {
  await using there = await setup();

  await there.write("engine:\n\tport: 2\n");
  await there.noticed();

  assert.deepEqual(there.applied, []);
  assert.deepEqual(there.lines, [
    `config.yaml cannot be used; everything keeps running as it was {"path":"${there.path}","problems":1}`,
    'config.yaml {"problem":"config.yaml: expected spaces for indentation, ' +
    'received a tab (line 2)"}',
  ]);
});

Deno.test("watchConfig() applies the file that was mended", async () => {
  await using there = await setup();
  await there.write("engine: [\n");
  await there.noticed();

  await there.write("engine: { port: 5 }\n");
  await there.noticed();

  assert.deepEqual(there.applied.map(({ engine }) => engine.port), [5]);
});

Deno.test("watchConfig() warns when the file is removed and changes nothing", async () => {
  await using there = await setup();

  await Deno.remove(there.path);
  await there.noticed();

  assert.deepEqual(there.applied, []);
  assert.match(there.lines[0]!, /^config.yaml was removed; everything keeps running as it was/);
});

Deno.test("watchConfig() takes no notice of a save that changes nothing", async () => {
  await using there = await setup();

  await there.write("engine: { port: 1 }\n");
  await there.noticed(false);
  await there.write("# The usual one.\nengine: { port: 1 }\n");
  await there.noticed();

  assert.deepEqual(there.applied, []);
  assert.deepEqual(there.lines, []);
});

Deno.test("watchConfig() sees a file that is made later, and no other file", async () => {
  await using there = await setup();
  await Deno.remove(there.path);
  await there.noticed();
  await Deno.writeTextFile(`${there.directory}/other.yaml`, "engine: { port: 9 }\n");

  await there.write("engine: { port: 6 }\n");
  await there.noticed();

  assert.deepEqual(there.applied.map(({ engine }) => engine.port), [6]);
});

Deno.test("watchConfig() goes on after an edit that could not be applied", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "engine: { port: 1 }\n");
  const seen: number[] = [];
  const lines: string[] = [];
  const add = (text: string) => void lines.push(text);
  const options = {
    path,
    clock: systemClock,
    log: { debug: add, info: add, warn: add, error: add },
    load: (path: string) => parseConfig(Deno.readTextFileSync(path), path, [], {}),
    apply: (read: () => Config | undefined) => {
      const { port } = read()!.engine;
      seen.push(port);
      return port === 2 ? Promise.reject(new Error("no")) : Promise.resolve();
    },
  };
  {
    await using _watch = watchConfig(options);
    await Deno.writeTextFile(path, "engine: { port: 2 }\n");
    await until(() => seen.includes(2));
    await Deno.writeTextFile(path, "engine: { port: 3 }\n");
    await until(() => seen.includes(3));
  }

  assert.ok(lines.some((line) => line.startsWith("config.yaml cannot be used")));
  await Deno.remove(directory, { recursive: true });
});

Deno.test("watchConfig() applies at once what was edited since the engine read it", async () => {
  await using there = await setup();
  const { path, clock, applied } = there;
  const load = (path: string) => parseConfig(Deno.readTextFileSync(path), path, [], {});
  const silent = () => {};
  const log = { debug: silent, info: silent, warn: silent, error: silent };
  const apply = keepIn(applied);
  const current = parseConfig("engine: { port: 8 }\n", path, [], {});

  await using watch = watchConfig({ path, clock, log, load, apply, current });
  await watch.idle();

  assert.deepEqual(applied.map(({ engine }) => engine.port), [1]);
});

Deno.test("configDifference() names what was added, removed and changed, by name", () => {
  const config = (workers: Config["workers"]): Config => {
    const { engine, log } = parseConfig("log: {}\n", "/p/config.yaml", [], {});
    return {
      path: "/p/config.yaml",
      directory: "/p",
      dataDirectory: "/p/.engine",
      values: [],
      engine,
      log,
      workers,
    };
  };
  const builtin = (name: string, raw: number) =>
    ({ kind: "builtin", name, config: raw, raw }) as const;
  const worker = { kind: "directory", name: "w", path: "/p/w", env: {} } as const;
  const before = config([builtin("a", 1), builtin("b", 1), worker]);
  const after = config([{ ...worker, isolation: "process" }, builtin("c", 1), builtin("b", 1)]);

  assert.deepEqual(configDifference(before, after), {
    added: ["c"],
    removed: ["a"],
    changed: ["w"],
    settings: [],
  });
  for (const other of [{ accel: "tcg" }, { replicas: 2 }, { env: { A: "1" } }] as const) {
    const changes = configDifference(config([worker]), config([{ ...worker, ...other }]));
    assert.deepEqual(changes.changed, ["w"], JSON.stringify(other));
  }
});
