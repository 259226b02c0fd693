/**
 * Wheel and sdist, installed in empty projects with pip and uv: a program runs against an engine, and
 * mypy --strict finds the types.
 *
 * @module
 */
import assert from "node:assert/strict";
import manifest from "../../deno.json" with { type: "json" };
import { run, runOrThrow } from "../../sdk/package.ts";
import { SocketEngine } from "../fakes/socket_server.ts";
import { pythonPackages } from "./built.ts";

const packages = await pythonPackages().catch((thrown) => {
  if (Deno.env.get("ENGINE_PACKAGES") !== undefined) throw thrown;
  // No Python, no venv, or no network for the first run.
  const reason = thrown.message.trim().split("\n").at(-1);
  console.log(`left out: tests/packages/python_test.ts needs python3 with hatchling: ${reason}`);
  return undefined;
});

function pythonTest(name: string, fn: () => Promise<void>): void {
  Deno.test({ name, ignore: packages === undefined, fn });
}

const PROGRAM = `
from engine_sdk import InitOptions, __version__, register_worker

worker = register_worker("URL", InitOptions(worker_name="py"))
worker.register_function("math::add", lambda payload: {"c": payload["a"] + payload["b"]})
result = worker.trigger({"function_id": "math::add", "payload": {"a": 2, "b": 3}})
print(__version__, result)
worker.shutdown()
`;

/** An empty project with a virtual environment. */
async function setup(...makeVenv: string[]) {
  const directory = await Deno.makeTempDir();
  const python = `${directory}/.venv/bin/python`;
  const write = (name: string, text: string) => Deno.writeTextFile(`${directory}/${name}`, text);
  await runOrThrow([...makeVenv, `${directory}/.venv`], { cwd: directory });
  return {
    directory,
    python,
    write,
    succeeds: (...command: string[]) => runOrThrow(command, { cwd: directory }),
    run: (...command: string[]) => run(command, { cwd: directory }),
    [Symbol.asyncDispose]: () => Deno.remove(directory, { recursive: true }),
  };
}

pythonTest("the wheel is installed with pip, runs, and is typed for mypy --strict", async () => {
  await using engine = new SocketEngine();
  await using project = await setup("python3", "-m", "venv");
  const { wheel, bin } = packages!;
  const { python } = project;
  await project.succeeds(python, "-m", "pip", "install", "--quiet", wheel);
  await project.write("program.py", PROGRAM.replace("URL", engine.url));
  await project.write("wrong.py", "from engine_sdk import register_worker\n\nregister_worker(5)\n");

  const printed = await project.succeeds(python, "program.py");
  const mypy = [`${bin}/mypy`, "--strict", "--python-executable", python];
  const good = await project.run(...mypy, "program.py");
  const bad = await project.run(...mypy, "wrong.py");

  assert.equal(printed, `${manifest.version} {'c': 5}\n`);
  assert.ok(good.success, good.text);
  assert.match(bad.text, /wrong\.py:3: error: Argument 1 .*\[arg-type\]/);
});

pythonTest("the sdist is built and installed with uv, and runs", async () => {
  await using engine = new SocketEngine();
  const { sdist, bin } = packages!;
  await using project = await setup(`${bin}/uv`, "venv", "--quiet", "--python", `${bin}/python`);
  await project.write("program.py", PROGRAM.replace("URL", engine.url));

  const install = ["pip", "install", "--quiet", "--python", project.python, sdist];
  await project.succeeds(`${bin}/uv`, ...install);

  assert.equal(
    await project.succeeds(project.python, "program.py"),
    `${manifest.version} {'c': 5}\n`,
  );
});

pythonTest("the wheel has every module and py.typed, the sdist also the tests", async () => {
  const { wheel, sdist, bin } = packages!;
  const list = (...args: string[]) => runOrThrow([`${bin}/python`, "-m", ...args], { cwd: "/" });

  const modules = [...Deno.readDirSync(new URL("../../sdk/python/src/engine_sdk", import.meta.url))]
    .filter(({ name, isFile }) => isFile && !name.startsWith(".")).map(({ name }) => name);
  const inWheel = await list("zipfile", "-l", wheel);
  const inSdist = await list("tarfile", "-l", sdist);

  for (const name of [...modules, "py.typed"]) {
    assert.match(inWheel, new RegExp(`^engine_sdk/${name} `, "m"));
    assert.match(inSdist, new RegExp(`/src/engine_sdk/${name}\\s*$`, "m"));
  }
  assert.match(inSdist, /\/tests\/test_session\.py\s*$/m);
  assert.doesNotMatch(inWheel, /tests\//);
});
