/**
 * Programs on the host: finding them on a PATH, asking them for facts, quoting their arguments,
 * running them in a terminal, describing how they ended.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Ended, TerminalShape } from "../ports/launcher.ts";

/** A program that a worker may need. */
export interface Program {
  /** As it stands on the PATH. */
  readonly name: string;
  /** What a person can do where it is missing, for messages. */
  readonly advice: string;
}

/** The first executable file of that name on a PATH. */
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
 * Makes sure that a program is on a worker's PATH.
 *
 * @throws {EngineError} `launch_failed` with what to install.
 */
export async function requireProgram(
  { name, advice }: Program,
  path: string,
  worker: string,
): Promise<void> {
  if (await findProgram(name, path)) return;
  const message = `Worker ${worker} needs ${name}, which is not on the PATH; ${advice}`;
  throw new EngineError("launch_failed", message, { details: { program: name } });
}

/** Which program to ask, and for which worker. */
export interface ProgramQuestion {
  /** Name of the worker, for messages. */
  readonly worker: string;
  /** Looked up on the PATH in `env`, which is not empty. */
  readonly program: string;
  readonly args: readonly string[];
  /** Where to run it: version managers look for their settings there. */
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
}

/** How long a program may take to answer, in milliseconds; version managers can be slow. */
const ANSWER_MS = 30_000;

/**
 * Runs a program and returns what `read` makes of its trimmed output. A program that does not
 * answer in time is killed, and its end is not awaited.
 *
 * @throws {EngineError} `launch_failed` when it fails, is too slow, or `read` returns `undefined`.
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
  // Processes that it started may outlive it and keep its output open.
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

/**
 * The PATH without folders that lie in one of these directories, or whose programs of these names
 * do: a worker that can write there could choose what the engine runs.
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

/** Whether a path is a folder or lies in it. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

/** The path with links resolved; unchanged where there is no such file. */
export function realPath(path: string): Promise<string> {
  return Deno.realPath(path).catch(() => path);
}

/** A text as one word of a shell command. It may hold anything but a zero byte. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Folders of the system in which `script` lies, also in a microVM. */
const SYSTEM_FOLDERS = "/usr/bin:/bin";

/** A program and its environment. */
export interface TerminalCommand {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The command that runs another one in a pseudo-terminal, which Deno cannot open itself: `script`
 * of the system copies its own standard input to the terminal, and the terminal's output to its
 * standard output. The size is that at the start.
 *
 * @throws {EngineError} `launch_failed` when this system has no `script`.
 */
export async function inTerminal(
  { command, env }: TerminalCommand,
  { columns, rows, term }: TerminalShape,
  { os = Deno.build.os as string, path = SYSTEM_FOLDERS } = {},
): Promise<TerminalCommand> {
  const script = await findProgram("script", path);
  if (script === undefined) {
    const message = "A terminal needs the program script, which is not in /usr/bin; " +
      "install it (package bsdutils, util-linux or util-linux-script) or leave out --tty";
    throw new EngineError("launch_failed", message);
  }
  const settings = `stty echo rows ${rows} columns ${columns} 2>/dev/null`;
  const run = `${settings}; exec ${command.map(shellWord).join(" ")}`;
  const shell = "/bin/sh";
  return {
    command: os === "linux"
      ? [script, "-qfec", run, "/dev/null"]
      : [script, "-q", "/dev/null", shell, "-c", run],
    // `script` runs the command with SHELL, which could be one with another syntax.
    env: { ...env, TERM: term, SHELL: shell },
  };
}

/** How a program ended, in words: `exit code 1` or `signal SIGKILL (out of memory)`. */
export function describeEnd({ code, signal, reason }: Ended): string {
  if (code === null && signal === null) return reason ?? "an unknown exit status";
  const because = code === 127 ? reason ?? "a program that it needs was not found" : reason;
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  return because === undefined ? how : `${how} (${because})`;
}
