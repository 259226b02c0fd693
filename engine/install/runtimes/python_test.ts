import assert from "node:assert/strict";
import { inspectPython, type PythonFacts } from "./python.ts";

/** A directory whose `bin` holds a python3 that is this script. */
async function withPython(
  script: string,
  check: (probe: (isolated?: boolean) => Promise<PythonFacts>) => Promise<void>,
): Promise<void> {
  const directory = await Deno.makeTempDir();
  await Deno.writeTextFile(`${directory}/python3`, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  await check((isolated = false) =>
    inspectPython({ name: "w", directory, env: { PATH: directory } }, { isolated })
  );
  await Deno.remove(directory, { recursive: true });
}

/** What the probe prints, as a script. */
function facts(isRecent: boolean, hasPip: boolean, version: string): string {
  const all = [isRecent, hasPip, version, "/x/bin/python3", "/x", "/usr"];
  return `echo '${JSON.stringify(all)}'`;
}

const PATH = Deno.env.get("PATH")!;

Deno.test("inspectPython() reads the facts of this machine's Python", async () => {
  const question = { name: "w", directory: "/", env: { PATH } };

  for (const isolated of [true, false]) {
    const python = await inspectPython(question, { isolated });

    assert.match(python.version, /^3\.\d+\.\d+/);
    assert.equal((await Deno.stat(python.executable)).isFile, true);
    assert.equal((await Deno.stat(`${python.basePrefix}/lib`)).isDirectory, true);
    assert.equal((await Deno.stat(python.prefix)).isDirectory, true);
  }
});

Deno.test("inspectPython() runs nothing that lies in the directory", async () => {
  const directory = await Deno.makeTempDir();
  const evil = "import os; os.mkdir(os.path.join(os.path.dirname(__file__), 'RAN'))";
  for (const name of ["importlib", "json", "site", "sitecustomize", "usercustomize", "os"]) {
    await Deno.mkdir(`${directory}/${name}`);
    await Deno.writeTextFile(`${directory}/${name}/__init__.py`, evil);
    await Deno.writeTextFile(`${directory}/${name}/util.py`, evil);
  }
  const question = { name: "w", directory };

  for (const isolated of [true, false]) {
    const env = { PATH, ...isolated ? { PYTHONPATH: directory, PYTHONSTARTUP: "x.py" } : {} };
    assert.ok((await inspectPython({ ...question, env }, { isolated })).version);
  }

  for (const { name } of Deno.readDirSync(directory)) {
    const files = [...Deno.readDirSync(`${directory}/${name}`)].map(({ name }) => name).sort();
    assert.deepEqual(files, ["__init__.py", "util.py"], name);
  }
  await Deno.remove(directory, { recursive: true });
});

Deno.test("inspectPython() ignores user packages when isolated", () =>
  withPython(
    `[ "$1" = -I ] && ${facts(true, false, "1")} || ${facts(true, true, "2")}`,
    async (probe) => {
      assert.equal((await probe(true)).version, "1");
      assert.equal((await probe(false)).version, "2");
    },
  ));

Deno.test("inspectPython() refuses a Python that is too old", () =>
  withPython(facts(false, true, "3.8.2"), async (probe) => {
    await assert.rejects(probe(), {
      code: "launch_failed",
      message: "Worker w needs Python 3.10 or later; python3 is 3.8.2",
    });
  }));

Deno.test("inspectPython() reports a Python that does not run, with its last line", () =>
  withPython("echo first >&2; echo broken >&2; exit 1", async (probe) => {
    await assert.rejects(probe(), {
      code: "launch_failed",
      message: "Worker w needs python3, which does not run here: broken",
    });
  }));

for (const answer of ["hello", "[]", "{}", "null", '[true,true,"3.12"]', ""]) {
  Deno.test(`inspectPython() refuses the answer ${answer || "nothing"}`, () =>
    withPython(`echo '${answer}'`, async (probe) => {
      await assert.rejects(probe(), { code: "launch_failed", message: /which does not run here/ });
    }));
}

Deno.test("inspectPython() returns version, places and whether there is pip", () =>
  withPython(facts(true, false, "3.11.2"), async (probe) => {
    assert.deepEqual(await probe(), {
      version: "3.11.2",
      hasPip: false,
      executable: "/x/bin/python3",
      prefix: "/x",
      basePrefix: "/usr",
    });
  }));
