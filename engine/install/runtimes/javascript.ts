/**
 * Workers in TypeScript and JavaScript, on Deno or on Node with npm.
 *
 * npm and Deno keep packages in their own places, beside the worker or in a cache. A worker on npm
 * finds `engine-sdk` in its `node_modules`: a link to the project's copy, unless it has one itself.
 *
 * @module
 */
import { findProgram, type Program, requireProgram, shellWord } from "../../process/programs.ts";
import { npmSdkDirectory } from "../sdk_copy.ts";
import { readWorkerText } from "../worker_files.ts";
import {
  askPath,
  exists,
  findReal,
  firstBinary,
  folderOf,
  type GuestRuntime,
  type InstallPlan,
  type LocateRequest,
  outsideSystem,
  type PlanRequest,
  type Runtime,
  singleProgramFolder,
  type Toolchain,
} from "./runtime.ts";

/** Largest package.json that is searched for a start script, in bytes. */
const PACKAGE_JSON_BYTES_MAX = 1024 * 1024;

/** Where Node looks for the SDK, from a worker's directory. */
const SDK_PLACE = "node_modules/engine-sdk";

const NODE: Program = { name: "node", advice: "install Node 20 or later" };
const NPM: Program = { name: "npm", advice: "install npm, which comes with Node" };
const DENO: Program = { name: "deno", advice: "install Deno 2 (npm install -g deno)" };

const npm: Toolchain = {
  programs: [NODE, NPM],
  dependencyFiles: ["npm-shrinkwrap.json", "package-lock.json", "package.json"],
  usesPackageFolder: false,
  settings: /^(NPM_CONFIG_|npm_config_|NODE_EXTRA_CA_CERTS$)/,
  hostPlaces:
    /^npm_config_(cache|tmp|(global_|local_)?prefix|(global|user)config|init_module|node_gyp)$/i,
  cacheEnv: (folder) => ({
    npm_config_cache: `${folder}/npm`,
    npm_config_update_notifier: "false",
  }),
  startCommand: (entry) => `exec node ${shellWord(entry)}`,
  ownStartCommand: (directory) =>
    hasStartScript(directory) ? "exec npm run --silent start" : undefined,
  plan: npmPlan,
  locate: locateNode,
};

const deno: Toolchain = {
  programs: [DENO],
  dependencyFiles: ["deno.json", "deno.jsonc", "deno.lock"],
  usesPackageFolder: false,
  settings: /^(DENO_CERT|DENO_TLS_CA_STORE|JSR_URL)$/,
  cacheEnv: (folder) => ({ DENO_DIR: `${folder}/deno`, DENO_NO_UPDATE_CHECK: "1" }),
  startCommand: (entry) => `exec deno run -A ${shellWord(entry)}`,
  plan: denoPlan,
  locate: locateDeno,
};

const npmForTypeScript: Toolchain = {
  ...npm,
  startCommand: () => ({
    expected: "a command, or a start script in package.json, since Node 20 runs no TypeScript",
  }),
};

const entryNames = ["main", "worker", "index"] as const;
const generatedFolders = [".deno", ".npm", ".yarn", "node_modules"] as const;

/** TypeScript, on Deno unless the manifest says npm. */
export const typescript = {
  entryEndings: ["ts", "mts"],
  entryNames,
  sourceEndings: ["ts", "mts", "cts", "tsx"],
  generatedFolders,
  toolchains: { deno, npm: npmForTypeScript },
} as const satisfies Runtime;

/** JavaScript, on Node unless the manifest says deno. */
export const javascript = {
  entryEndings: ["js", "mjs"],
  entryNames,
  sourceEndings: ["js", "mjs", "cjs", "jsx"],
  generatedFolders,
  toolchains: { npm, deno },
} as const satisfies Runtime;

/**
 * The PATH for workers. Where it names no `deno`, a folder with a link to the engine's own is
 * appended, so that a machine with nothing but `npx deno` can run TypeScript workers. A compiled
 * engine has no Deno that workers could use.
 */
export async function pathWithDeno(
  path: string,
  dataDirectory: string,
  deno: string | null = Deno.build.standalone ? null : Deno.execPath(),
): Promise<string> {
  if (deno === null || await findProgram(DENO.name, path)) return path;
  const directory = `${dataDirectory}/bin`;
  const link = `${directory}/${DENO.name}`;
  if (await Deno.readLink(link).catch(() => undefined) !== deno) {
    await Deno.mkdir(directory, { recursive: true });
    const temporary = `${link}.${crypto.randomUUID().slice(0, 8)}`;
    await Deno.symlink(deno, temporary);
    await Deno.rename(temporary, link);
  }
  return path === "" ? directory : `${path}:${directory}`;
}

