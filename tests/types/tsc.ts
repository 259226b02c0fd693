/**
 * tsc, as a program of a user is checked: strict, without Deno, with packages from `node_modules`.
 *
 * @module
 */
import manifest from "../../deno.json" with { type: "json" };

const ROOT = new URL("../../", import.meta.url).pathname;
const SDK = `${ROOT}sdk/npm`;

/** What tsc printed; nothing if it found no mistake. */
export interface TscOutcome {
  readonly success: boolean;
  readonly text: string;
}

/**
 * Checks programs with `tsc --strict`, against the built SDK.
 *
 * @param files Name, such as `program.ts`, to text.
 * @param packages Specifiers of further packages that they import, such as `npm:zod@^4`.
 */
export async function runTsc(
  files: Readonly<Record<string, string>>,
  packages: Readonly<Record<string, string>> = {},
): Promise<TscOutcome> {
  const directory = await Deno.makeTempDir();
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${directory}/${name}`, text);
    }
    await installPackages(directory, packages);
    await Deno.mkdir(`${directory}/node_modules`, { recursive: true });
    await Deno.symlink(SDK, `${directory}/node_modules/engine-sdk`);
    const options = [
      ...["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--noEmit"],
      ...["--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext"],
      ...["--lib", "es2022,dom,dom.iterable,esnext.disposable"],
      // The packages' own declarations are theirs; those of the SDK are checked by the programs.
      ...["--skipLibCheck"],
    ];
    const tsc = ["run", "-A", "--no-lock", `${manifest.imports.typescript}/tsc`, ...options];
    return await run([...tsc, ...Object.keys(files)], directory);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

async function installPackages(
  directory: string,
  packages: Readonly<Record<string, string>>,
): Promise<void> {
  const dependencies = Object.entries(packages).map(([name, specifier]) => [
    name,
    specifier.slice(`npm:${name}@`.length),
  ]);
  const manifest = { type: "module", dependencies: Object.fromEntries(dependencies) };
  await Deno.writeTextFile(`${directory}/package.json`, JSON.stringify(manifest));
  if (dependencies.length === 0) return;
  const { success, text } = await run(["install", "--quiet", "--no-lock"], directory);
  if (!success) throw new Error(`deno install failed: ${text}`);
}

async function run(args: readonly string[], cwd: string): Promise<TscOutcome> {
  const command = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  });
  const { success, stdout, stderr } = await command.output();
  const decoder = new TextDecoder();
  return { success, text: `${decoder.decode(stdout)}${decoder.decode(stderr)}` };
}
