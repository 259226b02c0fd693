/**
 * `deno task install`: installs the command `engine`, which runs the sources of this checkout, and
 * says what is missing until a shell finds it.
 *
 * @module
 */

const ROOT = new URL("../", import.meta.url).pathname;
const COMMAND = "engine";
const INSTALL = ["install", "-g", "-A", "--force", "--unstable-lazy-dynamic-imports", "-c"];

/** Where a command was installed, and what the user's shell looks for. */
export interface Installation {
  /** The folder with the command. */
  readonly bin: string;
  /** The variables `PATH` and `SHELL`. */
  readonly path: string;
  readonly shell: string;
  /** The first file of the PATH with the name of the command. */
  readonly found: string | undefined;
}

/** Lines for the user: how the shell comes to find the command, and how to complete it. */
export function installAdvice({ bin, path, shell, found }: Installation): string[] {
  const installed = `${bin}/${COMMAND}`;
  const [file, line, completions] = shellFiles(shell, bin);
  const offer = `Completion of commands, functions and workers: add to ${file}:\n  ${completions}`;
  if (found === installed) return [offer];
  const isListed = path.split(":").includes(bin);
  const problem = isListed
    ? `Your shell runs another command, ${found}, since its folder is earlier on the PATH.`
    : `${bin} is not on your PATH, so your shell does not find the command yet.`;
  const remedy = isListed
    ? `Rename that one, or put ${bin} first: add to ${file}, and open a new terminal:`
    : `Add to ${file}, and open a new terminal:`;
  return [problem, `${remedy}\n  ${line}`, offer];
}

/** The file that a shell reads when it starts, and the lines for it. */
function shellFiles(shell: string, bin: string): [file: string, path: string, offers: string] {
  const name = shell.slice(shell.lastIndexOf("/") + 1);
  if (name === "fish") {
    const offers = `${COMMAND} completions fish | source`;
    return ["~/.config/fish/config.fish", `fish_add_path --prepend '${bin}'`, offers];
  }
  const path = `export PATH="${bin}:$PATH"`;
  if (name === "zsh") return ["~/.zshrc", path, `source <(${COMMAND} completions zsh)`];
  return ["~/.bashrc", path, `source <(${COMMAND} completions bash)`];
}

async function main(): Promise<void> {
  const { success, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [...INSTALL, `${ROOT}deno.json`, "-n", COMMAND, `${ROOT}cli/main.ts`],
  }).output();
  if (!success) {
    for (const bytes of [stdout, stderr]) console.error(new TextDecoder().decode(bytes).trimEnd());
    Deno.exit(1);
  }
  const root = Deno.env.get("DENO_INSTALL_ROOT") ?? `${Deno.env.get("HOME")}/.deno`;
  const bin = `${root}/bin`;
  console.log(`Installed ${bin}/${COMMAND}; it runs the sources in ${ROOT}`);
  const path = Deno.env.get("PATH") ?? "";
  const found = await firstOnPath(path);
  const shell = Deno.env.get("SHELL") ?? "";
  for (const text of installAdvice({ bin, path, shell, found })) console.log(`\n${text}`);
}

async function firstOnPath(path: string): Promise<string | undefined> {
  for (const folder of path.split(":")) {
    const info = await Deno.stat(`${folder}/${COMMAND}`).catch(() => undefined);
    if (info?.isFile) return `${folder}/${COMMAND}`;
  }
  return undefined;
}

if (import.meta.main) await main();
