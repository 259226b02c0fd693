import assert from "node:assert/strict";
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import { FakeClock } from "../tests/fakes/fake_clock.ts";
import type { BuiltinWorker } from "../workers/kit/define.ts";
import { Builtins, type BuiltinsOptions } from "./builtins.ts";
import { defaultConfig, loadConfig } from "./config/config.ts";
import { checkNewWorker, type NewWorkerRequest } from "./install/prepare.ts";
import type { DirectoryEntry } from "./ports/config.ts";
import type { Launcher } from "./ports/launcher.ts";
import type { EngineInfo, ExecRequest } from "./ports/supervision.ts";
import { Project, type ProjectOptions } from "./project.ts";
import type { DirectoryWorkers } from "./supervisor/mod.ts";

const TEXT = `# my project
workers:
  - name: engine-state # values
`;

/** Built-in workers that were started, with their configuration. */
const started: string[] = [];

/** Workers that do nothing, under the names that the configuration knows. */
const KNOWN: readonly BuiltinWorker[] = [
  { name: "engine", runsAlways: true },
  { name: "engine-observability", runsAlways: true },
  { name: "engine-state", runsByDefault: true },
  { name: "engine-http", runsByDefault: true },
]
  .map(({ name, ...runs }) => ({
    name,
    ...runs,
    summary: name,
    parse: (raw) => raw,
    start: (_worker, config) => {
      started.push(`${name} ${JSON.stringify(config)}`);
      return Promise.resolve(new AsyncDisposableStack());
    },
  }));

/** Keeps the entries it is given; every worker is in the same state. */
class FakeSupervisor {
  entries: readonly DirectoryEntry[] = [];
  state = "ready";
  reason: string | null = null;
  readonly asked: string[] = [];

  apply(entries: readonly DirectoryEntry[]): void {
    this.entries = entries;
  }

  list(): Promise<unknown[]> {
    const { state, reason } = this;
    return Promise.resolve(
      this.entries.map(({ name }) => ({ name, kind: "directory", state, reason, launch: 1 })),
    );
  }

  async status(name: string): Promise<unknown> {
    return (await this.list()).find((worker) => (worker as { name: string }).name === name);
  }

  start(name: string): Promise<unknown> {
    this.asked.push(`start ${name}`);
    return this.status(name);
  }

  stop(name: string): Promise<unknown> {
    this.asked.push(`stop ${name}`);
    return this.status(name);
  }

  restart(name: string, { reinstall }: { reinstall: boolean }): Promise<unknown> {
    this.asked.push(`restart ${name} ${reinstall}`);
    return this.status(name);
  }

  exec({ name, command }: ExecRequest): Promise<unknown> {
    this.asked.push(`exec ${name} ${command.join(" ")}`);
    return Promise.resolve({ code: 7, signal: null });
  }

  logs(name: string, tail: number): Promise<string[]> {
    return Promise.resolve([`${tail} of ${name}`]);
  }

  close(): Promise<void> {
    this.asked.push("close");
    return Promise.resolve();
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
    directory: { builtinFunctions: () => [] } as unknown as BuiltinsOptions["directory"],
    dial: () => (_url, events) => ({ send: quiet, close: () => events.closed(1000, "") }),
    host: {} as BuiltinsOptions["host"],
  });
  const supervisor = new FakeSupervisor();
  const checks: string[] = [];
  const changes: number[] = [];
  const loads: number[] = [];
  const host = { hasKvm: true, isBroken: false };
  const microvm = {
    check: (name: string, accel: string) => {
      checks.push(`${name} ${accel}`);
      const isMissing = accel !== "tcg" && !host.hasKvm;
      const missing = new EngineError("isolation_unavailable", "KVM not accessible");
      return isMissing ? Promise.reject(missing) : Promise.resolve();
    },
  };
  const launchers = { process: {} as Launcher, microvm: microvm as unknown as Launcher };
  const config = text === null ? defaultConfig(directory, KNOWN) : loadConfig(path, KNOWN, {});
  const options: ProjectOptions = {
    config,
    known: KNOWN,
    builtins,
    loadDirectoryWorkers: () => {
      loads.push(project.config.workers.length);
      if (host.isBroken) return Promise.reject(new TypeError("no such file"));
      return Promise.resolve({
        supervisor: supervisor as unknown as DirectoryWorkers["supervisor"],
        checkNewWorker: (request: NewWorkerRequest) =>
          checkNewWorker(request, {
            platform: "linux",
            dataDirectory: `${directory}/.engine`,
            launchers,
          }),
      });
    },
    applySettings: quiet,
    changed: () => void changes.push(project.config.workers.length),
    info: () => ({}) as EngineInfo,
  };
  const project: Project = new Project(options);
  await project.apply(() => config);
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
    checks,
    changes,
    loads,
    host,
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

