import assert from "node:assert/strict";
import type { Template } from "../templates/mod.ts";
import { CommandError, UsageError } from "./failure.ts";
import { findTemplate, nameFor, scaffold } from "./scaffold.ts";

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

async function setup() {
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
        writeSdkCopies: (path) => Promise.resolve(void copies.push(path)),
      }),
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("scaffold() writes every file with the name filled in, and the SDK copies", async () => {
  await using test = await setup();
  const directory = `${test.root}/My Project`;

  const result = await test.write(project, directory);

  assert.deepEqual(result, {
    written: ["config.yaml", "workers/a/deno.json"],
    overwritten: [],
    dataDirectory: `${directory}/.engine`,
  });
  assert.equal(await Deno.readTextFile(`${directory}/config.yaml`), "name: my-project\n");
  assert.deepEqual(test.copies, [`${directory}/.engine`]);
});

Deno.test("scaffold() points a worker at the SDK copy of the project around it", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.root}/config.yaml`, "");

  const result = await test.write(worker, `${test.root}/workers/deep/mine`);

  const text = await Deno.readTextFile(`${test.root}/workers/deep/mine/deno.json`);
  assert.equal(text, "../../../.engine/sdk\n");
  assert.equal(result.dataDirectory, `${test.root}/.engine`);
});

Deno.test("scaffold() gives a worker outside of any project an SDK copy of its own", async () => {
  await using test = await setup();

  await test.write(worker, `${test.root}/alone`);

  assert.equal(await Deno.readTextFile(`${test.root}/alone/deno.json`), "./.engine/sdk\n");
  assert.deepEqual(test.copies, [`${test.root}/alone/.engine`]);
});

Deno.test("scaffold() refuses a directory that is not empty, and leaves it as it was", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.root}/keep.txt`, "mine");

  await assert.rejects(() => test.write(project, test.root), (thrown) => {
    assert.ok(thrown instanceof CommandError);
    assert.match(thrown.message, /is not empty \(keep\.txt\); choose another .* --force/);
    return true;
  });

  assert.deepEqual(await Array.fromAsync(Deno.readDir(test.root), (e) => e.name), ["keep.txt"]);
  assert.deepEqual(test.copies, []);
});

Deno.test("scaffold() with force writes over its own files and removes none", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.root}/keep.txt`, "mine");
  await Deno.writeTextFile(`${test.root}/config.yaml`, "old");

  const { overwritten } = await test.write(project, test.root, true);

  assert.deepEqual(overwritten, ["config.yaml"]);
  assert.equal(await Deno.readTextFile(`${test.root}/keep.txt`), "mine");
  assert.notEqual(await Deno.readTextFile(`${test.root}/config.yaml`), "old");
});

Deno.test("scaffold() refuses a file in the place of the directory", async () => {
  await using test = await setup();
  await Deno.writeTextFile(`${test.root}/taken`, "");

  await assert.rejects(() => test.write(project, `${test.root}/taken`), /is not a directory/);
});

Deno.test("an unknown template is refused with the names there are", () => {
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
