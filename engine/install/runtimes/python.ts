/**
 * Workers in Python, with pip or uv.
 *
 * Packages go to a folder of the engine's per worker, never into the machine's Python, and
 * `PYTHONPATH` leads to them and to the SDK.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import {
  askProgram,
  findProgram,
  type Program,
  requireProgram,
  shellWord,
} from "../../process/programs.ts";
import { PYTHON_FILES, PYTHON_REQUIREMENT, pythonSdkDirectory } from "../sdk_copy.ts";
import {
  exists,
  firstBinary,
  folderOf,
  type GuestRuntime,
  type InspectRequest,
  type InstallPlan,
  type LocateRequest,
  outsideSystem,
  type PlanRequest,
  type Runtime,
  type RuntimeFacts,
  singleProgramFolder,
  type Toolchain,
} from "./runtime.ts";

const PYTHON: Program = {
  name: "python3",
  advice: "install Python 3.10 or later (Debian, Ubuntu: sudo apt install python3 python3-pip)",
};
const UV: Program = {
  name: "uv",
  advice: "install uv (pip install uv), or set runtime.package_manager to pip",
};

const pip: Toolchain = {
  programs: [PYTHON],
  dependencyFiles: ["poetry.lock", "pyproject.toml", "uv.lock", /^requirements.*\.txt$/],
  usesPackageFolder: true,
  settings: /^PIP_/,
  hostPlaces: /^PIP_(CACHE_DIR|CONFIG_FILE|LOG|PREFIX|ROOT|SRC|TARGET)$/,
  cacheEnv: (folder) => ({ PIP_CACHE_DIR: `${folder}/pip` }),
  startCommand: (entry) => `exec python3 ${shellWord(entry)}`,
  inspect: async (request) => pipFacts(request.name, await inspectPython(request)),
  // Bytecode is compiled on import, and packages of the machine's Python are not examined.
  plan: (request) =>
    installPlan(request, "python3 -m pip install --no-compile --no-warn-conflicts"),
  locate: async (request) => {
    const { folders, bins, python } = await locatePython(request);
    return { folders, bins, facts: guestFacts(pipFacts(request.name, python)) };
  },
};

const uv: Toolchain = {
  ...pip,
  programs: [PYTHON, UV],
  settings: /^UV_/,
  hostPlaces:
    /^UV_(CACHE_DIR|PROJECT_ENVIRONMENT|PYTHON|PYTHON_INSTALL_DIR|TOOL_BIN_DIR|TOOL_DIR)$/,
  cacheEnv: (folder) => ({ UV_CACHE_DIR: `${folder}/uv`, UV_LINK_MODE: "copy" }),
  inspect: async (request) => factsOf(await inspectPython(request)),
  plan: async (request) => {
    await requireProgram(UV, request.env.PATH ?? "", request.name);
    return await installPlan(request, "uv pip install --python python3");
  },
  locate: async (request) => {
    const { folders, bins, python } = await locatePython(request);
    const folder = await locateUv(request, python);
    const facts = guestFacts(factsOf(python));
    return { folders: [...folders, folder], bins: [...bins, folder], facts };
  },
};

/** Python 3.10 or later. */
export const python = {
  entryEndings: ["py"],
  entryNames: ["main", "worker"],
  sourceEndings: ["py", "pyi"],
  generatedFolders: [
    ".eggs",
    ".hypothesis",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "__pypackages__",
    "venv",
  ],
  toolchains: { pip, uv },
} as const satisfies Runtime;

async function installPlan(request: PlanRequest, tool: string): Promise<InstallPlan> {
  const { directory, env, install, dataDirectory, isContained, packageFolder } = request;
  const isListed = install === null && await exists(`${directory}/requirements.txt`);
  const packages = `'${PYTHON_REQUIREMENT}'${isListed ? " -r requirements.txt" : ""}`;
  const own = `${tool} --target ${shellWord(packageFolder)} ${packages}`;
  const shared = pythonSdkDirectory(dataDirectory);
  // A guest cannot write bytecode into the shared copy and would compile it at each start.
  const sdk = isContained ? `${packageFolder}/.sdk` : shared;
  const copy = `mkdir -p ${shellWord(sdk)} && cp -R ${shellWord(`${shared}/engine_sdk`)} ` +
    `${shellWord(sdk)} && `;
  const first = isContained ? copy + own : own;
  const inherited = isContained ? undefined : Deno.env.get("PYTHONPATH");
  const path = [packageFolder, sdk, env.PYTHONPATH ?? inherited ?? ""];
  return {
    commands: install === null ? [first] : [first, install],
    env: {
      PYTHONPATH: path.filter((part) => part !== "").join(":"),
      PYTHONUNBUFFERED: "1",
      PIP_TARGET: packageFolder,
      PIP_USER: "0",
      PIP_NO_INPUT: "1",
      PIP_ROOT_USER_ACTION: "ignore",
      PIP_DISABLE_PIP_VERSION_CHECK: "1",
    },
    isComplete: () => exists(packageFolder),
  };
}