Deno.test("Project loads no supervisor for a configuration without directories", async () => {
  await using it = await setup();

  await it.project.apply(() => it.project.config);

  const names = (await it.project.list()).map(({ name }) => name);
  assert.deepEqual(names, ["engine", "engine-observability", "engine-state"]);
  await it.project.close();
  assert.deepEqual([it.loads, it.supervisor.asked], [[], []]);
});

Deno.test("Project loads the supervisor once, with the first directory, and closes it", async () => {
  await using it = await setup();

  await Promise.all([
    it.project.add({ path: await it.worker("math") }),
    it.project.add({ path: await it.worker("text") }),
  ]);
  await it.project.remove("math");
  await it.project.remove("text");
  await it.project.close();

  assert.equal(it.loads.length, 1);
  assert.deepEqual(it.supervisor.entries, []);
  assert.equal(it.supervisor.asked.at(-1), "close");
});

Deno.test("Project reports to the caller that the supervisor could not be loaded", async () => {
  await using it = await setup();
  it.host.isBroken = true;
  const path = await it.worker("math");

  await assert.rejects(it.project.add({ path }), { message: "no such file" });
  await assert.rejects(it.project.add({ path }), { message: "no such file" });
  await it.project.close();
});

Deno.test("Project calls changed() when another configuration is in force, and not before", async () => {
  await using there = await setup();
  assert.deepEqual(there.changes, [1]);

  await there.project.add({ path: await there.worker("math") });
  assert.deepEqual(there.changes, [1, 2]);

  await there.project.apply(() => undefined);
  await assert.rejects(there.project.remove("unknown"));
  assert.deepEqual(there.changes, [1, 2]);
});

Deno.test("Project.apply() reads the file only when an addition before it is done", async () => {
  await using it = await setup();
  const paths = [await it.worker("one"), await it.worker("two")];

  const adding = paths.map((path) => it.project.add({ path, isolation: "process" }));
  const applying = it.project.apply(() => loadConfig(it.path, KNOWN, {}));
  await Promise.all([...adding, applying]);

  assert.deepEqual(it.supervisor.entries.map((entry) => entry.name), ["one", "two"]);
});

Deno.test("Project.add() of an existing worker changes only the requested keys", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path, isolation: "process" });
  const before = await it.read();

  const again = await it.project.add({ path, reinstall: true });

  assert.equal(again.added, false);
  assert.equal(await it.read(), before);
  assert.deepEqual(it.supervisor.asked, ["restart math true"]);
});

Deno.test("Project.add() recognizes a directory that is named over a link", async () => {
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

Deno.test("Project.add() writes accelerator and replicas, and asks the launcher first", async () => {
  await using it = await setup();
  const path = await it.worker("math");

  await it.project.add({ path, accel: "tcg", replicas: 3 });

  assert.deepEqual(it.checks, ["math tcg"]);
  assert.match(await it.read(), /path: \.\/workers\/math\n {4}accel: tcg\n {4}replicas: 3\n$/);
  const { accel, replicas } = it.supervisor.entries[0]!;
  assert.deepEqual([accel, replicas], ["tcg", 3]);
});

Deno.test("Project.add() again with other values changes the entry, and all else stays", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path, accel: "tcg", replicas: 3 });
  const before = await it.read();

  const same = await it.project.add({ path, accel: "tcg", replicas: 3 });
  const more = await it.project.add({ path, replicas: 4 });
  const other = await it.project.add({ path, accel: "auto", isolation: "microvm" });

  assert.deepEqual(
    [same, more, other].map(({ added, changed }) => [added, changed]),
    [[false, false], [false, true], [false, true]],
  );
  const after = before.replace("accel: tcg", "accel: auto").replace("replicas: 3", "replicas: 4");
  assert.equal(await it.read(), `${after}    isolation: microvm\n`);
  assert.deepEqual(it.checks, ["math tcg", "math tcg", "math tcg", "math auto"]);
});

Deno.test("Project.add() does not change config.yaml when the worker cannot run as requested", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  it.host.hasKvm = false;
  const refused = { code: "isolation_unavailable", message: "KVM not accessible" };

  await assert.rejects(it.project.add({ path }), refused);
  await assert.rejects(it.project.add({ path, isolation: "microvm", accel: "kvm" }), refused);
  assert.equal(await it.read(), TEXT);
  assert.deepEqual(it.supervisor.entries, []);

  await it.project.add({ path, accel: "tcg" });
  const before = await it.read();
  await assert.rejects(it.project.add({ path, accel: "kvm", replicas: 2 }), refused);
  assert.equal(await it.read(), before);
});

Deno.test("Project.add() refuses options that contradict", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  const code = "INVALID_ARGUMENTS";

  await assert.rejects(it.project.add({ path, isolation: "process", accel: "kvm" }), {
    code,
    message: "accel says what runs a microVM, and worker math would run as a plain process; " +
      "leave it out, or ask for isolation microvm",
  });
  await assert.rejects(it.project.add({ path, config: { port: 1 } }), {
    code,
    message: /^Worker math is a directory, and config is for built-in workers/,
  });
  for (const [key, value] of Object.entries({ accel: "tcg", replicas: 2, isolation: "process" })) {
    await assert.rejects(it.project.add({ name: "engine-state", [key]: value }), {
      code,
      message: `engine-state is a built-in worker, and ${key} is for workers with a path`,
    });
  }
  assert.equal(await it.read(), TEXT);
});

