import assert from "node:assert/strict";
import type { EngineError } from "../../sdk/typescript/errors.ts";
import { readManifest, shellWord, type WorkerSpec } from "./manifest.ts";

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
watch: [src, app.py]
isolation: process
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
    watch: ["src", "app.py"],
    isolation: "process",
  });
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

Deno.test("readManifest() leaves the start to package.json where it has one", async () => {
  const files = { "package.json": '{"scripts":{"start":"tsx src/app.ts"}}' };

  const spec = await read("name: w\nruntime: { kind: typescript, package_manager: npm }\n", files);

  assert.equal(spec.start, "exec npm run --silent start");
});

Deno.test("readManifest() asks for no entry beside a start command", async () => {
  const spec = await read("name: w\nruntime: { kind: javascript }\nscripts: { start: ./run }\n");

  assert.equal(spec.entry, null);
  assert.equal(spec.start, "./run");
});

Deno.test("readManifest() lets the installation make the entry", async () => {
  const text = "name: w\nruntime: { kind: javascript, entry: dist/a.js }\n" +
    "scripts: { install: npm run build }\n";

  assert.equal((await read(text)).start, "exec node dist/a.js");
});

Deno.test("readManifest() takes an empty watch list for off", async () => {
  const text = "name: w\nruntime: { kind: python }\nwatch: []\n";

  assert.deepEqual((await read(text, { "main.py": "" })).watch, []);
});

const PYTHON = "runtime: { kind: python }\n";
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
    "nmae: expected one of the keys name, runtime, scripts, env, watch, isolation, " +
    "received an unknown key; did you mean name? (line 1)",
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
    "scripts.start: expected a command, since npm does not say how to run TypeScript, " +
    "received nothing (line 1)",
  ],
  [
    "wrong types everywhere",
    "name: [w]\nruntime: python\nscripts: { start: 5 }\nenv: [A]\nwatch: src\nisolation: vm\n",
    'runtime: expected a mapping, received "python" (line 2)',
    "name: expected the name of the worker, received a list (line 1)",
    "runtime.kind: expected one of python, typescript, javascript, received nothing (line 2)",
    "scripts.start: expected a command, received 5 (line 3)",
    'isolation: expected one of microvm, process, received "vm" (line 6)',
    "env: expected a mapping of names to texts, received a list (line 4)",
    'watch: expected a list of texts, received "src" (line 5)',
  ],
  [
    "watching outside",
    `name: w\n${PYTHON}watch: [src, /etc]\n`,
    'watch: expected paths inside the worker\'s directory, received "/etc" (line 3)',
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

Deno.test("readManifest() says which files it looked for when there is no entry", async () => {
  assert.deepEqual(await problemsOf("name: w\nruntime: { kind: python }\n"), [
    "runtime.entry: expected the entry file, or scripts.start, or one of the files " +
    "main.py, worker.py, src/main.py, src/worker.py, received nothing (line 2)",
  ]);
});

Deno.test("readManifest() says where it looked when there is no manifest", () => {
  const problem = "engine.worker.yaml: expected a file at /nowhere/w/engine.worker.yaml, " +
    "received nothing there";

  assert.throws(() => readManifest("/nowhere/w"), {
    code: "manifest_invalid",
    message: `/nowhere/w/engine.worker.yaml cannot be used: ${problem}`,
  });
});

Deno.test("shellWord() keeps a shell from reading more into a text", () => {
  assert.equal(shellWord("src/main.py"), "src/main.py");
  assert.equal(shellWord("it's $(rm)"), `'it'\\''s $(rm)'`);
});
