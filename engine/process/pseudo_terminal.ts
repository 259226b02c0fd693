/**
 * Commands in a pseudo-terminal, made by the program `script` of the system.
 *
 * Deno cannot open one itself. `script` runs the command in a session with a terminal, copies its
 * own standard input to it and the terminal's output to its standard output. The size is that at
 * the start.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { TerminalShape } from "../ports/launcher.ts";
import { findProgram, shellWord } from "./programs.ts";

/** Names a command in the environment of its processes, which leave its process group. */
export const EXEC_ID_VARIABLE = "ENGINE_EXEC_ID";

/** Folders of the system in which `script` lies, also in a microVM. */
const SYSTEM_FOLDERS = "/usr/bin:/bin";

/** A program and its environment. */
export interface TerminalCommand {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The command that runs another one in a pseudo-terminal.
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
