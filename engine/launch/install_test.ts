import assert from "node:assert/strict";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeLauncher } from "../../tests/fakes/fake_launcher.ts";
import { until } from "../../tests/launcher_contract.ts";
import { describeEnd, installDependencies, type InstallOptions } from "./install.ts";
import { readManifest } from "./manifest.ts";

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
  await addProgram("python3", "echo True True 3.12.1");
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
  return {
    directory,
    bin,
    deps,
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
const UV = "runtime: { kind: python, package_manager: uv, entry: main.py }";
const NODE = "runtime: { kind: javascript, entry: main.js }";
const DENO = "runtime: { kind: typescript, entry: main.ts }";

Deno.test("installDependencies() installs for Python beside the project, once", async () => {
  await using there = await setup(PYTHON, { "main.py": "", "requirements.txt": "requests\n" });

  const first = await there.install();
  const second = await there.install();

  assert.deepEqual([first.result, second.result], ["installed", "cached"]);
  assert.deepEqual(there.began, ["installing dependencies with pip"]);
  const [place] = [...Deno.readDirSync(there.deps)].map(({ name }) => `${there.deps}/${name}`);
  assert.deepEqual(there.commands(), [
    `python3 -m pip install --target ${place} 'websockets>=13.0,<18' -r requirements.txt`,
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
  assert.match(own!, /^python3 -m pip install --target \S+ 'websockets>=13.0,<18'$/);
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
    assert.equal([...Deno.readDirSync(there.deps)].length, 1);
  });
}

Deno.test("installDependencies() installs again for another Python, not for edited sources", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();

  await there.write("main.py", "print(1)");
  assert.equal((await there.install()).result, "cached");

  await there.addProgram("python3", "echo True True 3.13.0");
  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() throws the cache away when it is asked to", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();

  assert.equal((await there.install({ reinstall: true })).result, "installed");
  assert.equal((await there.install()).result, "cached");
});

Deno.test("installDependencies() does an installation again that failed", async () => {
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

Deno.test("installDependencies() does an installation again that was cut short", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.install();
  const [{ name }] = [...Deno.readDirSync(there.deps)] as [Deno.DirEntry];
  await Deno.writeTextFile(`${there.deps}/${name}/half.py`, "");
  await Deno.remove(`${there.deps}/${name}/.installed`);

  assert.equal((await there.install()).result, "installed");

  const left = [...Deno.readDirSync(`${there.deps}/${name}`)].map(({ name }) => name);
  assert.deepEqual(left, [".installed"]);
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

Deno.test("installDependencies() ends an installation that is no longer wanted", async () => {
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

Deno.test("installDependencies() says how to get pip", async () => {
  await using there = await setup(PYTHON, { "main.py": "" });
  await there.addProgram("python3", "echo True False 3.12.1");

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
  Deno.test(`installDependencies() says what to install when ${program} is missing`, async () => {
    await using there = await setup(runtime, { [entry]: "" });
    await Deno.remove(`${there.bin}/${program}`);

    await assert.rejects(there.install(), {
      code: "launch_failed",
      message: new RegExp(`^Worker w needs ${program}, which is not on the PATH; install `),
    });
  });
}

Deno.test("installDependencies() has npm install what package.json lists, if there is one", async () => {
  await using there = await setup(NODE, { "main.js": "" });
  assert.equal((await there.install()).result, "none");

  await there.write("package.json", "{}");
  // npm writes a lock file, which counts from the first installation on.
  there.launcher.onStart = (program) => {
    Deno.writeTextFileSync(`${there.directory}/package-lock.json`, "{}");
    program.exit(0);
  };
  assert.equal((await there.install()).result, "installed");
  assert.equal((await there.install()).result, "cached");
  assert.deepEqual(there.commands(), ["npm install --no-audit --no-fund"]);

  await Deno.remove(`${there.directory}/package-lock.json`);
  assert.equal((await there.install()).result, "installed");
});

Deno.test("installDependencies() has Deno fetch what the entry imports", async () => {
  await using there = await setup(DENO, { "main.ts": "", "deno.json": "{}" });

  assert.equal((await there.install()).result, "installed");
  assert.equal((await there.install()).result, "cached");

  assert.deepEqual(there.commands(), ["deno install --quiet --entrypoint main.ts"]);
});

Deno.test("describeEnd() tells exit codes from signals", () => {
  assert.equal(describeEnd({ code: 1, signal: null }), "exit code 1");
  assert.equal(describeEnd({ code: null, signal: "SIGKILL" }), "signal SIGKILL");
  assert.match(describeEnd({ code: 127, signal: null }), /127 \(a program that it needs was not/);
});
