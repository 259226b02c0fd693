import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { parseConfig } from "./config.ts";
import { configDifference, watchConfig } from "./watch.ts";
import type { Config } from "../ports/config.ts";
import type { Log, LogFields } from "../ports/log.ts";
import { until } from "../../tests/fakes/until.ts";

/** A file with the port 1, in force and under watch. */
async function setup(inForce = "engine: { port: 1 }\n") {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "engine: { port: 1 }\n");
  const clock = new FakeClock();
  const applied: Config[] = [];
  const lines: string[] = [];
  const add = (text: string, fields?: LogFields) =>
    void lines.push(`${text} ${JSON.stringify(fields)}`);
  const log: Log = { debug: add, info: add, warn: add, error: add };
  const parse = (text: string) => parseConfig(text, path, [], {});
  let current = parse(inForce);
  /** Runs within each change, before the configuration is in force. */
  const during = { change: (): Promise<void> => Promise.resolve() };
  const apply = async (read: () => Promise<Config | undefined>): Promise<void> => {
    const config = await read();
    if (!config) return;
    await during.change();
    applied.push(config);
    current = config;
  };
  const watch = watchConfig({ path, clock, log, inForce: () => current, parse, apply });
  await watch.idle();
  const write = (text: string) => Deno.writeTextFile(path, text);
  /** Lets the time between two comparisons pass, and waits for them. */
  const later = async (): Promise<void> => {
    clock.tick(2_000);
    await watch.idle();
  };
  const end = async (): Promise<void> => {
    await watch[Symbol.asyncDispose]();
    await Deno.remove(directory, { recursive: true });
  };
  return {
    directory,
    path,
    clock,
    watch,
    applied,
    ports: () => applied.map(({ engine }) => engine.port),
    lines,
    during,
    write,
    later,
    /** As a change by the engine itself does. */
    putInForce: (text: string) => void (current = parse(text)),
    [Symbol.asyncDispose]: end,
  };
}

Deno.test("watchConfig() applies an edit and logs what changed", async () => {
  await using there = await setup();

  await there.write("engine: { port: 2 }\nlog: { level: debug }\n");
  await there.later();

  assert.deepEqual(there.ports(), [2]);
  assert.deepEqual(there.lines, ['config.yaml applied {"settings":"engine.port log.level"}']);
});

Deno.test("watchConfig() sees an editor that writes beside and renames", async () => {
  await using there = await setup();

  await Deno.writeTextFile(`${there.path}.new`, "engine: { port: 3 }\n");
  await Deno.rename(`${there.path}.new`, there.path);
  await there.later();
  await there.write("engine: { port: 4 }\n");
  await there.later();

  assert.deepEqual(there.ports(), [3, 4]);
});

Deno.test("watchConfig() reports a broken file and changes nothing", async () => {
  await using there = await setup();

  await there.write("engine:\n\tport: 2\n");
  await there.later();

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
  await there.later();

  await there.write("engine: { port: 5 }\n");
  await there.later();

  assert.deepEqual(there.ports(), [5]);
});

Deno.test("watchConfig() warns when the file is removed and changes nothing", async () => {
  await using there = await setup();

  await Deno.remove(there.path);
  await there.later();

  assert.deepEqual(there.applied, []);
  assert.match(there.lines[0]!, /^config.yaml was removed; everything keeps running as it was/);
});

Deno.test("watchConfig() takes no notice of a save that changes nothing", async () => {
  await using there = await setup();

  await there.write("engine: { port: 1 }\n");
  await there.later();
  await there.write("# The usual one.\nengine: { port: 1 }\n");
  await there.later();

  assert.deepEqual(there.applied, []);
  assert.deepEqual(there.lines, []);
});

Deno.test("watchConfig() sees a file that is made later, and no other file", async () => {
  await using there = await setup();
  await Deno.remove(there.path);
  await there.later();
  await Deno.writeTextFile(`${there.directory}/other.yaml`, "engine: { port: 9 }\n");

  await there.write("engine: { port: 6 }\n");
  await there.later();

  assert.deepEqual(there.ports(), [6]);
});

