/**
 * What `engine vm setup` may do to a machine: look for programs, ask them things, run commands.
 *
 * @module
 */
import { findProgram } from "../../process/programs.ts";
import { type VmPlaces, vmPlaces } from "../machine/host_tools.ts";

/** How a command ended. */
export interface CommandEnd {
  readonly success: boolean;
  /** What it printed on both streams, at most the last 16,384 characters. */
  readonly output: string;
}

/** A machine to set up; tests lend one that only remembers. */
export interface SetupMachine {
  readonly places: VmPlaces;
  /** The user's number, 0 for root; `null` where there is none. */
  readonly uid: number | null;
  /** Who called `sudo`, when this runs under it. */
  readonly sudoUser: string | undefined;
  /** Absolute path of the folder in which `lib/modules` and `boot` lie; `""` for the real one. */
  readonly root: string;
  /** The path of a program. */
  find(program: string): Promise<string | undefined>;
  /** What a program prints on standard output; `""` when it fails. Changes nothing. */
  ask(command: readonly string[]): Promise<string>;
  /** Runs a command and hands on what it prints; its user may be asked for a password. */
  run(
    command: readonly string[],
    directory: string,
    output: (line: string) => void,
  ): Promise<CommandEnd>;
}

const OUTPUT_CHARS_MAX = 16_384;
/** Messages are read by this program, so they have to be in one language. */
const LANGUAGE = { LC_ALL: "C" };

/** The machine that this runs on. */
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
    return ""; // There is no such program.
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
