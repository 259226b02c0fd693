import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_supervision.ts";
import type { Containment, Launcher } from "../ports/launcher.ts";
import {
  DEPENDENCY_FILE_BYTES_MAX,
  DEPENDENCY_FILES_MAX,
  dependencyHash,
  installDependencies,
  type InstallOptions,
  readInstallation,
  writeInstallation,
} from "./install.ts";
import { readManifest } from "./manifest.ts";
import { until } from "../../tests/fakes/until.ts";

/** A program that says it is this Python. */
function python(version: string, hasPip = true): string {
  const facts = [true, hasPip, version, "/usr/bin/python3", "/usr", "/usr"];
  return `echo '${JSON.stringify(facts)}'`;
}

/** A worker, tools that only say that they are there, and a launcher whose programs succeed. */
async function setup(runtime: string, files: Record<string, string> = {}) {
  const root = await Deno.makeTempDir();
  const directory = `${root}/w`;
  const bin = `${root}/bin`;
  await Deno.mkdir(directory);
  await Deno.mkdir(bin);
  const write = (path: string, text: string) => Deno.writeTextFile(`${directory}/${path}`, text);
  const addProgram = (name: string, script: string) =>
    Deno.writeTextFile(`${bin}/${name}`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  for (const name of ["uv", "node", "npm", "deno"]) await addProgram(name, "exit 0");
  await addProgram("python3", python("3.12.1"));
  await write("engine.worker.yaml", `name: w\n${runtime}\n`);
  for (const [path, text] of Object.entries(files)) await write(path, text);
  const launcher = new FakeLauncher();
  launcher.onStart = (program) => program.exit(0);
  const clock = new FakeClock();
  const began: string[] = [];
  const install = (more: Partial<InstallOptions> = {}) =>
    installDependencies({
      name: "w",
      spec: readManifest(directory),
      launcher,
      dataDirectory: `${root}/.engine`,
      env: { PATH: bin },
      clock,
      reinstall: false,
      signal: new AbortController().signal,
      output: () => {},
      began: (what) => void began.push(what),
      ...more,
    });
  const commands = () => launcher.programs.map(({ spec }) => spec.command);
  const remove = () => Deno.remove(root, { recursive: true });
  const deps = `${root}/.engine/deps/w`;
  const folders = () => [...Deno.readDirSync(deps)].map(({ name }) => `${deps}/${name}`);
  return {
    directory,
    bin,
    deps,
    folders,
    launcher,
    clock,
    began,
    write,
    addProgram,
    install,
    commands,
    [Symbol.asyncDispose]: remove,
  };
}

const PYTHON = "runtime: { kind: python, entry: main.py }";
const FACTS = { fingerprint: ["3.12.1"] };
const UV = "runtime: { kind: python, package_manager: uv, entry: main.py }";
const NODE = "runtime: { kind: javascript, entry: main.js }";
const DENO = "runtime: { kind: typescript, entry: main.ts }";

Deno.test("installDependencies() installs Python packages into the engine's folder, once", async () => {
  await using there = await setup(PYTHON, { "main.py": "", "requirements.txt": "requests\n" });

  const first = await there.install();
  const second = await there.install();

  assert.deepEqual([first.result, second.result], ["installed", "cached"]);
  assert.deepEqual(there.began, ["installing dependencies with pip"]);
  const [place] = there.folders();
  assert.deepEqual(there.commands(), [
    "python3 -m pip install --no-compile --no-warn-conflicts " +
    `--target ${place} 'websockets>=13.0,<18' -r requirements.txt`,
  ]);
  const { env, name, directory } = there.launcher.last.spec;
  assert.deepEqual([name, directory, env.PIP_TARGET], ["w", there.directory, place]);
  const sdk = there.deps.replace("deps/w", "sdk/python");
  assert.equal(first.env.PYTHONPATH, `${place}:${sdk}`);
  assert.deepEqual(second.env, first.env);
});

Deno.test("installDependencies() runs the worker's own script after the SDK's requirement", async () => {
  const runtime = `${PYTHON}\nscripts: { install: pip install -r dev.txt }`;
  await using there = await setup(runtime, { "main.py": "", "requirements.txt": "requests\n" });

  await there.install();

  const [own, script] = there.commands();
  assert.match(
    own!,
    /^python3 -m pip install --no-compile --no-warn-conflicts --target \S+ 'websockets>=13.0,<18'$/,
  );
  assert.equal(script, "pip install -r dev.txt");
  assert.equal(there.launcher.last.spec.env.PIP_TARGET!.startsWith(there.deps), true);
});

Deno.test("installDependencies() uses uv where the manifest says so", async () => {
  await using there = await setup(UV, { "main.py": "" });

  await there.install();

  assert.match(there.commands()[0]!, /^uv pip install --python python3 --target \S+ 'websockets/);
});

for (const file of ["requirements.txt", "pyproject.toml", "uv.lock", "engine.worker.yaml"]) {
  Deno.test(`installDependencies() installs again when ${file} was edited`, async () => {
    await using there = await setup(PYTHON, { "main.py": "" });
    await there.install();

    const old = await Deno.readTextFile(`${there.directory}/${file}`).catch(() => "");
    await there.write(file, `${old}# edited\n`);

    assert.equal((await there.install()).result, "installed");
    assert.equal((await there.install()).result, "cached");
  });
}

Deno.test("installDependencies() keeps the previous packages for programs that still run", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  const [first] = there.folders();

  for (const edit of ["a", "b"]) {
    await there.write("requirements.txt", edit);
    await there.install();
  }
  assert.equal(there.folders().length, 2);
  assert.equal(there.folders().includes(first!), false);

  const before = there.folders();
  const { env } = await there.install({ reinstall: true });
  const place = env.PYTHONPATH!.split(":")[0]!;
  assert.equal(before.includes(place), false);
  assert.deepEqual(there.folders().filter((folder) => before.includes(folder)).length, 1);
});

Deno.test("installDependencies() installs again for another Python, not for edited sources", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();

  await there.write("main.py", "print(1)");
  assert.equal((await there.install()).result, "cached");

  await there.addProgram("python3", python("3.13.0"));
  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() installs again on reinstall", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();

  assert.equal((await there.install({ reinstall: true })).result, "installed");
  assert.equal((await there.install()).result, "cached");
});