function hasStartScript(directory: string): boolean {
  try {
    const text = readWorkerText(directory, "package.json", PACKAGE_JSON_BYTES_MAX);
    return typeof JSON.parse(text).scripts?.start === "string";
  } catch {
    return false; // No package.json, or one that npm itself will complain about.
  }
}

async function npmPlan(request: PlanRequest): Promise<InstallPlan> {
  const { name, directory, env, install, dataDirectory } = request;
  await requireProgram(NODE, env.PATH ?? "", name);
  const hasPackages = await exists(`${directory}/package.json`);
  if (hasPackages && install === null) await requireProgram(NPM, env.PATH ?? "", name);
  const usual = hasPackages ? ["npm install --no-audit --no-fund"] : [];
  return {
    // npm removes packages that package.json does not name, so the link comes last.
    commands: [...install === null ? usual : [install], linkSdk(npmSdkDirectory(dataDirectory))],
    env: {},
    // npm leaves a lock file. Without package.json the link alone is in the folder.
    isComplete: async () =>
      await exists(`${directory}/${SDK_PLACE}/package.json`) &&
      (install !== null || !hasPackages || await hasInstalled(directory)),
  };
}

/**
 * The shell command that links the SDK into `node_modules`. An own `engine-sdk` stays; a link to a
 * copy, which may be that of another project, is replaced. The worker's own launcher runs it, since
 * the worker may have made `node_modules` a link to anywhere. Where nothing can be written, the
 * worker starts without it: it may not need the SDK under this name.
 */
function linkSdk(sdk: string): string {
  return `case "$(readlink ${SDK_PLACE})" in */sdk/typescript) rm -f ${SDK_PLACE};; esac; ` +
    `[ -e ${SDK_PLACE} ] || { mkdir -p node_modules && ln -sfn ${shellWord(sdk)} ${SDK_PLACE}; } ` +
    `|| echo "engine-sdk is not linked into node_modules, so the worker cannot import it" >&2`;
}

async function hasInstalled(directory: string): Promise<boolean> {
  return await exists(`${directory}/package-lock.json`) ||
    await exists(`${directory}/npm-shrinkwrap.json`) ||
    await exists(`${directory}/node_modules/.package-lock.json`);
}

async function denoPlan(
  { name, env, entry, install, isContained, cacheFolder }: PlanRequest,
): Promise<InstallPlan> {
  await requireProgram(DENO, env.PATH ?? "", name);
  const usual = entry === null ? [] : [`deno install --quiet --entrypoint ${shellWord(entry)}`];
  return {
    commands: install === null ? usual : [install],
    env: {},
    isComplete: async () => !isContained || await exists(cacheFolder),
  };
}

async function locateNode(request: LocateRequest): Promise<GuestRuntime> {
  const { name, path } = request;
  await requireProgram(NODE, path, name);
  const node = await askPath(request, NODE, ["-p", "process.execPath"]);
  const bin = folderOf(node);
  const bins = [bin];
  const folders = await outsideSystem([folderOf(bin)]);
  // npm may belong to another Node, or be installed by itself.
  const script = await findReal(NPM.name, `${bin}:${path}`);
  const suffix = "/lib/node_modules/npm/bin/npm-cli.js";
  if (script?.endsWith(suffix)) {
    const prefix = script.slice(0, -suffix.length);
    const own = await outsideSystem([prefix]);
    folders.push(...own);
    if (own.length > 0) bins.push(`${prefix}/bin`);
  }
  return { folders: [...new Set(folders)], bins: [...new Set(bins)] };
}

async function locateDeno(request: LocateRequest): Promise<GuestRuntime> {
  const { name, path } = request;
  await requireProgram(DENO, path, name);
  const found = (await findProgram(DENO.name, path))!;
  const args = ["eval", "--no-config", "console.log(Deno.execPath())"];
  const file = await firstBinary([found]) ?? await askPath(request, DENO, args);
  const folder = await singleProgramFolder(request, DENO, file);
  return { folders: await outsideSystem([folder]), bins: [folder] };
}
