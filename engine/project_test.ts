import assert from "node:assert/strict";
import { FakeClock } from "../tests/fakes/fake_clock.ts";
import type { BuiltinWorker } from "../workers/define.ts";
import { Builtins, type BuiltinsOptions } from "./builtins.ts";
import { defaultConfig, loadConfig } from "./config.ts";
import type { Supervisor } from "./launch/supervisor.ts";
import type { DirectoryEntry } from "./ports/config.ts";
import type { EngineInfo } from "./ports/supervision.ts";
import { Project, type ProjectOptions } from "./project.ts";

const TEXT = `# my project
workers:
  - name: engine-state # values
`;

/** Workers that do nothing, under the names that the configuration knows. */
const KNOWN: readonly BuiltinWorker[] = [
  "engine",
  "engine-observability",
  "engine-state",
  "engine-http",
]
  .map((name) => ({
    name,
    summary: name,
    parse: (raw) => raw,
    start: () => Promise.resolve(new AsyncDisposableStack()),
  }));

/** Keeps the entries it is given; every worker is ready at once. */
class FakeSupervisor {
  entries: readonly DirectoryEntry[] = [];
  readonly asked: string[] = [];

  apply(entries: readonly DirectoryEntry[]): void {
    this.entries = entries;
  }

  list(): unknown[] {
    return this.entries.map(({ name }) => ({ name, kind: "directory", state: "ready", launch: 1 }));
  }

  status(name: string): unknown {
    return this.list().find((worker) => (worker as { name: string }).name === name);
  }

  restart(name: string, { reinstall }: { reinstall: boolean }): unknown {
    this.asked.push(`restart ${name} ${reinstall}`);
    return this.status(name);
  }
}

async function setup(text: string | null = TEXT) {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  const path = `${directory}/config.yaml`;
  if (text !== null) await Deno.writeTextFile(path, text);
  const quiet = () => {};
  const builtins = new Builtins({
    known: KNOWN,
    clock: new FakeClock(),
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    directory: { functions: () => [] } as unknown as BuiltinsOptions["directory"],
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    lend: {} as BuiltinsOptions["lend"],
  });
  const supervisor = new FakeSupervisor();
  const config = text === null ? defaultConfig(directory, KNOWN) : loadConfig(path, KNOWN, {});
  const options: ProjectOptions = {
    config,
    known: KNOWN,
    builtins,
    supervisor: supervisor as unknown as Supervisor,
    platform: "linux",
    applySettings: quiet,
    info: () => ({}) as EngineInfo,
  };
  const project = new Project(options);
  await project.apply(config);
  const stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(directory, { recursive: true }));
  stack.defer(() => builtins.close());
  const worker = async (name: string): Promise<string> => {
    const folder = `${directory}/workers/${name}`;
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(`${folder}/main.py`, "");
    const manifest = `name: ${name}\nruntime:\n  kind: python\n  entry: main.py\n`;
    await Deno.writeTextFile(`${folder}/engine.worker.yaml`, manifest);
    return folder;
  };
  const read = () => Deno.readTextFile(path);
  return {
    project,
    supervisor,
    read,
    path,
    worker,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

Deno.test("Project.add() writes a directory into config.yaml, relative, and runs it", async () => {
  await using it = await setup();
  const path = await it.worker("math");

  const { added, config_path, worker } = await it.project.add({ path, isolation: "process" });

  assert.deepEqual([added, config_path, worker.name], [true, it.path, "math"]);
  const text = await it.read();
  assert.ok(text.startsWith("# my project\nworkers:\n  - name: engine-state # values\n"), text);
  assert.match(text, /- name: math\n {4}path: \.\/workers\/math\n {4}isolation: process\n$/);
  assert.deepEqual(it.supervisor.entries.map((entry) => entry.path), [path]);
});

Deno.test("Project.add() of what is there changes nothing but what was asked for", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path, isolation: "process" });
  const before = await it.read();

  const again = await it.project.add({ path, reinstall: true });

  assert.equal(again.added, false);
  assert.equal(await it.read(), before);
  assert.deepEqual(it.supervisor.asked, ["restart math true"]);
});

Deno.test("Project.add() knows a directory again that is named over a link", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path, isolation: "process" });
  const before = await it.read();
  await Deno.symlink(path, `${path}-link`);

  const again = await it.project.add({ path: `${path}-link` });

  assert.deepEqual([again.added, again.changed, again.worker.name], [false, false, "math"]);
  assert.equal(await it.read(), before);
});

