/**
 * Makes the program one that starts sooner: `deno task build`, into `dist/cli`.
 *
 * Deno spends a third of a millisecond on each file it loads, of which the engine has 240 before it
 * listens. The bundler makes one of those that are always loaded together. What is loaded or
 * evaluated late stays late: the bundler does not know `import defer`, so it is taken away before
 * and put back behind it, with each deferred package in a file of its own.
 *
 * @module
 */
import manifest from "../deno.json" with { type: "json" };
import { type BuildSources, changedAt, SOURCES_FILE } from "./build_age.ts";

const ROOT = new URL("../", import.meta.url);
const ENTRY = "cli/built.ts";
/** What the bundler makes of it. */
const BUILT = "built.js";
/** What is loaded by addresses that Deno does not see; see run.ts. */
const UNSEEN = ["cli/program.ts", "cli/commands/start.ts"];
/** Read by the bundler, part of nothing. */
const CONFIGURATION = [
  "deno.json",
  "deno.lock",
  ...manifest.workspace.map((at) => `${at}/deno.json`),
];
/** An engine that runs since an earlier build may still load files of it. */
const KEPT_MS = 30 * 24 * 60 * 60_000;

/** How the bundle gets a module of Node: when a package asks for it, not at start (12 ms). */
const REQUIRE = `var __require = (id) => {
  const found = globalThis.process.getBuiltinModule(id);
  if (!found) throw new Error(\`Cannot find module \${id}\`);
  return found;
};`;

/**
 * Builds the program into a directory; `built.js` in it is what runs.
 *
 * @throws {Error} With what the bundler said when it fails.
 */
export async function build(out: URL): Promise<void> {
  const paths = await sourcePaths();
  const files = Object.fromEntries(
    [...paths, "deno.lock", "cli/build.ts"].map((path) => [path, changedAt(at(path))!]),
  );
  const made = await Deno.makeTempDir({ prefix: "engine-build-" });
  try {
    const deferred = await copySources([...new Set([...paths, ...CONFIGURATION])], made);
    const packages = deferred.filter((name) => !name.startsWith("node:"));
    const options = ["--code-splitting", ...packages.map((name) => `--external=${name}`)];
    await bundle(made, [...options, "--outdir", "out", ENTRY]);
    for (const name of packages) {
      await Deno.writeTextFile(`${made}/late.ts`, await reexport(name));
      await bundle(made, ["-o", `out/${fileOf(name)}`, "late.ts"]);
    }
    await finish(`${made}/out`, deferred);
    const sources: BuildSources = { root: relative(out, ROOT), files };
    await Deno.writeTextFile(`${made}/out/${SOURCES_FILE}`, JSON.stringify(sources));
    await replace(out, `${made}/out`);
  } finally {
    await Deno.remove(made, { recursive: true });
  }
}