interface PythonRuntime extends GuestRuntime {
  readonly python: PythonFacts;
}

async function locatePython({ name, path }: LocateRequest): Promise<PythonRuntime> {
  const question = { name, directory: "/", env: { PATH: path } };
  const python = await inspectPython(question, { isolated: true });
  const bins = [folderOf(python.executable)];
  const folders = await outsideSystem([python.prefix, python.basePrefix]);
  const base = `${python.basePrefix}/bin`;
  if (!bins.includes(base)) bins.push(base);
  return { folders, bins, python };
}

async function locateUv(request: LocateRequest, { prefix }: PythonFacts): Promise<string> {
  const { name, path } = request;
  await requireProgram(UV, path, name);
  const found = (await findProgram(UV.name, path))!;
  const binary = await firstBinary([found, `${prefix}/bin/uv`]);
  if (binary !== undefined) return await singleProgramFolder(request, UV, binary);
  const message = `Worker ${name} needs uv, and ${found} only leads to it; put the folder of ` +
    "the program itself on the PATH, or set runtime.package_manager to pip";
  throw new EngineError("launch_failed", message, { details: { program: UV.name } });
}

/** What a Python reports about itself. */
export interface PythonFacts {
  /** Full version with its build: packages made for one may not suit another. */
  readonly version: string;
  readonly hasPip: boolean;
  /** Absolute path of the program itself, which a script on the PATH may lead to. */
  readonly executable: string;
  /** The folder that it and its packages are installed in; of a virtual environment, its own. */
  readonly prefix: string;
  /** The folder of the installation that a virtual environment is based on. */
  readonly basePrefix: string;
}

/** Without the current directory on its path, so that modules there are not imported. */
const PROBE = `import sys
sys.path = [place for place in sys.path if place]
import importlib.util, json
print(json.dumps([sys.version_info >= (3, 10), bool(importlib.util.find_spec("pip")),
  sys.version.split(chr(10))[0], sys.executable, sys.prefix, sys.base_prefix]))`;

/**
 * Runs `python3` with a probe; `isolated` ignores packages and variables of the user.
 *
 * @throws {EngineError} `launch_failed` when it is missing, too old or does not run.
 */
export async function inspectPython(
  { name, directory, env }: InspectRequest,
  { isolated }: { readonly isolated: boolean } = { isolated: false },
): Promise<PythonFacts> {
  await requireProgram(PYTHON, env.PATH ?? "", name);
  const args = [...isolated ? ["-I"] : [], "-c", PROBE];
  const question = { worker: name, program: PYTHON.name, args, directory, env };
  const { isRecent, ...facts } = await askProgram(question, readFacts);
  if (isRecent) return facts;
  const message = `Worker ${name} needs Python 3.10 or later; python3 is ${facts.version}`;
  throw new EngineError("launch_failed", message, { details: { program: PYTHON.name } });
}

function readFacts(answer: string): (PythonFacts & { readonly isRecent: boolean }) | undefined {
  try {
    const [isRecent, hasPip, version, executable, prefix, basePrefix] = JSON.parse(answer);
    const texts = [version, executable, prefix, basePrefix];
    if (!texts.every((text) => typeof text === "string")) return undefined;
    return {
      isRecent: isRecent === true,
      hasPip: hasPip === true,
      version,
      executable,
      prefix,
      basePrefix,
    };
  } catch {
    return undefined; // The caller reports that the answer is unusable.
  }
}

function factsOf({ version }: PythonFacts): RuntimeFacts {
  return { fingerprint: [PYTHON_REQUIREMENT, version] };
}

function pipFacts(name: string, python: PythonFacts): RuntimeFacts {
  return { ...factsOf(python), ...python.hasPip ? {} : { installProblem: noPip(name) } };
}

/** An installation for a guest holds a copy of the SDK. */
function guestFacts(facts: RuntimeFacts): RuntimeFacts {
  return { ...facts, fingerprint: [...facts.fingerprint, JSON.stringify(PYTHON_FILES)] };
}

function noPip(name: string): EngineError {
  const message = `Worker ${name} needs pip, which python3 does not have; ` +
    "install it (Debian, Ubuntu: sudo apt install python3-pip; elsewhere: python3 -m ensurepip), " +
    "or set runtime.package_manager to uv";
  return new EngineError("launch_failed", message, { details: { program: "pip" } });
}