Deno.test("installDependencies() repeats an installation that failed", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  there.launcher.onStart = (program) => program.exit(1);
  const { message } = await there.install().then(() => assert.fail(), (error) => error);
  assert.match(
    message,
    /^Installing the dependencies of w failed: python3 -m pip install .*: exit code 1$/,
  );

  there.launcher.onStart = (program) => program.exit(0);
  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() repeats an installation that was interrupted", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  there.launcher.onStart = (program) => {
    Deno.writeTextFileSync(`${program.spec.env.PIP_TARGET}/half.py`, "");
    program.exit(1);
  };
  await assert.rejects(there.install());
  const [half] = there.folders();

  there.launcher.onStart = (program) => program.exit(0);
  const { env } = await there.install();

  assert.deepEqual(there.folders(), [env.PIP_TARGET]);
  assert.notEqual(env.PIP_TARGET, half);
});

Deno.test("installDependencies() repeats an installation whose packages are gone", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  await Deno.remove(there.deps, { recursive: true });

  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() writes nothing where a worker could have put a link", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  const [place] = there.folders();
  const outside = `${there.directory}/precious`;
  await Deno.writeTextFile(outside, "mine");
  for (const name of [".installed", "link"]) {
    await Deno.symlink(outside, `${place}/${name}`);
    await Deno.symlink(there.directory, `${there.deps}/${name}`);
  }

  await there.write("requirements.txt", "x");
  await there.install();
  await there.write("requirements.txt", "y");
  await there.install();

  assert.equal(await Deno.readTextFile(outside), "mine");
  assert.equal(there.folders().length, 2);
});

