/**
 * `deno task package`: makes what is published, in `dist/`, and tries it.
 *
 * The npm tarball is `sdk/npm` with a readme and the licence, packed by npm; wheel and sdist are
 * built by hatchling, in a virtual environment that is kept in `.ci-cache`. Then `tests/packages/`
 * installs each in an empty project, and JSR's client checks the sources. Nothing is published.
 *
 * @module
 */
import manifest from "../deno.json" with { type: "json" };
import { hashSources } from "./build_npm.ts";

const ROOT = new URL("../", import.meta.url).pathname;
const DIST = `${ROOT}dist`;
/** A virtual environment with what builds and checks the Python package. */
const PYTHON_TOOLS = `${ROOT}.ci-cache/package-tools`;
const PYTHON_REQUIREMENTS = ["hatchling>=1.27", "mypy>=1.10", "uv>=0.5"];
/** How long one program may take. */
const PROGRAM_MS_MAX = 120_000;

/** Outcome of a program. */
export interface Ended {
  readonly success: boolean;
  readonly stdout: string;
  /** Both outputs, for messages. */
  readonly text: string;
}

/** Runs a program to its end. It fails, and does not throw, when there is none of this name. */
export async function run(
  [program = "", ...args]: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<Ended> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args,
      cwd,
      env: { NO_COLOR: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", ...env },
      stdin: "null",
      signal: AbortSignal.timeout(PROGRAM_MS_MAX),
    }).output();
    const out = new TextDecoder().decode(stdout);
    return { success, stdout: out, text: out + new TextDecoder().decode(stderr) };
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.NotFound)) throw thrown;
    return { success: false, stdout: "", text: `${program} is not on the PATH` };
  }
}

/** As {@linkcode run}; throws an error with the output when the program fails. */
export async function runOrThrow(...[command, options]: Parameters<typeof run>): Promise<string> {
  const { success, stdout, text } = await run(command, options);
  if (!success) throw new Error(`${command.join(" ")} failed:\n${text}`);
  return stdout;
}

/**
 * Packs the npm package.
 *
 * @param out Directory for the tarball.
 * @returns Path of the tarball.
 */
export async function packNpm(out: string): Promise<string> {
  const built = await Deno.readTextFile(`${ROOT}sdk/npm/engine_sdk.js`);
  if (!built.includes(await hashSources())) {
    throw new Error("sdk/npm is older than the sources; run deno task npm");
  }
  await Deno.mkdir(out, { recursive: true });
  const stage = await Deno.makeTempDir();
  try {
    for await (const { name } of Deno.readDir(`${ROOT}sdk/npm`)) {
      await Deno.copyFile(`${ROOT}sdk/npm/${name}`, `${stage}/${name}`);
    }
    await Deno.copyFile(`${ROOT}sdk/typescript/README.md`, `${stage}/README.md`);
    await Deno.copyFile(`${ROOT}LICENSE`, `${stage}/LICENSE`);
    const printed = await runOrThrow(["npm", "pack", "--json", "--pack-destination", out], {
      cwd: stage,
    });
    return `${out}/${JSON.parse(printed)[0].filename}`;
  } finally {
    await Deno.remove(stage, { recursive: true });
  }
}

/** The Python packages, and the folder of the tools that built them. */
export interface PythonPackages {
  readonly wheel: string;
  readonly sdist: string;
  /** The folder with `python`, `mypy` and `uv`. */
  readonly bin: string;
}

/**
 * Builds wheel and sdist.
 *
 * @param out Directory for both.
 */
export async function buildPython(out: string): Promise<PythonPackages> {
  const bin = await pythonTools();
  await Deno.mkdir(out, { recursive: true });
  await runOrThrow([`${bin}/python`, "-m", "hatchling", "build", "-d", out], {
    cwd: `${ROOT}sdk/python`,
  });
  const base = `${out}/engine_sdk-${manifest.version}`;
  return { wheel: `${base}-py3-none-any.whl`, sdist: `${base}.tar.gz`, bin };
}

/** Installs the tools once; several processes may do so at the same time. */
async function pythonTools(): Promise<string> {
  const wanted = PYTHON_REQUIREMENTS.join(" ");
  const marker = `${PYTHON_TOOLS}/installed`;
  if (await Deno.readTextFile(marker).catch(() => "") === wanted) return `${PYTHON_TOOLS}/bin`;
  await Deno.mkdir(`${ROOT}.ci-cache`, { recursive: true });
  await runOrThrow(["python3", "-m", "venv", PYTHON_TOOLS], { cwd: ROOT });
  const pip = [`${PYTHON_TOOLS}/bin/python`, "-m", "pip", "install", "--quiet"];
  await runOrThrow([...pip, ...PYTHON_REQUIREMENTS], { cwd: ROOT });
  await Deno.writeTextFile(marker, wanted);
  return `${PYTHON_TOOLS}/bin`;
}

async function main(): Promise<void> {
  const tarball = await packNpm(DIST);
  const { wheel, sdist } = await buildPython(DIST);
  const { success, text } = await run([
    ...[Deno.execPath(), "test", "-A", "--no-check", "tests/packages"],
  ], { cwd: ROOT, env: { ENGINE_PACKAGES: DIST } });
  console.log(text.trimEnd());
  if (!success) Deno.exit(1);
  await runOrThrow([Deno.execPath(), "publish", "--dry-run", "--allow-dirty"], { cwd: ROOT });
  for (const path of [tarball, wheel, sdist]) {
    const { size } = await Deno.stat(path);
    console.log(`${path.replace(ROOT, "")}  ${Math.ceil(size / 1024)} KiB`);
  }
  console.log("The package for JSR passes deno publish --dry-run.");
}

if (import.meta.main) await main();
