import assert from "node:assert/strict";
import type { Template } from "../../templates/mod.ts";
import { FakeTerminal } from "../../tests/fakes/fake_terminal.ts";
import { CommandError, UsageError } from "../failure.ts";
import { findTemplate, nameFor, scaffold } from "./create.ts";

async function setup() {
  const directory = await Deno.realPath(await Deno.makeTempDir());
  return {
    directory,
    terminal: new FakeTerminal({ directory }),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

Deno.test("engine create writes a project and says what to do next", async () => {
  await using test = await setup();

  const code = await test.terminal.run(
    "create",
    "--template",
    "quickstart",
    "--directory",
    "hello",
  );

  assert.equal(code, 0);
  assert.ok(test.terminal.outLines.includes("  written  workers/math-worker/math_worker.py"));
  assert.deepEqual(test.terminal.outLines.slice(-5), [
    `Created quickstart in ${test.directory}/hello`,
    "",
    "Next:",
    "  cd hello",
    "  engine --config config.yaml",
  ]);
  const copy = `${test.directory}/hello/.engine/sdk/typescript/engine_sdk.js`;
  assert.ok((await Deno.stat(copy)).isFile);
});

Deno.test("engine project init creates a directory with the project's name", async () => {
  await using test = await setup();

  assert.equal(await test.terminal.run("project", "init", "shop", "--template", "bare"), 0);
  assert.match(await Deno.readTextFile(`${test.directory}/shop/README.md`), /^# shop\n/);
});

Deno.test("a worker is created with the name of its directory, ready to be added", async () => {
  await using test = await setup();
  await test.terminal.run("project", "init", "shop", "--template", "bare");

  const code = await test.terminal.run(
    ...["create", "--template", "typescript-worker", "--directory", "shop/workers/mail"],
  );

  assert.equal(code, 0);
  const worker = `${test.directory}/shop/workers/mail`;
  assert.match(
    await Deno.readTextFile(`${worker}/engine.worker.yaml`),
    /^# yaml-language-server: \$schema=\.\.\/\.\.\/\.engine\/schemas\/engine\.worker\.json\nname: mail\n/,
  );
  assert.match(await Deno.readTextFile(`${worker}/deno.json`), /"\.\.\/\.\.\/\.engine\/sdk/);
  assert.equal(
    test.terminal.outLines.at(-1),
    "  engine worker add ./shop/workers/mail --isolation process",
  );
});

Deno.test("the printed next command can be typed, whatever the name of the directory", async () => {
  await using test = await setup();

  await test.terminal.run("project", "init", "my shop", "--template", "bare");
  const worker = ["--template", "python-worker", "--directory", "my shop/workers/mail"];
  await test.terminal.run("create", ...worker);

  assert.ok(test.terminal.outLines.includes("  cd 'my shop'"));
  assert.equal(
    test.terminal.outLines.at(-1),
    "  engine worker add './my shop/workers/mail' --isolation process",
  );
});

Deno.test("a directory that is not empty is refused; --force names the files it overwrites", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.directory}/README.md`, "mine");

  assert.equal(await test.terminal.run("create", "--directory", "."), 1);
  assert.match(test.terminal.errText, /is not empty \(README\.md\)/);
  assert.equal(await test.terminal.run("create", "--directory", ".", "--force"), 0);
  assert.ok(test.terminal.outLines.includes("  overwritten  README.md"));
});

for (
  const [args, message] of [
    [["create"], /Missing --directory\. Example: engine create --directory hello/],
    [
      ["create", "--directory", "x", "--template", "huge"],
      /no template "huge"; there are:\n {2}quick/,
    ],
    [["project", "init"], /missing required argument 'name'/],
    [["project", "init", " "], /cannot be empty/],
  ] as const
) {
  Deno.test(`engine ${args.join(" ")} is not understood`, async () => {
    await using test = await setup();

    assert.equal(await test.terminal.run(...args), 2);
    assert.match(test.terminal.errText, message);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(test.directory)), []);
  });
}

const project: Template = {
  name: "tiny",
  summary: "A project",
  kind: "project",
  files: { "config.yaml": "name: {{name}}\n", "workers/a/deno.json": "{{engine}}/sdk\n" },
};
const worker: Template = {
  name: "tiny-worker",
  summary: "A worker",
  kind: "worker",
  files: { "deno.json": "{{engine}}/sdk\n" },
};

async function setupProject() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const copies: string[] = [];
  return {
    root,
    copies,
    write: (template: Template, directory: string, force = false) =>
      scaffold({
        template,
        directory,
        force,
        writeProjectFiles: (path) => Promise.resolve(void copies.push(path)),
      }),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("scaffold() writes every file with the name filled in, and what belongs to .engine", async () => {
  await using test = await setupProject();
  const directory = `${test.root}/My Project`;

  const result = await test.write(project, directory);

  assert.deepEqual(result, {
    written: ["config.yaml", "workers/a/deno.json"],
    overwritten: [],
    dataDirectory: `${directory}/.engine`,
  });
  assert.equal(
    await Deno.readTextFile(`${directory}/config.yaml`),
    "# yaml-language-server: $schema=./.engine/schemas/config.json\nname: my-project\n",
  );
  assert.deepEqual(test.copies, [`${directory}/.engine`]);
});

Deno.test("scaffold() points a worker at the SDK copy of the project around it", async () => {
  await using test = await setupProject();
  await Deno.writeTextFile(`${test.root}/config.yaml`, "");

  const result = await test.write(worker, `${test.root}/workers/deep/mine`);

  const text = await Deno.readTextFile(`${test.root}/workers/deep/mine/deno.json`);
  assert.equal(text, "../../../.engine/sdk\n");
  assert.equal(result.dataDirectory, `${test.root}/.engine`);
});

Deno.test("scaffold() gives a worker outside of any project an SDK copy of its own", async () => {
  await using test = await setupProject();

  await test.write(worker, `${test.root}/alone`);

  assert.equal(await Deno.readTextFile(`${test.root}/alone/deno.json`), "./.engine/sdk\n");
  assert.deepEqual(test.copies, [`${test.root}/alone/.engine`]);
});

Deno.test("scaffold() refuses a directory that is not empty, and leaves it as it was", async () => {
  await using test = await setupProject();
  await Deno.writeTextFile(`${test.root}/keep.txt`, "mine");

  await assert.rejects(() => test.write(project, test.root), (thrown) => {
    assert.ok(thrown instanceof CommandError);
    assert.match(thrown.message, /is not empty \(keep\.txt\); choose another .* --force/);
    return true;
  });

  assert.deepEqual(await Array.fromAsync(Deno.readDir(test.root), (e) => e.name), ["keep.txt"]);
  assert.deepEqual(test.copies, []);
});

Deno.test("scaffold() with force overwrites its own files and removes none", async () => {
  await using test = await setupProject();
  await Deno.writeTextFile(`${test.root}/keep.txt`, "mine");
  await Deno.writeTextFile(`${test.root}/config.yaml`, "old");

  const { overwritten } = await test.write(project, test.root, true);

  assert.deepEqual(overwritten, ["config.yaml"]);
  assert.equal(await Deno.readTextFile(`${test.root}/keep.txt`), "mine");
  assert.notEqual(await Deno.readTextFile(`${test.root}/config.yaml`), "old");
});

Deno.test("scaffold() refuses a file where the directory would be", async () => {
  await using test = await setupProject();
  await Deno.writeTextFile(`${test.root}/taken`, "");

  await assert.rejects(() => test.write(project, `${test.root}/taken`), /is not a directory/);
});

Deno.test("an unknown template is refused with the names of all templates", () => {
  assert.equal(findTemplate([project, worker], "tiny"), project);
  assert.throws(() => findTemplate([project, worker], "huge"), (thrown) => {
    assert.ok(thrown instanceof UsageError);
    assert.match(
      thrown.message,
      /There is no template "huge"; there are:\n {2}tiny .*\n {2}tiny-w/,
    );
    return true;
  });
});

Deno.test("nameFor() makes a name of any directory", () => {
  const names = ["/a/My Worker", "/a/math_2", "/a/2fast", "/", "/a/ä/", "/x/--a--"].map(nameFor);

  assert.deepEqual(names, ["my-worker", "math-2", "worker-2fast", "my-worker", "my-worker", "a"]);
});