Deno.test("installDependencies() ends an installation that takes too long", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  there.launcher.onStart = () => {};
  const installing = there.install();
  const failed = assert.rejects(installing, {
    code: "install_failed",
    message: /: took longer than 600 s$/,
  });
  await until(() => there.clock.waiting > 0);

  there.clock.tick(600_000);
  await failed;

  assert.deepEqual(there.launcher.last.stops, [10_000]);
});

Deno.test("installDependencies() ends an installation when the signal aborts", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  there.launcher.onStart = () => {};
  const leaving = new AbortController();
  const failed = assert.rejects(there.install({ signal: leaving.signal }), { code: "cancelled" });
  await until(() => there.launcher.programs.length > 0);

  leaving.abort();
  await failed;

  assert.equal(there.launcher.last.stops.length, 1);
  assert.equal(there.clock.waiting, 0);
});

Deno.test("installDependencies() explains how to install pip", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.addProgram("python3", python("3.12.1", false));

  await assert.rejects(there.install(), {
    code: "launch_failed",
    message: /^Worker w needs pip, which python3 does not have; install it \(Debian/,
  });
});

for (
  const [program, runtime, entry] of [
    ["python3", PYTHON, "main.py"],
    ["uv", UV, "main.py"],
    ["node", NODE, "main.js"],
    ["deno", DENO, "main.ts"],
  ] as const
) {
  Deno.test(`installDependencies() explains what to install when ${program} is missing`, async () => {
    await using there = await setup(runtime, { [entry]: "" });
    await Deno.remove(`${there.bin}/${program}`);

    await assert.rejects(there.install(), {
      code: "launch_failed",
      message: new RegExp(`^Worker w needs ${program}, which is not on the PATH; install `),
    });
  });
}

Deno.test("installDependencies() runs npm install where there is a package.json", async () => {
  await using there = await setup(NODE, { "main.js": "" });
  await there.write("package.json", "{}");
  // npm writes a lock file, which counts from the first installation on.
  const sdk = `${there.directory}/node_modules/engine-sdk`;
  there.launcher.onStart = (program) => {
    Deno.writeTextFileSync(`${there.directory}/package-lock.json`, "{}");
    Deno.mkdirSync(sdk, { recursive: true });
    Deno.writeTextFileSync(`${sdk}/package.json`, "{}");
    program.exit(0);
  };
  assert.equal((await there.install()).result, "installed");
  assert.equal((await there.install()).result, "cached");
  const [install, link, ...more] = there.commands();
  assert.equal(install, "npm install --no-audit --no-fund");
  assert.match(link!, /ln -sfn \/.*\/\.engine\/sdk\/typescript node_modules\/engine-sdk/);
  assert.deepEqual(more, []);

  await Deno.remove(`${there.directory}/package-lock.json`);
  assert.equal((await there.install()).result, "installed");
  // As after `npm install` by hand, which removes what package.json does not name.
  await Deno.remove(sdk, { recursive: true });
  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() makes Deno download what the entry imports", async () => {
  await using there = await setup(DENO, { "main.ts": "", "deno.json": "{}" });

  assert.equal((await there.install()).result, "installed");
  assert.equal((await there.install()).result, "cached");

  assert.deepEqual(there.commands(), ["deno install --quiet --entrypoint main.ts"]);
});

/** What a contained worker gets. */
const CONTAINMENT: Containment = {
  reads: [],
  writes: [],
  network: "engine",
  resources: { cpus: 1, memory_mb: 256 },
  accel: "auto",
};

Deno.test("installDependencies() installs in a guest with access to the network", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.addProgram("python3", "echo this python must not be asked; exit 1");

  await there.install({ containment: CONTAINMENT, facts: FACTS });

  const { containment, keep } = there.launcher.last.spec;
  assert.deepEqual(containment, { ...CONTAINMENT, network: "full" });
  assert.equal(keep, true);
});

