import assert from "node:assert/strict";
import { pinContainment } from "../containment.ts";
import { cacheEnv, findRuntime, isDependencyFile } from "./mod.ts";

const PATH = Deno.env.get("PATH")!;

/** A worker's directory, and folders for programs beside it. */
async function setup() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const directory = `${root}/w`;
  const dataDirectory = `${root}/.engine`;
  for (const path of [directory, dataDirectory]) await Deno.mkdir(path);
  const find = (packageManager: "pip" | "uv" | "npm" | "deno", path: string) => {
    const kind = packageManager === "pip" || packageManager === "uv" ? "python" : "javascript";
    return findRuntime({ name: "w", kind, packageManager, directory, path, dataDirectory });
  };
  const program = async (path: string, script: string): Promise<string> => {
    const file = `${root}/${path}`;
    const folder = file.slice(0, file.lastIndexOf("/"));
    await Deno.mkdir(folder, { recursive: true });
    await Deno.writeTextFile(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return folder;
  };
  /** A program that is no script; it is never run. */
  const binary = async (path: string): Promise<string> => {
    const folder = await program(path, "");
    await Deno.writeFile(`${root}/${path}`, new Uint8Array([0x7f, 0x45, 0x4c, 0x46, 1]));
    return folder;
  };
  const remove = () => Deno.remove(root, { recursive: true });
  return { root, directory, dataDirectory, find, program, binary, [Symbol.asyncDispose]: remove };
}

function pythonSays(executable: string, prefix: string, basePrefix = prefix): string {
  return `echo '${JSON.stringify([true, true, "3.12.1", executable, prefix, basePrefix])}'`;
}

Deno.test("findRuntime() finds the Python of this machine behind a script", async () => {
  await using there = await setup();

  const { folders, bins, facts } = await there.find("pip", PATH);

  const real = await Deno.realPath(`${bins.at(-1)}/python3`);
  assert.ok(real.startsWith("/usr/") || folders.some((folder) => real.startsWith(`${folder}/`)));
  assert.ok(facts!.fingerprint.some((text) => text.startsWith("3.")));
});

Deno.test("findRuntime() shares nothing for a Python below /usr, and puts it first", async () => {
  await using there = await setup();
  const path = await there.program(
    "shims/python3",
    pythonSays("/usr/local/bin/python3", "/usr/local"),
  );

  const { folders, bins } = await there.find("pip", path + ":/bin");

  assert.deepEqual([folders, bins], [[], ["/usr/local/bin"]]);
});

Deno.test("findRuntime() shares a virtual environment and its base installation", async () => {
  await using there = await setup();
  const { root } = there;
  await Deno.mkdir(`${root}/pyenv/3.12.1/bin`, { recursive: true });
  await Deno.symlink(`${root}/pyenv/3.12.1`, `${root}/pyenv/3.12`);
  const says = pythonSays(`${root}/venv/bin/python3`, `${root}/venv`, `${root}/pyenv/3.12`);
  const path = await there.program("venv/bin/python3", says);

  const { folders, bins } = await there.find("pip", path + ":/bin");

  const expected = [`${root}/venv`, `${root}/pyenv/3.12`, `${root}/pyenv/3.12.1`];
  assert.deepEqual(folders, expected);
  assert.deepEqual(bins, [`${root}/venv/bin`, `${root}/pyenv/3.12/bin`]);
});

Deno.test("findRuntime() shares the whole prefix of Nix", async () => {
  await using there = await setup();
  const prefix = "/nix/store/abc-python3-3.12.1";
  const path = await there.program("bin/python3", pythonSays(`${prefix}/bin/python3`, prefix));

  const { folders } = await there.find("pip", path + ":/bin");

  assert.deepEqual(folders, ["/nix/store"]);
});

Deno.test("findRuntime() runs no program in the worker's directory, neither by PATH nor by a link", async () => {
  await using there = await setup();
  const { root, directory } = there;
  const ran = `${root}/RAN`;
  const own = await there.program("w/.venv/bin/python3", `touch ${ran}; ${pythonSays("/x", "/x")}`);
  await there.program("w/.venv/bin/node", `touch ${ran}; echo /x/bin/node`);
  await there.program("w/.venv/bin/deno", `touch ${ran}; echo /x/bin/deno`);
  await Deno.symlink(own, `${root}/linked`);
  await Deno.mkdir(`${root}/bin`);
  for (const name of ["python3", "node", "deno"]) {
    await Deno.symlink(`${own}/${name}`, `${root}/bin/${name}`);
  }

  for (
    const path of [
      own,
      `${root}/linked`,
      `${root}/bin`,
      ".venv/bin",
      "",
      `${directory}/.venv/../.venv/bin`,
    ]
  ) {
    for (const manager of ["pip", "npm", "deno"] as const) {
      await assert.rejects(there.find(manager, path), { code: "launch_failed" }, path);
    }
  }
  const { bins } = await there.find("pip", `${own}:${PATH}`);
  assert.ok(!bins.includes(own));
  assert.equal(await Deno.stat(ran).then(() => true, () => false), false);
});

Deno.test("findRuntime() runs programs at the root, where no version file lies", async () => {
  await using there = await setup();
  const path = await there.program("bin/node", 'echo "${PWD%/}/opt/node/bin/node"');

  const { bins } = await there.find("npm", path + ":/bin");

  assert.equal(bins[0], "/opt/node/bin");
});