Deno.test("watchConfig() goes on after an edit that could not be applied", async () => {
  await using there = await setup();
  there.during.change = () => Promise.reject(new Error("no"));
  await there.write("engine: { port: 2 }\n");
  await there.later();
  assert.equal(there.lines.length, 2);
  await there.later(); // The same problem is not reported again.
  assert.equal(there.lines.length, 2);

  there.during.change = () => Promise.resolve();
  await there.write("engine: { port: 3 }\n");
  await there.later();

  assert.deepEqual(there.ports(), [3]);
});

Deno.test("watchConfig() applies at once what was edited since the engine read it", async () => {
  await using there = await setup("engine: { port: 8 }\n");

  assert.deepEqual(there.ports(), [1]);
});

Deno.test("watchConfig() applies the text from before a change that the engine made", async () => {
  await using there = await setup();
  const before = "engine: { port: 1 }\n";
  await there.write("engine: { port: 2 }\n");
  there.putInForce("engine: { port: 2 }\n");

  await there.write(before); // Before the watch has read the engine's own text.
  there.watch.check();
  await there.watch.idle();

  assert.deepEqual(there.ports(), [1]);
});

Deno.test("watchConfig() finds an edit that came while another one was applied", async () => {
  await using there = await setup();
  there.during.change = async () => {
    there.during.change = () => Promise.resolve();
    await there.write("engine: { port: 3 }\n");
  };

  await there.write("engine: { port: 2 }\n");
  await there.later();

  assert.deepEqual(there.ports(), [2, 3]);
});

Deno.test("watchConfig() finds an edit that no notice tells of", async () => {
  await using there = await setup();
  const { directory, path } = there;
  // As a mounted volume changes: the folder behind a link is another one.
  for (const port of [2, 3]) {
    await Deno.mkdir(`${directory}/${port}`);
    await Deno.writeTextFile(`${directory}/${port}/config.yaml`, `engine: { port: ${port} }\n`);
  }
  await Deno.symlink(`${directory}/2`, `${directory}/data`);
  await Deno.remove(path);
  await Deno.symlink("data/config.yaml", path);
  await there.later();

  await Deno.symlink(`${directory}/3`, `${directory}/other`);
  await Deno.rename(`${directory}/other`, `${directory}/data`);
  await there.later();

  assert.deepEqual(there.ports(), [2, 3]);
});

Deno.test("watchConfig() tells two texts apart that have one date and size", async () => {
  await using there = await setup();
  const date = new Date(2026, 0, 1);

  for (const port of [2, 3, 2]) {
    await there.write(`engine: { port: ${port} }\n`);
    await Deno.utime(there.path, date, date);
    await there.later();
  }

  assert.deepEqual(there.ports(), [2, 3, 2]);
});

Deno.test("watchConfig() does not wait for the end of edits that never end", async () => {
  await using there = await setup();
  const { clock, write, watch, ports } = there;
  await until(async () => {
    await write(`engine: { port: ${2 + (clock.now() / 100) % 9} }\n`);
    clock.tick(100); // Less than the quiet moment.
    await watch.idle();
    return ports().length > 0;
  });

  assert.ok(clock.now() <= 2_000);
});

Deno.test("watchConfig() reports a file that is too large once", async () => {
  await using there = await setup();
  await there.write("#".repeat(300_000));
  await there.later();
  await there.later();

  assert.equal(there.lines.length, 2, there.lines.join("\n"));
  assert.match(there.lines[1]!, /expected at most 262144 bytes, received 300000/);
});

Deno.test("configDifference() names what was added, removed and changed, by name", () => {
  const config = (workers: Config["workers"]): Config => {
    const { engine, log } = parseConfig("log: {}\n", "/p/config.yaml", [], {});
    return {
      path: "/p/config.yaml",
      text: "",
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