Deno.test("installDependencies() copies the SDK for a contained Python worker", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });

  const { env } = await there.install({ containment: CONTAINMENT, facts: FACTS });

  const [place] = there.folders();
  const shared = there.deps.replace("deps/w", "sdk/python");
  const copy = `mkdir -p ${place}/.sdk && cp -R ${shared}/engine_sdk ${place}/.sdk && python3 `;
  assert.equal(there.commands()[0]!.slice(0, copy.length), copy);
  assert.equal(env.PYTHONPATH, `${place}:${place}/.sdk`);
});

Deno.test("installDependencies() passes no containment to a plain process", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });

  await there.install();

  const { containment, keep } = there.launcher.last.spec;
  assert.deepEqual([containment, keep], [undefined, undefined]);
});

Deno.test("installDependencies() downloads again for a contained Deno whose cache is gone", async () => {
  await using there = await setup(DENO, { "main.ts": "", "deno.json": "{}" });
  const options = { containment: CONTAINMENT };
  there.launcher.onStart = (program) => {
    Deno.mkdirSync(`${there.deps}/cache/deno`, { recursive: true });
    program.exit(0);
  };
  const results = async () => (await there.install(options)).result;
  assert.deepEqual([await results(), await results()], ["installed", "cached"]);

  await Deno.remove(there.deps, { recursive: true });
  assert.equal(await results(), "installed");
});

Deno.test("installDependencies() keeps downloads, except on reinstall", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  await Deno.mkdir(`${there.deps}/cache/pip`, { recursive: true });

  await there.write("requirements.txt", "x");
  await there.install();
  assert.ok(there.folders().includes(`${there.deps}/cache`));

  await there.install({ reinstall: true });
  assert.equal(there.folders().includes(`${there.deps}/cache`), false);
});

Deno.test("installDependencies() installs again for another isolation", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  const launcher = new FakeLauncher();
  launcher.onStart = (program) => program.exit(0);
  const contained = { isolation: "microvm", start: launcher.start.bind(launcher) } as const;

  assert.equal((await there.install({ launcher: contained })).result, "installed");
});

Deno.test("installDependencies() reports the phases before a command runs", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  const start: Launcher["start"] = (spec, output, phase) => {
    phase!("booting a microVM (tcg)");
    return there.launcher.start(spec, output);
  };

  await there.install({ launcher: { isolation: "microvm", start } });

  assert.deepEqual(there.began, [
    "installing dependencies with pip",
    "installing dependencies with pip: booting a microVM (tcg)",
  ]);
});