Deno.test("Project.add() refuses what config.yaml cannot express, and writes nothing", async () => {
  await using it = await setup();
  const path = await it.worker("math");

  await assert.rejects(it.project.add({ path, replicas: 65 }), { code: "config_invalid" });
  await Deno.writeTextFile(`${path}/engine.worker.yaml`, "name: math\nnetwork: none\n");
  await assert.rejects(it.project.add({ path }), { code: "manifest_invalid" });

  assert.equal(await it.read(), TEXT);
});

Deno.test("Project.add() starts the new version of a worker that kept the old one running", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path });
  it.supervisor.reason = "Reload failed";

  await it.project.add({ path });

  assert.deepEqual(it.supervisor.asked, ["start math"]);
});

Deno.test("Project.add() starts a worker that is there and does not run", async () => {
  await using it = await setup();
  const path = await it.worker("math");
  await it.project.add({ path });
  it.supervisor.state = "failed";

  await it.project.add({ path });

  assert.deepEqual(it.supervisor.asked, ["start math"]);
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
  for (
    const [name, hint] of [
      ["engine-stat", "did you mean engine-state?"],
      ["http", "did you mean engine-http?"],
      ["mail-sender", "there are: engine-state, engine-http"],
    ]
  ) {
    await assert.rejects(it.project.add({ name: name! }), {
      code: "NOT_FOUND",
      message: `There is no built-in worker ${name}; ${hint}`,
    });
  }
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
  assert.equal((await it.project.status("engine-http")).state, "ready");
});

Deno.test("Project.add() refuses to edit a config.yaml that is broken by now", async () => {
  await using it = await setup();
  await Deno.writeTextFile(it.path, "- a list\n");

  await assert.rejects(it.project.add({ name: "engine-http" }), { code: "config_invalid" });

  assert.equal(await it.read(), "- a list\n");
  assert.equal((await it.project.status("engine-state")).state, "ready");
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
  const refused = { code: "INVALID_ARGUMENTS" };

  await assert.rejects(project.stop("engine"), refused);
  await assert.rejects(project.restart("engine", { reinstall: false }), refused);
  await assert.rejects(project.remove("engine"), refused);
});

Deno.test("Project passes requests for a directory to the supervisor", async () => {
  await using it = await setup();
  const { project, supervisor } = it;
  await project.add({ path: await it.worker("math") });
  const { signal } = new AbortController();

  await project.start("math");
  await project.stop("math");
  const ended = await project.exec({ name: "math", command: ["ls", "-l"] }, () => {}, signal);

  assert.deepEqual(supervisor.asked, ["start math", "stop math", "exec math ls -l"]);
  assert.equal(ended.code, 7);
  assert.deepEqual(await project.logs("math", 3), ["3 of math"]);
  const names = (await project.list()).map(({ name }) => name);
  assert.deepEqual(names.slice(-2), ["engine-state", "math"]);
});

Deno.test("Project.exec() refuses built-in workers, which run inside the engine", async () => {
  await using it = await setup();
  const { signal } = new AbortController();
  const exec = (name: string) => it.project.exec({ name, command: ["ls"] }, () => {}, signal);

  await assert.rejects(exec("engine-state"), {
    code: "INVALID_ARGUMENTS",
    message: "engine-state runs inside the engine, and no command can be run beside it there",
  });
  await assert.rejects(exec("unknown"), { code: "NOT_FOUND" });
});

Deno.test("Project names the existing workers in the error for an unknown one", async () => {
  await using it = await setup();
  const { project } = it;
  await project.add({ path: await it.worker("math") });
  const unknown = {
    code: "NOT_FOUND",
    message: "There is no worker moth; there are: " +
      "engine, engine-observability, engine-state, math",
  };

  await assert.rejects(project.status("moth"), unknown);
  await assert.rejects(project.start("moth"), unknown);
  await assert.rejects(project.stop("moth"), unknown);
  await assert.rejects(project.restart("moth", { reinstall: true }), unknown);
  await assert.rejects(project.remove("moth"), unknown);
  await assert.rejects(project.logs("moth", 1), unknown);
});

Deno.test("Project.close() waits for an addition in progress and refuses later ones", async () => {
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

Deno.test("A worker that always runs takes its configuration from the file, once", async () => {
  started.length = 0;
  await using _it = await setup(
    "workers:\n  - name: engine-state\n  - name: engine-observability\n    config: {traces: off}\n",
  );

  assert.deepEqual(started, [
    "engine {}",
    'engine-observability {"traces":"off"}',
    "engine-state {}",
  ]);
});
