/**
 * Asks the Python that a worker would run on what it is.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/errors.ts";
import type { WorkerSpec } from "./manifest.ts";
import { requireProgram } from "./programs.ts";

/** What is to be known of a Python. */
export interface PythonFacts {
  /** Full version with its build: packages made for one may not suit another. */
  readonly version: string;
  readonly hasPip: boolean;
}

const PROBE = "import sys, importlib.util as u; " +
  "print(sys.version_info >= (3, 10), bool(u.find_spec('pip')), sys.version.split(chr(10))[0])";

/**
 * Runs `python3` in the worker's directory and with its environment.
 *
 * @throws {EngineError} `launch_failed` when there is none, or one that is too old.
 */
export async function probePython(
  name: string,
  { directory }: WorkerSpec,
  env: Readonly<Record<string, string>>,
): Promise<PythonFacts> {
  await requireProgram("python3", env.PATH ?? "", name);
  const command = new Deno.Command("/bin/sh", {
    args: ["-c", 'exec python3 -c "$0"', PROBE],
    cwd: directory,
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { success, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  const found = /^(True|False) (True|False) (.+)$/.exec(text.decode(stdout).trim());
  if (!success || !found) {
    const said = text.decode(stderr).trim().split("\n").at(-1) ?? "";
    const message = `Worker ${name} needs python3, which does not run here: ${said}`;
    throw new EngineError("launch_failed", message, { details: { program: "python3" } });
  }
  const [, isRecent, hasPip, version] = found;
  if (isRecent === "False") {
    const message = `Worker ${name} needs Python 3.10 or later; python3 is ${version}`;
    throw new EngineError("launch_failed", message, { details: { program: "python3" } });
  }
  return { version: version!, hasPip: hasPip === "True" };
}