Deno.test("dependencyHash() changes with dependency files and further texts, not with sources", async () => {
  const directory = await Deno.makeTempDir();
  const write = (name: string, text: string) => Deno.writeTextFile(`${directory}/${name}`, text);
  await write("engine.worker.yaml", "name: w");
  const first = await dependencyHash(directory, ["3.12"]);

  await write("main.py", "1");
  assert.equal(await dependencyHash(directory, ["3.12"]), first);
  assert.notEqual(await dependencyHash(directory, ["3.13"]), first);

  await write("requirements.txt", "");
  const listed = await dependencyHash(directory, ["3.12"]);
  assert.notEqual(listed, first);
  await write("requirements.txt", "requests");
  assert.notEqual(await dependencyHash(directory, ["3.12"]), listed);
  assert.match(listed, /^[0-9a-f]{16}$/);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() neither waits for a pipe nor reads an endless device", async () => {
  const directory = await Deno.makeTempDir();
  const before = await dependencyHash(directory, []);
  await new Deno.Command("mkfifo", { args: [`${directory}/requirements.txt`] }).output();
  await Deno.symlink("/dev/zero", `${directory}/package.json`);
  await Deno.symlink("/nowhere", `${directory}/uv.lock`);
  await Deno.mkdir(`${directory}/deno.json`);

  assert.notEqual(await dependencyHash(directory, []), before);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() counts a file that is too large by size and time", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/package-lock.json`;
  await Deno.writeTextFile(path, "");
  await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX + 1);
  const first = await dependencyHash(directory, []);
  assert.equal(await dependencyHash(directory, []), first);

  await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX + 2);

  assert.notEqual(await dependencyHash(directory, []), first);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("dependencyHash() counts a file outside of the directory by size and time, without reading it", async () => {
  const directory = await Deno.makeTempDir();
  const other = await Deno.makeTempFile();
  await Deno.symlink(other, `${directory}/requirements.txt`);
  const when = new Date(1_700_000_000_000);
  const hash = async (text: string, time: Date): Promise<string> => {
    await Deno.writeTextFile(other, text);
    await Deno.utime(other, time, time);
    return await dependencyHash(directory, []);
  };

  const first = await hash("secret 1", when);

  assert.equal(await hash("secret 2", when), first);
  assert.notEqual(await hash("secret 12", when), first);
  assert.notEqual(await hash("secret 2", new Date()), first);
  await Deno.remove(directory, { recursive: true });
  await Deno.remove(other);
});

Deno.test("dependencyHash() bounds the bytes and files that it reads", async () => {
  const directory = await Deno.makeTempDir();
  for (let i = 0; i < 40; i++) {
    const path = `${directory}/requirements-${i}.txt`;
    await Deno.writeTextFile(path, "");
    await Deno.truncate(path, DEPENDENCY_FILE_BYTES_MAX / 2);
  }
  const began = performance.now();
  const first = await dependencyHash(directory, []);
  assert.ok(performance.now() - began < 10_000, "it does not read them all");
  await Deno.remove(`${directory}/requirements-9.txt`);
  assert.notEqual(await dependencyHash(directory, []), first);

  for (let i = 0; i < DEPENDENCY_FILES_MAX; i++) {
    await Deno.writeTextFile(`${directory}/requirements-${i}.txt`, "");
  }
  await Deno.writeTextFile(`${directory}/requirements-z.txt`, "one");
  const many = await dependencyHash(directory, []);
  await Deno.writeTextFile(`${directory}/requirements-z.txt`, "another");
  assert.equal(await dependencyHash(directory, []), many);
  await Deno.remove(`${directory}/requirements-z.txt`);
  assert.notEqual(await dependencyHash(directory, []), many);
  await Deno.remove(directory, { recursive: true });
});

async function withData(check: (data: string) => Promise<void>): Promise<void> {
  const data = await Deno.makeTempDir();
  await check(data);
  await Deno.remove(data, { recursive: true });
}

Deno.test("readInstallation() returns what was last written for a worker", () =>
  withData(async (data) => {
    await writeInstallation(data, "w", { hash: "a", folder: "a-1" });
    await writeInstallation(data, "w", { hash: "b", folder: "b-2" });
    await writeInstallation(data, "w.json", { hash: "c", folder: "c-3" });

    assert.deepEqual(await readInstallation(data, "w"), { hash: "b", folder: "b-2" });
    assert.deepEqual(await readInstallation(data, "w.json"), { hash: "c", folder: "c-3" });
    assert.equal([...Deno.readDirSync(`${data}/installed`)].length, 2);
  }));

Deno.test("readInstallation() ignores missing and damaged records", () =>
  withData(async (data) => {
    assert.equal(await readInstallation(data, "w"), undefined);
    await Deno.mkdir(`${data}/installed`);
    for (const text of ["", "{", "null", "{}", '{"hash":"a","folder":"../x"}', '{"hash":1}']) {
      await Deno.writeTextFile(`${data}/installed/w.json`, text);

      assert.equal(await readInstallation(data, "w"), undefined, text);
    }
  }));
