/**
 * What the templates write is what the tools of each language accept, before and after the edits
 * that the quickstart asks for.
 *
 * @module
 */
import assert from "node:assert/strict";
import { uncommentBlock } from "../../cli/quickstart/calls_walkthrough.ts";
import { scaffold } from "../../cli/commands/create.ts";
import { parseConfig } from "../../engine/config/config.ts";
import { readManifest } from "../../engine/install/manifest.ts";
import { writeProjectFiles } from "../../engine/mod.ts";
import { type Template, templates } from "../../templates/mod.ts";
import { builtinWorkers } from "../../workers/mod.ts";
import { findNode } from "../fakes/programs.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A template as `engine create` writes it; a worker goes into a project. */
async function setup(template: Template) {
  const root = await Deno.realPath(await Deno.makeTempDir());
  await Deno.writeTextFile(`${root}/config.yaml`, "");
  const directory = template.kind === "worker" ? `${root}/workers/mine` : `${root}/hello`;
  await scaffold({ template, directory, force: false, writeProjectFiles });
  return { directory, [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
}

const hasNode = await findNode("tests/e2e/templates_test.ts");
/** Whether this machine has what the tests of Python workers need. */
const hasPytest = await new Deno.Command("python3", {
  args: ["-c", "import pytest, websockets"],
  stderr: "null",
}).output().then(({ success }) => success, () => false);
if (!hasPytest) console.error("skipped: tests of Python templates need pytest and websockets");

/** Runs a program and hands out all it printed; fails when it does. */
async function succeeds(directory: string, program: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(program, {
    args,
    cwd: directory,
    env: { NO_COLOR: "1" },
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  assert.equal(code, 0, text);
  return text;
}

function pathsOf(template: Template, ending: string): string[] {
  return Object.keys(template.files).filter((path) => path.endsWith(ending));
}

for (const template of templates) {
  Deno.test(`${template.name} has no placeholder left, and no blanks at line ends`, async () => {
    await using written = await setup(template);

    for (const path of Object.keys(template.files)) {
      const text = await Deno.readTextFile(`${written.directory}/${path}`);
      assert.doesNotMatch(text, /\{\{\w+\}\}/, path);
      assert.doesNotMatch(text, /[ \t]$/m, path);
      assert.match(text, /[^\n]\n$/, path);
    }
  });

  for (const path of pathsOf(template, "engine.worker.yaml")) {
    Deno.test(`${template.name}: ${path} is a manifest the engine takes`, async () => {
      await using written = await setup(template);
      const directory = `${written.directory}/${path}`.replace("/engine.worker.yaml", "");

      const spec = readManifest(directory);

      assert.equal(spec.name, directory.split("/").at(-1));
    });

    Deno.test(`${template.name}: ${path} shows in comments what the engine takes`, async () => {
      await using written = await setup(template);
      const file = `${written.directory}/${path}`;
      const before = readManifest(file.replace("/engine.worker.yaml", ""));
      const text = await Deno.readTextFile(file);
      await Deno.writeTextFile(file, text.replaceAll(/^# (?=[a-z]+: )/gm, ""));

      const { env, watch, microvmKeys, ...spec } = readManifest(
        file.replace("/engine.worker.yaml", ""),
      );

      const { env: _env, watch: _watch, ...defaults } = before;
      assert.deepEqual(spec, defaults); // What is shown is the default, but for these.
      if (template.kind === "worker") {
        assert.deepEqual(env, { LEVEL: "debug" });
        assert.deepEqual(watch, [".", "!generated/**"]);
        assert.deepEqual(microvmKeys, ["network", "resources"]);
      }
    });
  }

  for (const path of pathsOf(template, "config.yaml")) {
    Deno.test(`${template.name}: ${path} is a configuration the engine takes`, () => {
      const config = parseConfig(template.files[path]!, "/p/config.yaml", builtinWorkers, {});

      assert.equal(config.engine.port, 49134);
    });
  }

  for (const path of pathsOf(template, ".ts")) {
    for (const block of ["", "http"]) {
      if (block !== "" && !template.files[path]!.includes(`${block}: begin`)) continue;
      const which = block === "" ? "" : ` with its ${block} block`;

      Deno.test(`${template.name}: ${path}${which} is checked, formatted and linted`, async () => {
        await using written = await setup(template);
        const file = `${written.directory}/${path}`;
        if (block !== "") {
          await Deno.writeTextFile(file, uncommentBlock(await Deno.readTextFile(file), block));
        }
        const directory = file.slice(0, file.lastIndexOf("/"));
        const style = ["--no-config", "--line-width=100"];

        await succeeds(directory, Deno.execPath(), "check", file);
        await succeeds(directory, Deno.execPath(), "fmt", "--check", ...style, file);
        await succeeds(directory, Deno.execPath(), "lint", "--no-config", file);
      });
    }
  }

  for (const path of pathsOf(template, "_test.ts")) {
    Deno.test(`${template.name}: ${path} is a test that passes`, async () => {
      await using written = await setup(template);
      const [, directory = ".", name = path] = /^(.*)\/([^/]*)$/.exec(path) ?? [];

      const args = ["test", "-A", name];
      const text = await succeeds(`${written.directory}/${directory}`, Deno.execPath(), ...args);

      assert.match(text, /\| 1 passed \| 0 failed/);
    });
  }

  for (const path of pathsOf(template, ".test.js")) {
    Deno.test({
      name: `${template.name}: ${path} is a test that passes`,
      ignore: !hasNode,
      async fn() {
        await using written = await setup(template);
        const { directory } = written;
        // As the installation of the worker does.
        await Deno.mkdir(`${directory}/node_modules`);
        await Deno.symlink(`${ROOT}sdk/npm`, `${directory}/node_modules/engine-sdk`);

        const text = await succeeds(directory, "node", "--test", path);

        assert.match(text, /pass 1/);
      },
    });
  }

  for (const path of Object.keys(template.files).filter((each) => /\/?test_\w+\.py$/.test(each))) {
    Deno.test({
      name: `${template.name}: ${path} is a test that passes`,
      ignore: !hasPytest,
      async fn() {
        await using written = await setup(template);
        const [, directory = ".", name = path] = /^(.*)\/([^/]*)$/.exec(path) ?? [];

        const args = ["-m", "pytest", "-p", "no:cacheprovider", name];
        const text = await succeeds(`${written.directory}/${directory}`, "python3", ...args);

        assert.match(text, /\b1 passed\b/);
      },
    });
  }

  for (const path of pathsOf(template, ".html")) {
    Deno.test(`${template.name}: ${path} is formatted`, async () => {
      await using written = await setup(template);

      const style = ["--no-config", "--line-width=100"];
      await succeeds(written.directory, Deno.execPath(), "fmt", "--check", ...style, path);
    });
  }

  for (const path of pathsOf(template, ".py")) {
    for (const block of ["", "state"]) {
      if (block !== "" && !template.files[path]!.includes(`${block}: begin`)) continue;
      const which = block === "" ? "" : ` with its ${block} block`;

      Deno.test(`${template.name}: ${path}${which} is Python`, async () => {
        await using written = await setup(template);
        const file = `${written.directory}/${path}`;
        if (block !== "") {
          await Deno.writeTextFile(file, uncommentBlock(await Deno.readTextFile(file), block));
        }

        await succeeds(written.directory, "python3", "-m", "py_compile", path);
      });
    }
  }
}

Deno.test("every file of a template folder is used by a template", async () => {
  const deploy = await Deno.readTextFile(`${ROOT}templates/deploy/mod.ts`);
  const used = await Deno.readTextFile(`${ROOT}templates/mod.ts`) +
    deploy.replaceAll('"./', '"./deploy/');
  const unused: string[] = [];
  const walk = async (directory: string): Promise<void> => {
    for await (const { name, isDirectory } of Deno.readDir(`${ROOT}templates/${directory}`)) {
      const path = directory === "" ? name : `${directory}/${name}`;
      if (isDirectory) await walk(path);
      else if (name !== "mod.ts" && !used.includes(`./${path}"`)) unused.push(path);
    }
  };

  await walk("");

  assert.deepEqual(unused, []);
});