Deno.test("findRuntime() shares the installation of Node behind a script", async () => {
  await using there = await setup();
  const { root } = there;
  await there.program("nvm/v20/bin/node", "exit 1");
  const path = await there.program("shims/node", `echo ${root}/nvm/v20/bin/node`);

  const { folders, bins } = await there.find("npm", path + ":/bin");

  assert.deepEqual([folders, bins[0]], [[`${root}/nvm/v20`], `${root}/nvm/v20/bin`]);
});

Deno.test("findRuntime() shares an npm that is installed apart from Node", async () => {
  await using there = await setup();
  const { root } = there;
  const path = await there.program("node/bin/node", `echo ${root}/node/bin/node`);
  await there.program("global/lib/node_modules/npm/bin/npm-cli.js", "");
  await Deno.mkdir(`${root}/global/bin`);
  await Deno.symlink("../lib/node_modules/npm/bin/npm-cli.js", `${root}/global/bin/npm`);

  const { folders, bins } = await there.find("npm", `${path}:${root}/global/bin:/bin`);

  assert.deepEqual(folders, [`${root}/node`, `${root}/global`]);
  assert.deepEqual(bins, [`${root}/node/bin`, `${root}/global/bin`]);
});

for (const [manager, program] of [["deno", "deno"], ["uv", "uv"]] as const) {
  Deno.test(`findRuntime() gives ${program} a folder of its own, without the files beside it`, async () => {
    await using there = await setup();
    const path = await there.binary(`.local/bin/${program}`);
    await there.program(".local/bin/python3", pythonSays("/usr/bin/python3", "/usr"));
    await Deno.writeTextFile(`${path}/secret`, "mine");

    const first = await there.find(manager, path + ":/bin");
    const again = await there.find(manager, path + ":/bin");

    const [folder] = first.folders;
    assert.ok(folder!.startsWith(`${there.dataDirectory}/runtimes/${program}-`));
    assert.deepEqual([...Deno.readDirSync(folder!)].map(({ name }) => name), [program]);
    assert.ok(first.bins.includes(folder!));
    assert.deepEqual(again, first);
    await Deno.remove(`${path}/${program}`);
    await there.binary(`.local/bin/${program}`);
    await Deno.truncate(`${path}/${program}`, 1000);
    assert.notEqual((await there.find(manager, path + ":/bin")).folders[0], folder);
  });
}

Deno.test("findRuntime() finds uv beside the Python behind a script", async () => {
  await using there = await setup();
  const { root } = there;
  const path = await there.program(
    "shims/python3",
    pythonSays(`${root}/py/bin/python3`, `${root}/py`),
  );
  await there.program("shims/uv", "exit 1");

  await assert.rejects(there.find("uv", path + ":/bin"), {
    code: "launch_failed",
    message:
      /^Worker w needs uv, and \S+\/shims\/uv only leads to it; put the folder of the program/,
  });
  await there.binary("py/bin/uv");
  const { folders } = await there.find("uv", path + ":/bin");

  assert.equal(folders.length, 2);
});

Deno.test("findRuntime() asks a script for its Deno, but runs no binary", async () => {
  await using there = await setup();
  const { root } = there;
  await there.binary("real/deno");
  const path = await there.program("shims/deno", `echo ${root}/real/deno`);

  const { folders } = await there.find("deno", path + ":/bin");

  const content = await Deno.readFile(`${folders[0]}/deno`);
  assert.deepEqual([...content], [0x7f, 0x45, 0x4c, 0x46, 1]);
});

Deno.test("findRuntime() names a program that is missing or does not run", async () => {
  await using there = await setup();
  for (
    const [manager, program] of [["npm", "node"], ["deno", "deno"], ["pip", "python3"]] as const
  ) {
    await assert.rejects(there.find(manager, "/nowhere"), {
      code: "launch_failed",
      message: new RegExp(`^Worker w needs ${program}, which is not on the PATH; install`),
    });
    const path = await there.program(`broken/${program}`, "echo broken >&2; exit 1");
    await assert.rejects(there.find(manager, path + ":/bin"), {
      code: "launch_failed",
      message: `Worker w needs ${program}, which does not run here: broken`,
    });
  }
});

Deno.test("findRuntime() runs no program that another contained worker can write", async () => {
  await using there = await setup();
  await pinContainment(there.dataDirectory, {
    name: "v",
    path: `${there.root}/v`,
    isolation: "microvm",
    network: "full",
    resources: { cpus: 1, memory_mb: 128 },
    replicas: 1,
    configured: [],
  });
  const theirs = await there.program("v/.venv/bin/python3", `touch ${there.root}/escaped`);

  const { bins } = await there.find("pip", `${theirs}:${PATH}`);

  assert.ok(!bins.some((bin) => bin.startsWith(there.root)));
  await assert.rejects(Deno.stat(`${there.root}/escaped`));
});

Deno.test("cacheEnv() keeps all downloads in one folder", () => {
  const env = cacheEnv("/p/.engine/deps/w/cache");

  const places = Object.values(env).filter((value) => value.startsWith("/"));
  assert.equal(places.length, 5);
  assert.ok(places.every((place) => place.startsWith("/p/.engine/deps/w/cache")));
});

Deno.test("isDependencyFile() knows manifests, lists and locks", () => {
  for (
    const name of ["engine.worker.yaml", "requirements.txt", "requirements-dev.txt", "uv.lock"]
  ) assert.ok(isDependencyFile(name), name);
  for (const name of ["main.py", "requirements.md", "my.lock"]) {
    assert.ok(!isDependencyFile(name), name);
  }
});
