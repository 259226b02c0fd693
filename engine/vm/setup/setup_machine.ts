/**
 * The machine that `engine vm setup` prepares: it finds programs, queries them and runs commands.
 *
 * @module
 */
import { findProgram } from "../../process/programs.ts";
import { type VmPlaces, vmPlaces } from "../machine/host_tools.ts";

/** Outcome of a command. */
export interface CommandEnd {
  readonly success: boolean;
  /** Output on both streams, at most the last 16,384 characters. */
  readonly output: string;
}

/** A machine to set up; tests replace it by a fake. */
export interface SetupMachine {
  readonly places: VmPlaces;
  /** User id, 0 for root; `null` on systems without. */
  readonly uid: number | null;
  /** Name of the user who called `sudo`, if the engine runs under it. */
  readonly sudoUser: string | undefined;
  /** Absolute path of the folder with `lib/modules` and `boot`; `""` for the real root. */
  readonly root: string;
  /** Path of a program, if installed. */
  find(program: string): Promise<string | undefined>;
  /** Standard output of a read-only command; `""` when it fails. */
  ask(command: readonly string[]): Promise<string>;
  /** Runs a command and passes on its output lines; it may ask the user for a password. */
  run(
    command: readonly string[],
    directory: string,
    output: (line: string) => void,
  ): Promise<CommandEnd>;
}

const OUTPUT_CHARS_MAX = 16_384;
/** The setup matches messages of commands, so they must be in English. */
const LANGUAGE = { LC_ALL: "C" };

/** The machine on which the engine runs. */
export function thisMachine(): SetupMachine {
  const places = vmPlaces();
  return {
    places,
    uid: Deno.uid(),
    sudoUser: Deno.env.get("SUDO_USER"),
    root: "",
    find: (program) => findProgram(program, places.path),
    ask: askProgram,
    run: runCommand,
  };
}

async function askProgram([program, ...args]: readonly string[]): Promise<string> {
  const command = new Deno.Command(program!, { args, stderr: "null", env: LANGUAGE });
  try {
    const { success, stdout } = await command.output();
    return success ? new TextDecoder().decode(stdout) : "";
  } catch {
    return ""; // Not installed.
  }
}

async function runCommand(
  [program, ...args]: readonly string[],
  directory: string,
  output: (line: string) => void,
): Promise<CommandEnd> {
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(program!, {
      args,
      cwd: directory,
      env: LANGUAGE,
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    return { success: false, output: (thrown as Error).message };
  }
  let text = "";
  const read = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> => {
    let rest = "";
    for await (const part of stream.pipeThrough(new TextDecoderStream())) {
      text = (text + part).slice(-OUTPUT_CHARS_MAX);
      const lines = (rest + part).split(/\r?\n/);
      rest = lines.pop()!;
      for (const line of lines) output(line);
    }
    if (rest !== "") output(rest);
  };
  const [{ success }] = await Promise.all([child.status, read(child.stdout), read(child.stderr)]);
  return { success, output: text };
}
