/**
 * Finds the programs that workers need, and says what to install when one is missing.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** A program that a kind of worker cannot do without. */
export type ProgramName = "python3" | "uv" | "node" | "npm" | "deno";

const ADVICE: Readonly<Record<ProgramName, string>> = {
  python3: "install Python 3.10 or later (Debian, Ubuntu: sudo apt install python3 python3-pip)",
  uv: "install uv (pip install uv), or set runtime.package_manager to pip",
  node: "install Node 20 or later",
  npm: "install npm, which comes with Node",
  deno: "install Deno 2 (npm install -g deno)",
};

/** The first file of that name on a PATH that may be run. */
export async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const directory of path.split(":")) {
    if (directory === "") continue;
    const file = `${directory}/${name}`;
    const info = await Deno.stat(file).catch(() => undefined);
    if (info?.isFile && (info.mode === null || (info.mode & 0o111) !== 0)) return file;
  }
  return undefined;
}

/**
 * Makes sure that a worker finds a program.
 *
 * @throws {EngineError} `launch_failed` with what to install.
 */
export async function requireProgram(
  name: ProgramName,
  path: string,
  worker: string,
): Promise<void> {
  if (await findProgram(name, path)) return;
  const message = `Worker ${worker} needs ${name}, which is not on the PATH; ${ADVICE[name]}`;
  throw new EngineError("launch_failed", message, { details: { program: name } });
}

/**
 * The PATH for workers: where it names no `deno`, a folder that links to the engine's own is put
 * behind it, so that a machine with nothing but `npx deno` can run TypeScript workers. A compiled
 * engine has no Deno that workers could use.
 */
export async function pathWithDeno(
  path: string,
  dataDirectory: string,
  deno: string | null = Deno.build.standalone ? null : Deno.execPath(),
): Promise<string> {
  if (deno === null || await findProgram("deno", path)) return path;
  const directory = `${dataDirectory}/bin`;
  const link = `${directory}/deno`;
  if (await Deno.readLink(link).catch(() => undefined) !== deno) {
    await Deno.mkdir(directory, { recursive: true });
    const temporary = `${link}.${crypto.randomUUID().slice(0, 8)}`;
    await Deno.symlink(deno, temporary);
    await Deno.rename(temporary, link);
  }
  return path === "" ? directory : `${path}:${directory}`;
}

/**
 * The PATH without folders that lie in one of these directories, or whose programs of these names
 * do: whoever can write there would choose what is run.
 */
export async function pathOutside(
  path: string,
  directories: readonly string[],
  programs: readonly string[],
): Promise<string> {
  const all = new Set([...directories, ...await Promise.all(directories.map(realPath))]);
  const isInside = async (place: string): Promise<boolean> => {
    const real = await realPath(place);
    return [...all].some((directory) =>
      `${place}/`.startsWith(`${directory}/`) || `${real}/`.startsWith(`${directory}/`)
    );
  };
  const kept: string[] = [];
  for (const folder of path.split(":")) {
    if (!folder.startsWith("/")) continue;
    const places = [folder, ...programs.map((program) => `${folder}/${program}`)];
    const checks = await Promise.all(places.map(isInside));
    if (!checks.includes(true)) kept.push(folder);
  }
  return kept.join(":");
}

/** Itself where there is nothing. */
function realPath(path: string): Promise<string> {
  return Deno.realPath(path).catch(() => path);
}

/** What to ask, and for whom. */
export interface ProgramQuestion {
  /** Name of the worker, for messages. */
  readonly worker: string;
  /** Looked up on the PATH in `env`, which is not empty. */
  readonly program: ProgramName;
  readonly args: readonly string[];
  /** Where to run it: version switchers look for a choice there. */
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** A version switcher may take its time, but not for ever. In milliseconds. */
const ANSWER_MS = 30_000;

/**
 * What `read` makes of what the program prints, without blanks around it.
 *
 * @throws {EngineError} `launch_failed` when it fails, says nothing in time, or `read` gives
 * `undefined`.
 */
export async function askProgram<Answer>(
  { worker, program, args, directory, env }: ProgramQuestion,
  read: (printed: string) => Answer | undefined,
  limitMs: number = ANSWER_MS,
): Promise<Answer> {
  const limit = new AbortController();
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => {
    late.resolve(undefined);
    limit.abort();
  }, limitMs);
  const command = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec "$0" "$@"', program, ...args],
    cwd: directory,
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
    signal: limit.signal,
  });
  // What it started may outlive it and hold its output.
  const ended = await Promise.race([command.output(), late.promise])
    .finally(() => clearTimeout(timer));
  const text = new TextDecoder();
  const answer = ended?.success ? read(text.decode(ended.stdout).trim()) : undefined;
  if (answer !== undefined) return answer;
  const said = ended
    ? text.decode(ended.stderr).trim().split("\n").at(-1)!
    : `it gave no answer within ${limitMs / 1_000} s`;
  const message = `Worker ${worker} needs ${program}, which does not run here: ${said}`;
  throw new EngineError("launch_failed", message, { details: { program } });
}

/** A text as one word of a shell command. It may hold anything but a zero byte. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