/** Text of a source as the bundler can read it. */
export function forBundler(text: string): string {
  return text.replaceAll(/^import defer \* as/gm, "import * as")
    .replaceAll(/import\(unseen\(("[^"]+")\)\)/g, "import($1)");
}

/** What a source evaluates late, by the names it imports them by. */
export function deferredBy(text: string): string[] {
  return [...text.matchAll(/^import defer \* as \w+ from "([^"]+)";$/gm)].map(([, name]) => name!);
}

/**
 * A file of the bundle as it runs: what was late in the sources is late again.
 *
 * @param names All files of the bundle.
 */
export function finishFile(
  code: string,
  names: ReadonlySet<string>,
  deferred: readonly string[],
): string {
  const defer = (whole: string, as: string, name: string): string => {
    if (!deferred.includes(name)) return whole;
    const from = name.startsWith("node:") ? name : `./${fileOf(name)}`;
    return `import defer * as ${as} from "${from}";`;
  };
  // In brackets, so that Deno does not see at start what is loaded later, and read it then.
  const late = (whole: string, name: string): string =>
    names.has(name) ? `import((0, "./${name}"))` : whole;
  return code
    .replace(
      /^import \{ createRequire as \w+ \} from "node:module";\nvar __require = .*;$/m,
      REQUIRE,
    )
    .replaceAll(/^import \* as (\w+) from "([^"]+)";$/gm, defer)
    .replaceAll(/\bimport\("\.\/([^"]+)"\)/g, late);
}

/** Everything the program is made of, also what it only types, as paths below the project. */
async function sourcePaths(): Promise<string[]> {
  const found = new Set<string>();
  for (const entry of [ENTRY, ...UNSEEN]) {
    const { modules } = JSON.parse(await run(at(""), ["info", "--json", entry])) as {
      readonly modules: readonly { readonly specifier: string }[];
    };
    for (const { specifier } of modules) {
      if (specifier.startsWith(ROOT.href)) found.add(specifier.slice(ROOT.href.length));
    }
  }
  return [...found].sort();
}

/** Copies sources for the bundler; the names of all modules that they defer. */
async function copySources(paths: readonly string[], to: string): Promise<string[]> {
  const deferred = new Set<string>();
  for (const path of paths) {
    await Deno.mkdir(`${to}/${path}`.replace(/\/[^/]+$/, ""), { recursive: true });
    const text = await Deno.readTextFile(at(path));
    for (const name of deferredBy(text)) deferred.add(name);
    await Deno.writeTextFile(`${to}/${path}`, path.endsWith(".ts") ? forBundler(text) : text);
  }
  return [...deferred];
}

/** A module that has what a package exports; by name, which a CommonJS package needs. */
async function reexport(name: string): Promise<string> {
  const names = Object.keys(await import(name)).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
  return `export { ${names.join(", ")} } from "${name}";\n`;
}

async function finish(folder: string, deferred: readonly string[]): Promise<void> {
  const names = new Set<string>();
  for await (const { name } of Deno.readDir(folder)) names.add(name);
  for (const name of names) {
    const code = await Deno.readTextFile(`${folder}/${name}`);
    const finished = finishFile(code, names, deferred);
    if (/^import .*"node:module"/m.test(finished)) throw new Error(`${name} requires in a new way`);
    await Deno.writeTextFile(`${folder}/${name}`, finished);
  }
}

/**
 * Puts a build in place; files of earlier ones stay for a while. What runs comes last, so that one
 * that is broken off leaves no program without its parts, nor one that does not know its age.
 */
async function replace(out: URL, built: string): Promise<void> {
  await Deno.mkdir(out, { recursive: true });
  for await (const { name } of Deno.readDir(out)) {
    const file = new URL(name, out);
    const { mtime, isFile } = await Deno.stat(file);
    if (isFile && Date.now() - (mtime?.getTime() ?? 0) > KEPT_MS) await Deno.remove(file);
  }
  const names = (await Array.fromAsync(Deno.readDir(built))).map(({ name }) => name);
  const parts = names.filter((name) => name !== SOURCES_FILE && name !== BUILT);
  for (const name of [...parts, SOURCES_FILE, BUILT]) {
    await Deno.copyFile(`${built}/${name}`, new URL(name, out));
  }
}

function bundle(made: string, args: readonly string[]): Promise<string> {
  return run(made, ["bundle", "--quiet", "--platform", "deno", ...args]);
}

async function run(cwd: string, args: readonly string[]): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args: [...args], cwd });
  const { success, stdout, stderr } = await command.output();
  if (!success) throw new Error(`deno ${args[0]}: ${new TextDecoder().decode(stderr).trim()}`);
  return new TextDecoder().decode(stdout);
}

/** File of a package in the bundle: `ajv/dist/2020.js` is `late-ajv-dist-2020.js`. */
function fileOf(name: string): string {
  return `late-${name.replace(/\.js$/, "").replaceAll(/\W+/g, "-")}.js`;
}

function at(path: string): string {
  return decodeURIComponent(new URL(path, ROOT).pathname);
}

/** The address of one directory as seen from another; both end with a slash. */
function relative(from: URL, to: URL): string {
  const [a, b] = [from, to].map(({ pathname }) => pathname.split("/").slice(1, -1));
  let same = 0;
  while (same < a!.length && a![same] === b![same]) same++;
  return [...a!.slice(same).map(() => ".."), ...b!.slice(same), ""].join("/") || ".//";
}

if (import.meta.main) {
  const out = new URL(`${Deno.args[0] ?? "dist/cli"}/`, ROOT);
  try {
    await build(out);
    console.error(`built ${decodeURIComponent(out.pathname)}${BUILT}`);
  } catch (thrown) {
    console.error(`not built: ${thrown instanceof Error ? thrown.message : thrown}`);
    Deno.exitCode = 1;
  }
}
