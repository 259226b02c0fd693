import assert from "node:assert/strict";
import {
  addWorkerEntry,
  changeWorkerConfig,
  changeWorkerKeys,
  removeWorkerEntry,
  writeConfigFile,
} from "./file.ts";
import { readYaml } from "./yaml.ts";

const FILE = `# My project.

engine:
  port: 49134   # the usual one

workers:
  # Shared values.
  - name: "engine-state"

  # The sums.
  - name: math-worker   # in Python
    path: './workers/math worker'
    # env:
    #   DEBUG: 1
    isolation: process

# What else is said.
log: { level: info }
`;

Deno.test("addWorkerEntry() inserts lines and changes no other", () => {
  const entry = {
    name: "caller-worker",
    path: "./workers/caller",
    isolation: "microvm",
    accel: "tcg",
    replicas: 2,
  } as const;

  const edited = addWorkerEntry(FILE, entry);

  const added = "  - name: caller-worker\n    path: ./workers/caller\n    isolation: microvm\n" +
    "    accel: tcg\n    replicas: 2\n";
  const before = "    isolation: process\n";
  assert.equal(edited, FILE.replace(before, before + added));
});

Deno.test("removeWorkerEntry() removes the lines of the item; comments above it stay", () => {
  const edited = removeWorkerEntry(FILE, "math-worker");

  const gone = / {2}- name: math-worker[\s\S]*isolation: process\n/;
  assert.equal(edited, FILE.replace(gone, ""));
  assert.match(edited, /# The sums\.\n\n# What else/);
});

Deno.test("removeWorkerEntry() undoes addWorkerEntry()", () => {
  const edited = addWorkerEntry(FILE, { name: "x", config: { port: 3111, deep: { a: [1] } } });

  assert.equal(removeWorkerEntry(edited, "x"), FILE);
});

Deno.test("removeWorkerEntry() leaves an empty list behind the last worker", () => {
  const text = "workers: # all\n  - name: a\nlog:\n  level: info\n";

  const edited = removeWorkerEntry(text, "a");

  assert.equal(edited, "workers: [] # all\nlog:\n  level: info\n");
  assert.equal(addWorkerEntry(edited, { name: "a" }), text);
});

Deno.test("changeWorkerConfig() changes the keys it is given and keeps all else", () => {
  const text = "# mine\nworkers:\n  - name: b\n    config:\n      port: 1 # p\n      host: ${H}\n" +
    "  - name: c # last\n";

  const changed = changeWorkerConfig(text, "b", { port: 2 });
  const added = changeWorkerConfig(text, "c", { cors: { origins: ["*"] } });

  assert.ok(changed.startsWith("# mine\nworkers:\n  - name: b\n"), changed);
  assert.match(changed, /port: 2\n +host: \$\{H\}\n {2}- name: c # last\n/);
  assert.match(added, /port: 1 # p[^]*name: c # last\n {4}config:\n/);
  assert.throws(() => changeWorkerConfig(text, "d", {}), { code: "NOT_FOUND" });
});

Deno.test("changeWorkerKeys() changes one word or adds one line for each key", () => {
  const changed = changeWorkerKeys(FILE, "math-worker", { isolation: "microvm" });
  const added = changeWorkerKeys("workers:\n- name: a\n  path: ./a\n", "a", {
    isolation: "process",
    replicas: 2,
  });

  assert.equal(changed, FILE.replace("isolation: process", "isolation: microvm"));
  assert.equal(added, "workers:\n- name: a\n  path: ./a\n  isolation: process\n  replicas: 2\n");
});

Deno.test("changeWorkerKeys() keeps comments, blank lines and all other keys", () => {
  const text = "# mine\nworkers:\n  - name: a # one\n    path: ./a\n\n    # how\n" +
    "    accel: auto # for now\n    replicas: 1   # few\n    env:\n      accel: x\n\n" +
    "  # last\n  - name: b\n    path: ./b\n";

  const edited = changeWorkerKeys(text, "a", { accel: "tcg", replicas: 12, isolation: "microvm" });

  const expected = text.replace("accel: auto", "accel: tcg").replace(
    "replicas: 1 ",
    "replicas: 12 ",
  )
    .replace("      accel: x\n", "      accel: x\n    isolation: microvm\n");
  assert.equal(edited, expected);
});

Deno.test("changeWorkerKeys() puts a value in the place of a variable", () => {
  const text = "workers:\n  - name: a\n    path: ./a\n    accel: ${ACCEL:kvm}\n";

  assert.equal(
    changeWorkerKeys(text, "a", { accel: "tcg" }),
    "workers:\n  - name: a\n    path: ./a\n    accel: tcg\n",
  );
});

Deno.test("changeWorkerKeys() refuses a name that is not there", () => {
  assert.throws(() => changeWorkerKeys(FILE, "unknown", { replicas: 2 }), { code: "NOT_FOUND" });
});

for (
  const [title, before, after] of [
    ["an empty text", "", "workers:\n  - name: a\n"],
    [
      "a text without workers",
      "log:\n  level: info\n\n",
      "log:\n  level: info\nworkers:\n  - name: a\n",
    ],
    ["a key without a value", "workers:\nlog: {}\n", "workers:\n  - name: a\nlog: {}\n"],
    ["an empty list", "workers: []   # none\n", "workers:   # none\n  - name: a\n"],
    ["a list that is not indented", "workers:\n- name: x\n", "workers:\n- name: x\n- name: a\n"],
    [
      "a file that ends without a line end",
      "workers:\n  - name: x",
      "workers:\n  - name: x\n  - name: a\n",
    ],
    [
      "Windows line ends",
      "workers:\r\n  - name: x\r\n",
      "workers:\r\n  - name: x\r\n  - name: a\r\n",
    ],
  ] as const
) {
  Deno.test(`addWorkerEntry() adds to ${title}`, () => {
    assert.equal(addWorkerEntry(before, { name: "a" }), after);
  });
}

for (
  const [title, text] of [
    ["a list on one line", "workers: [{ name: x }, { name: y }] # two\n"],
    ["a dash on its own line", "workers:\n  -\n    name: x\n  -\n    name: y\n"],
    ["a document in braces", "{ workers: [{ name: x }, { name: y }] }\n"],
    ["a document with an end mark", "workers:\n  - name: x\n  - name: y\n...\n"],
    ["a quoted key", '"workers":\n  - {name: x}\n  - {name: y}\n'],
    [
      "a text block",
      "workers:\n  - name: x\n    note: |\n      - name: z\n\n      end\n  - name: y\n",
    ],
  ] as const
) {
  Deno.test(`edits keep the meaning of ${title}`, () => {
    const added = addWorkerEntry(text, { name: "a", path: "./a b" });
    const removed = removeWorkerEntry(added, "y");
    const changed = changeWorkerKeys(removed, "x", { isolation: "process", replicas: 2 });

    const { value, problems } = readYaml("config.yaml", changed);
    assert.deepEqual(problems, []);
    const { workers } = value as { workers: Record<string, unknown>[] };
    assert.deepEqual(workers.map((worker) => worker.name), ["x", "a"]);
    assert.deepEqual([workers[0]!.isolation, workers[0]!.replicas], ["process", 2]);
    assert.equal(workers[1]!.path, "./a b");
  });
}

Deno.test("addWorkerEntry() quotes what YAML would read as something else", () => {
  const edited = addWorkerEntry("", { name: "true", path: "/a: b", config: { v: "1.0", n: null } });

  const worker = { name: "true", path: "/a: b", config: { v: "1.0", n: null } };
  assert.deepEqual(readYaml("f", edited).value, { workers: [worker] });
});

Deno.test("edits leave variables as they are written", () => {
  const text = "engine:\n  auth_token: ${TOKEN}\nworkers: []\n";

  assert.match(addWorkerEntry(text, { name: "a" }), /auth_token: \$\{TOKEN\}\n/);
});

Deno.test("edits refuse a text that is broken or of another shape", () => {
  const invalid = { code: "config_invalid" };

  assert.throws(() => addWorkerEntry("workers:\n\t- name: a\n", { name: "b" }), {
    ...invalid,
    details: {
      problems: ["config.yaml: expected spaces for indentation, received a tab (line 2)"],
    },
  });
  assert.throws(() => addWorkerEntry("- name: a\n", { name: "b" }), invalid);
  assert.throws(() => removeWorkerEntry("workers: 5\n", "a"), invalid);
  assert.throws(() => removeWorkerEntry("just text", "a"), invalid);
});

Deno.test("removeWorkerEntry() refuses a name that is not there", () => {
  assert.throws(() => removeWorkerEntry(FILE, "unknown"), {
    code: "NOT_FOUND",
    message: "config.yaml has no worker unknown",
  });
});

Deno.test("writeConfigFile() replaces the text, keeps the mode and leaves nothing else", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "old", { mode: 0o600 });

  await writeConfigFile(path, "new", "old");

  assert.equal(await Deno.readTextFile(path), "new");
  assert.equal((await Deno.stat(path)).mode! & 0o777, 0o600);
  assert.deepEqual([...Deno.readDirSync(directory)].map(({ name }) => name), ["config.yaml"]);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("writeConfigFile() writes through a link and makes a file that is not there", async () => {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/real.yaml`, "old");
  await Deno.symlink(`${directory}/real.yaml`, `${directory}/config.yaml`);

  await writeConfigFile(`${directory}/config.yaml`, "new", "old");
  await writeConfigFile(`${directory}/other.yaml`, "first");

  assert.equal((await Deno.lstat(`${directory}/config.yaml`)).isSymlink, true);
  assert.equal(await Deno.readTextFile(`${directory}/real.yaml`), "new");
  assert.equal(await Deno.readTextFile(`${directory}/other.yaml`), "first");
  await Deno.remove(directory, { recursive: true });
});

Deno.test("writeConfigFile() fails when another program wrote in between", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "theirs");

  await assert.rejects(writeConfigFile(path, "mine", "what I read"), { code: "config_conflict" });
  await assert.rejects(writeConfigFile(path, "mine"), { code: "config_conflict" });

  assert.equal(await Deno.readTextFile(path), "theirs");
  assert.deepEqual([...Deno.readDirSync(directory)].map(({ name }) => name), ["config.yaml"]);
  await Deno.remove(directory, { recursive: true });
});

Deno.test("writeConfigFile() loses nothing that another program writes meanwhile", async () => {
  const directory = await Deno.makeTempDir();
  const path = `${directory}/config.yaml`;
  await Deno.writeTextFile(path, "theirs 0");
  // A program of its own that edits the same file in place: each of its texts either stays or is
  // what the engine's next text was made from.
  const writer = new Deno.Command(Deno.execPath(), {
    args: ["eval", OTHER_WRITER, path],
    stderr: "inherit",
  }).spawn();
  let code: number | undefined;
  void writer.status.then((status) => code = status.code);

  let written = 0;
  for (let i = 0; code === undefined; i++) {
    const before = await Deno.readTextFile(path);
    const from = /\d+$/.exec(before)?.[0];
    if (from === undefined) continue; // They are writing.
    written += await writeConfigFile(path, `mine ${i} from ${from}`, before).then(() => 1, () => 0);
  }

  assert.equal(code, 0);
  assert.ok(written > 0);
  assert.deepEqual([...Deno.readDirSync(directory)].map(({ name }) => name), ["config.yaml"]);
  await Deno.remove(directory, { recursive: true });
});

/** Writes 60 texts; fails when one of them was lost. */
const OTHER_WRITER = `
  const [path] = Deno.args;
  for (let i = 1; i <= 60; i++) {
    Deno.writeTextFileSync(path, "theirs " + i);
    await new Promise((resolve) => setTimeout(resolve, 80));
    const text = Deno.readTextFileSync(path);
    if (!text.endsWith(" " + i)) throw new Error("lost theirs " + i + ": " + text);
  }
`;
