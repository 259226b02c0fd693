import assert from "node:assert/strict";
import type { EngineError } from "../../sdk/typescript/wire/errors.ts";
import { readManifest, withoutEffect, type WorkerSpec } from "./manifest.ts";

const PYTHON = "runtime: { kind: python }\n";

/** Reads a manifest in a directory with some empty files. */
async function read(text: string, files: Record<string, string> = {}): Promise<WorkerSpec> {
  const directory = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${directory}/engine.worker.yaml`, text);
    await Deno.mkdir(`${directory}/src`);
    for (const [name, content] of Object.entries(files)) {
      await Deno.writeTextFile(`${directory}/${name}`, content);
    }
    return { ...readManifest(directory), directory: "" };
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

async function problemsOf(text: string, files: Record<string, string> = {}): Promise<string[]> {
  try {
    await read(text, files);
  } catch (thrown) {
    const { code, details } = thrown as EngineError;
    assert.equal(code, "manifest_invalid");
    return details!.problems as string[];
  }
  return [];
}

Deno.test("readManifest() reads every key", async () => {
  const text = `name: math-worker
runtime: { kind: python, package_manager: uv, entry: app.py }
scripts:
  install: pip install -r requirements.txt
  start: python3 -m app \${PORT}
env: { LEVEL: 3 }
watch: [src, app.py, "!src/gen/**"]
isolation: microvm
network: engine
resources: { cpus: 2, memory_mb: 1024 }
replicas: 3
reload: stop-first
restart: { policy: on-failure, max: 3, within_s: 600, backoff_ms: 250 }
`;

  const spec = await read(text, { "app.py": "" });

  assert.deepEqual(spec, {
    name: "math-worker",
    directory: "",
    kind: "python",
    packageManager: "uv",
    entry: "app.py",
    install: "pip install -r requirements.txt",
    start: "python3 -m app ${PORT}",
    env: { LEVEL: "3" },
    watch: ["src", "app.py", "!src/gen/**"],
    isolation: "microvm",
    network: "engine",
    resources: { cpus: 2, memory_mb: 1024 },
    replicas: 3,
    reload: "stop-first",
    restart: { policy: "on-failure", max: 3, within_s: 600, backoff_ms: 250 },
    microvmKeys: ["network", "resources"],
  });
});

Deno.test("readManifest() fills in defaults, also in incomplete mappings", async () => {
  const files = { "main.py": "" };
  const bare = await read(`name: w\n${PYTHON}`, files);
  const part = await read(
    `name: w\n${PYTHON}resources: { memory_mb: 256 }\nrestart: { max: 2 }\nnetwork:\n`,
    files,
  );

  assert.deepEqual(bare.resources, { cpus: 1, memory_mb: 512 });
  assert.deepEqual([bare.network, bare.replicas], ["full", 1]);
  const restart = { policy: "always", max: 5, within_s: 60, backoff_ms: 1_000 };
  assert.deepEqual(bare.restart, restart);
  assert.deepEqual(part.resources, { cpus: 1, memory_mb: 256 });
  assert.deepEqual(part.restart, { ...restart, max: 2 });
  assert.deepEqual([part.network, part.microvmKeys], ["full", ["resources"]]);
});

Deno.test("readManifest() applies exceptions alone to the whole directory", async () => {
  const text = `name: w\n${PYTHON}watch: ["!generated/**"]\n`;

  assert.deepEqual((await read(text, { "main.py": "" })).watch, [".", "!generated/**"]);
});

Deno.test("withoutEffect() names the keys that a plain process leaves without effect", async () => {
  const files = { "main.py": "" };
  const one = await read(`name: w\n${PYTHON}network: full\n`, files);
  const both = await read(`name: w\n${PYTHON}resources: {}\nnetwork: engine\n`, files);
  const none = await read(`name: w\n${PYTHON}replicas: 2\n`, files);

  assert.equal(
    withoutEffect(one, "process"),
    "network of its engine.worker.yaml has no effect, since a plain process is not contained; " +
      "use isolation: microvm",
  );
  assert.match(withoutEffect(both, "process")!, /^network and resources of its .* have no effect/);
  assert.equal(withoutEffect(both, "microvm"), undefined);
  assert.equal(withoutEffect(none, "process"), undefined);
});

for (
  const [title, runtime, files, start] of [
    ["python", "kind: python", ["main.py"], "exec python3 main.py"],
    ["python in src", "kind: python", ["src/worker.py"], "exec python3 src/worker.py"],
    [
      "python with a given entry",
      "kind: python, entry: a b.py",
      ["a b.py", "main.py"],
      "exec python3 'a b.py'",
    ],
    ["typescript", "kind: typescript", ["worker.ts"], "exec deno run -A worker.ts"],
    ["javascript", "kind: javascript", ["index.js"], "exec node index.js"],
    [
      "javascript on deno",
      "kind: javascript, package_manager: deno",
      ["main.mjs"],
      "exec deno run -A main.mjs",
    ],
  ] as const
) {
  Deno.test(`readManifest() knows how to start ${title}`, async () => {
    const contents = Object.fromEntries(files.map((file) => [file, ""]));

    const spec = await read(`name: w\nruntime: { ${runtime} }\n`, contents);

    assert.equal(spec.start, start);
    assert.deepEqual(spec.watch, ["."]);
    assert.equal("isolation" in spec, false);
  });
}

for (
  const [title, runtime, entry] of [
    ["TypeScript on npm", "kind: typescript, package_manager: npm", "src/app.ts"],
    ["TypeScript on npm with a usual entry", "kind: typescript, package_manager: npm", "worker.ts"],
    [
      "TypeScript on npm with a written entry",
      "kind: typescript, package_manager: npm, entry: app.ts",
      "app.ts",
    ],
    ["JavaScript with a usual entry", "kind: javascript", "index.js"],
  ] as const
) {
  Deno.test(`readManifest() leaves the start of ${title} to package.json`, async () => {
    const files = { "package.json": '{"scripts":{"start":"tsx app.ts"}}', [entry]: "" };

    const spec = await read(`name: w\nruntime: { ${runtime} }\n`, files);

    assert.equal(spec.start, "exec npm run --silent start");
  });
}

Deno.test("readManifest() prefers a written entry of JavaScript to package.json", async () => {
  const files = { "package.json": '{"scripts":{"start":"node index.js"}}', "app.js": "" };

  const spec = await read("name: w\nruntime: { kind: javascript, entry: app.js }\n", files);

  assert.equal(spec.start, "exec node app.js");
});

Deno.test("readManifest() needs no entry beside a start command", async () => {
  const spec = await read("name: w\nruntime: { kind: javascript }\nscripts: { start: ./run }\n");

  assert.equal(spec.entry, null);
  assert.equal(spec.start, "./run");
});

Deno.test("readManifest() lets an install script create the entry", async () => {
  const text = "name: w\nruntime: { kind: javascript, entry: dist/a.js }\n" +
    "scripts: { install: npm run build }\n";

  assert.equal((await read(text)).start, "exec node dist/a.js");
});

Deno.test("readManifest() takes an empty watch list as off", async () => {
  const text = "name: w\nruntime: { kind: python }\nwatch: []\n";

  assert.deepEqual((await read(text, { "main.py": "" })).watch, []);
});

const BAD: readonly (readonly [title: string, text: string, ...problems: string[]])[] = [
  [
    "tabs",
    "name: w\nruntime:\n\tkind: python\n",
    "engine.worker.yaml: expected spaces for indentation, received a tab (line 3)",
  ],
  [
    "a name with spaces",
    `name: my worker\n${PYTHON}`,
    "name: expected 1 to 64 letters, digits, -, _ or ., beginning with a letter or digit, " +
    'received "my worker" (line 1)',
  ],
  [
    "a name that is a path",
    `name: ../../etc/passwd\n${PYTHON}`,
    "name: expected 1 to 64 letters, digits, -, _ or ., beginning with a letter or digit, " +
    'received "../../etc/passwd" (line 1)',
  ],
  [
    "a missing name and an unknown key",
    `nmae: w\n${PYTHON}`,
    "nmae: expected one of the keys name, runtime, scripts, env, watch, isolation, network, " +
    "resources, reload, restart, replicas, received an unknown key; did you mean name? (line 1)",
    "name: expected the name of the worker, received nothing (line 1)",
  ],
  [
    "a missing kind",
    "name: w\n",
    "runtime.kind: expected one of python, typescript, javascript, received nothing (line 1)",
  ],
  [
    "an unknown kind",
    "name: w\nruntime: { kind: pyton }\n",
    'runtime.kind: expected one of python, typescript, javascript, received "pyton" (line 2)',
  ],
  [
    "a package manager of another language",
    "name: w\nruntime: { kind: python, package_manager: npm }\n",
    'runtime.package_manager: expected one of pip, uv for python, received "npm" (line 2)',
  ],
  [
    "an entry that does not exist",
    "name: w\nruntime: { kind: python, entry: app.py }\n",
    'runtime.entry: expected a file, received "app.py", which does not exist (line 2)',
  ],
  [
    "an entry outside",
    "name: w\nruntime: { kind: python, entry: ../app.py }\n",
    "runtime.entry: expected a path inside the worker's directory, " +
    'received "../app.py" (line 2)',
  ],
  [
    "TypeScript on npm without a command",
    "name: w\nruntime: { kind: typescript, package_manager: npm, entry: main.py }\n",
    "scripts.start: expected a command, or a start script in package.json, since Node 20 runs no " +
    "TypeScript, received nothing (line 1)",
  ],
  [
    "wrong types everywhere",
    "name: [w]\nruntime: python\nscripts: { start: 5 }\nenv: [A]\nwatch: src\nisolation: vm\n",
    'runtime: expected a mapping, received "python" (line 2)',
    "name: expected the name of the worker, received a list (line 1)",
    "runtime.kind: expected one of python, typescript, javascript, received nothing (line 2)",
    "scripts.start: expected a command, received 5 (line 3)",
    'isolation: expected one of microvm, process, received "vm" (line 6)',
    "env: expected a mapping of names to strings, received a list (line 4)",
    'watch: expected a list of strings, received "src" (line 5)',
  ],
  [
    "watching outside and globs that do not close",
    `name: w\n${PYTHON}watch:\n  - src\n  - /etc\n  - "!../x"\n  - "a[b"\n  - "{a"\n  - "!"\n`,
    "watch[1]: expected a path or glob inside the worker's directory, " +
    'received "/etc" (line 5)',
    "watch[2]: expected a path or glob inside the worker's directory, " +
    'received "!../x" (line 6)',
    'watch[3]: expected a glob whose [ has a ], received "a[b" (line 7)',
    'watch[4]: expected a glob whose { has a }, received "{a" (line 8)',
    'watch[5]: expected a path or glob after !, received "!" (line 9)',
  ],
  [
    "a worker that may reach nothing",
    `name: w\n${PYTHON}network: none\n`,
    "network: expected engine, since a worker has to reach the engine, and with engine it " +
    'reaches nothing else, received "none" (line 3)',
  ],
  [
    "wrong types of all that is contained and restarted",
    `name: w\n${PYTHON}network: [full]\nresources: 512\nreplicas: "3"\nrestart: never\n`,
    "network: expected one of full, engine, received a list (line 3)",
    "resources: expected a mapping, received 512 (line 4)",
    'replicas: expected 1 to 64, received "3" (line 5)',
    'restart: expected a mapping, received "never" (line 6)',
  ],
  [
    "values that are too small",
    `name: w\n${PYTHON}resources: { cpus: 0, memory_mb: 127 }\nreplicas: 0\n` +
    "restart:\n  policy: sometimes\n  max: 0\n  within_s: 0\n  backoff_ms: 0\n",
    "resources.memory_mb: expected 128 to 1048576, received 127 (line 3)",
    "resources.cpus: expected 1 to 64, received 0 (line 3)",
    "replicas: expected 1 to 64, received 0 (line 4)",
    'restart.policy: expected one of always, on-failure, never, received "sometimes" (line 6)',
    "restart.max: expected 1 to 1000, received 0 (line 7)",
    "restart.within_s: expected 1 to 86400, received 0 (line 8)",
    "restart.backoff_ms: expected 1 to 30000, received 0 (line 9)",
  ],
  [
    "values that are too large or no whole numbers",
    `name: w\n${PYTHON}resources: { cpus: 65, memory_mb: 512.5 }\nreplicas: 65\n` +
    "restart: { max: 1001, within_s: 86401, backoff_ms: 30001 }\n",
    "resources.memory_mb: expected 128 to 1048576, received 512.5 (line 3)",
    "resources.cpus: expected 1 to 64, received 65 (line 3)",
    "replicas: expected 1 to 64, received 65 (line 4)",
    "restart.max: expected 1 to 1000, received 1001 (line 5)",
    "restart.within_s: expected 1 to 86400, received 86401 (line 5)",
    "restart.backoff_ms: expected 1 to 30000, received 30001 (line 5)",
  ],
  [
    "mistyped keys inside",
    `name: w\n${PYTHON}resources: { memory: 512, cpu: 1 }\nrestart: { backof_ms: 5 }\n`,
    "resources.memory: expected one of the keys cpus, memory_mb, received an unknown key; " +
    "did you mean memory_mb? (line 3)",
    "resources.cpu: expected one of the keys cpus, memory_mb, received an unknown key; " +
    "did you mean cpus? (line 3)",
    "restart.backof_ms: expected one of the keys policy, max, within_s, backoff_ms, " +
    "received an unknown key; did you mean backoff_ms? (line 4)",
  ],
  [
    "an empty file",
    "# nothing\n",
    "engine.worker.yaml: expected a mapping with name and runtime, received an empty file",
  ],
  [
    "a list",
    "- name: w\n",
    "engine.worker.yaml: expected a mapping, received a list (line 1)",
  ],
];

for (const [title, text, ...problems] of BAD) {
  Deno.test(`readManifest() reports ${title}`, async () => {
    const found = await problemsOf(text, { "main.py": "" });

    assert.deepEqual(found.slice(0, problems.length), problems);
  });
}

Deno.test("readManifest() lists the files it looked for when there is no entry", async () => {
  assert.deepEqual(await problemsOf("name: w\nruntime: { kind: python }\n"), [
    "runtime.entry: expected the entry file, or scripts.start, or one of the files " +
    "main.py, worker.py, src/main.py, src/worker.py, received nothing (line 2)",
  ]);
});

Deno.test("readManifest() names the path when there is no manifest", () => {
  const problem = "/nowhere/w/engine.worker.yaml not found; a worker's directory has one, " +
    "see engine create --template";

  assert.throws(() => readManifest("/nowhere/w"), {
    code: "manifest_invalid",
    message: problem,
  });
});

/** The problems of a directory with an unusual file. */
async function problemsIn(fill: (directory: string) => Promise<unknown>): Promise<string[]> {
  const base = await Deno.makeTempDir();
  const directory = `${base}/w`;
  await Deno.mkdir(directory);
  await fill(directory);
  try {
    readManifest(directory);
    return [];
  } catch (thrown) {
    return ((thrown as EngineError).details!.problems as string[]).map((problem) =>
      problem.replace(base, "")
    );
  } finally {
    await Deno.remove(base, { recursive: true });
  }
}

Deno.test("readManifest() reveals nothing of a file behind a link out of the directory", async () => {
  const problems = await problemsIn(async (directory) => {
    await Deno.writeTextFile(`${directory}/../credentials`, "aws_secret_access_key: abc123");
    await Deno.symlink("../credentials", `${directory}/engine.worker.yaml`);
  });

  assert.deepEqual(problems, [
    "engine.worker.yaml: expected a file at /w/engine.worker.yaml, " +
    "received a link that leads out of the worker's directory",
  ]);
});

Deno.test("readManifest() neither waits for a pipe nor reads a huge file", async () => {
  const pipe = await problemsIn((directory) =>
    new Deno.Command("mkfifo", { args: [`${directory}/engine.worker.yaml`] }).output()
  );
  const huge = await problemsIn(async (directory) => {
    await Deno.writeTextFile(`${directory}/engine.worker.yaml`, "");
    await Deno.truncate(`${directory}/engine.worker.yaml`, 1024 ** 4);
  });

  assert.match(pipe[0]!, /received no ordinary file$/);
  assert.match(huge[0]!, /received 1099511627776 bytes, and at most 16384 are read$/);
});

Deno.test("readManifest() ignores a package.json that is a pipe or lies elsewhere", async () => {
  const text = "name: w\nruntime: { kind: javascript }\n";
  const put = (fill: (path: string) => Promise<unknown>) =>
    problemsIn(async (directory) => {
      await Deno.writeTextFile(`${directory}/engine.worker.yaml`, text);
      await Deno.writeTextFile(`${directory}/../p.json`, '{ "scripts": { "start": "x" } }');
      await fill(`${directory}/package.json`);
    });

  const pipe = await put((path) => new Deno.Command("mkfifo", { args: [path] }).output());
  const link = await put((path) => Deno.symlink("../p.json", path));

  assert.match(pipe[0]!, /^runtime\.entry: expected the entry file/);
  assert.deepEqual(link, pipe);
});