Deno.test("Project.add() of a built-in that is there changes its configuration", async () => {
  await using it = await setup();

  const first = await it.project.add({ name: "engine-state", config: { port: 1 } });
  const same = await it.project.add({ name: "engine-state", config: { port: 1 } });

  assert.deepEqual([first.added, first.changed, same.changed], [false, true, false]);
  assert.match(await it.read(), /name: engine-state # values\n {4}config:\n {6}port: 1\n/);
  await assert.rejects(it.project.add({ name: "engine" }), {
    code: "INVALID_ARGUMENTS",
    message: "engine is the engine itself and cannot be added",
  });
});

Deno.test("Project.add() leaves config.yaml alone when the worker cannot run as asked", async () => {
  await using it = await setup();
  const path = await it.worker("math");

  await assert.rejects(it.project.add({ path, isolation: "microvm" }), {
    code: "isolation_unavailable",
  });

  assert.equal(await it.read(), TEXT);
});

Deno.test("Project.add() refuses a second worker of a name, a wrong built-in and both at once", async () => {
  await using it = await setup();
  await it.project.add({ path: await it.worker("math"), isolation: "process" });
  const other = `${await it.worker("other")}`;
  await Deno.writeTextFile(
    `${other}/engine.worker.yaml`,
    "name: math\nruntime:\n  kind: python\n  entry: main.py\n",
  );

  await assert.rejects(it.project.add({ path: other, isolation: "process" }), {
    code: "INVALID_ARGUMENTS",
    message: /A worker math is there already/,
  });
  await assert.rejects(it.project.add({ name: "engine-stat" }), {
    code: "NOT_FOUND",
    message: "There is no built-in worker engine-stat; there are: engine-state, engine-http",
  });
  await assert.rejects(it.project.add({}), { code: "INVALID_ARGUMENTS" });
});

Deno.test("two Project.add() at the same moment lose nothing of each other", async () => {
  await using it = await setup();
  const paths = [await it.worker("one"), await it.worker("two")];

  await Promise.all([
    ...paths.map((path) => it.project.add({ path, isolation: "process" })),
    it.project.add({ name: "engine-http" }),
  ]);

  const names = it.project.config.workers.map(({ name }) => name);
  assert.deepEqual(names, ["engine-state", "one", "two", "engine-http"]);
});

Deno.test("Project.add() without a config.yaml writes one that keeps what was running", async () => {
  await using it = await setup(null);

  await it.project.add({ path: await it.worker("math"), isolation: "process" });

  const names = loadConfig(it.path, KNOWN, {}).workers.map(({ name }) => name);
  assert.deepEqual(names, ["engine-state", "engine-http", "math"]);
  assert.equal(it.project.status("engine-http").state, "ready");
});

Deno.test("Project.add() refuses to edit a config.yaml that is broken by now", async () => {
  await using it = await setup();
  await Deno.writeTextFile(it.path, "- a list\n");

  await assert.rejects(it.project.add({ name: "engine-http" }), { code: "config_invalid" });

  assert.equal(await it.read(), "- a list\n");
  assert.equal(it.project.status("engine-state").state, "ready");
});

Deno.test("Project.remove() takes a worker out of config.yaml and stops it", async () => {
  await using it = await setup();
  await it.project.add({ path: await it.worker("math"), isolation: "process" });

  await it.project.remove("math");

  assert.equal(await it.read(), TEXT);
  assert.deepEqual(it.supervisor.entries, []);
  await assert.rejects(it.project.remove("math"), {
    code: "NOT_FOUND",
    message: /there are: engine/,
  });
});

Deno.test("the engine's own workers cannot be stopped, restarted or removed", async () => {
  await using it = await setup();
  const { project } = it;

  assert.throws(() => project.stop("engine"), { code: "INVALID_ARGUMENTS" });
  assert.throws(() => project.restart("engine", { reinstall: false }), {
    code: "INVALID_ARGUMENTS",
  });
  await assert.rejects(project.remove("engine"), { code: "INVALID_ARGUMENTS" });
});

Deno.test("Project.close() waits for what is being added and refuses what comes later", async () => {
  await using it = await setup();
  const folder = await it.worker("math");

  const first = it.project.add({ path: folder, isolation: "process" });
  await Promise.resolve(); // Its turn has begun.
  const second = it.project.add({ name: "engine-http" });
  const closed = it.project.close();

  await assert.rejects(second, { code: "overloaded", retryable: true });
  await closed;
  assert.equal((await first).added, true);
  await assert.rejects(it.project.remove("math"), { code: "overloaded" });
  assert.deepEqual(it.supervisor.entries.map(({ name }) => name), ["math"]);
});
