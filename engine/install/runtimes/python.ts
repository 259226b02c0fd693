/**
 * Asks the Python that a worker would run on what it is.
 *
 * @module
 */
import { EngineError } from "../../../sdk/typescript/wire/errors.ts";
import { askProgram, requireProgram } from "../../process/programs.ts";

/** What is to be known of a Python. */
export interface PythonFacts {
  /** Full version with its build: packages made for one may not suit another. */
  readonly version: string;
  readonly hasPip: boolean;
  /** Absolute path of the program itself, whatever script on the PATH leads to it. */
  readonly executable: string;
  /** The folder that it and its packages are installed in; of a virtual environment, its own. */
  readonly prefix: string;
  /** The folder of the installation that a virtual environment is made of. */
  readonly basePrefix: string;
}

/** Whose Python to ask, and how. */
export interface PythonQuestion {
  /** Name of the worker, for messages. */
  readonly name: string;
  /** Where to run it: version switchers look for a choice there. */
  readonly directory: string;
  /** Added to the engine's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Nothing of the user's or of the environment is read, only what is installed with it. */
  readonly isolated: boolean;
}

/** Modules in the directory are no part of Python, so they are not looked for there. */
const PROBE = `import sys
sys.path = [place for place in sys.path if place]
import importlib.util, json
print(json.dumps([sys.version_info >= (3, 10), bool(importlib.util.find_spec("pip")),
  sys.version.split(chr(10))[0], sys.executable, sys.prefix, sys.base_prefix]))`;

/**
 * Runs `python3` with a few lines of the engine's.
 *
 * @throws {EngineError} `launch_failed` when there is none, or one that is too old.
 */
export async function probePython(
  { name, directory, env, isolated }: PythonQuestion,
): Promise<PythonFacts> {
  await requireProgram("python3", env.PATH ?? "", name);
  const args = [...isolated ? ["-I"] : [], "-c", PROBE];
  const question = { worker: name, program: "python3", args, directory, env } as const;
  const facts = await askProgram(question, readFacts);
  if (!facts.isRecent) {
    const message = `Worker ${name} needs Python 3.10 or later; python3 is ${facts.version}`;
    throw new EngineError("launch_failed", message, { details: { program: "python3" } });
  }
  const { isRecent: _, ...python } = facts;
  return python;
}

function readFacts(answer: string): (PythonFacts & { readonly isRecent: boolean }) | undefined {
  try {
    const [isRecent, hasPip, version, executable, prefix, basePrefix] = JSON.parse(answer);
    const texts = [version, executable, prefix, basePrefix];
    if (!texts.every((text) => typeof text === "string")) return undefined;
    return {
      isRecent: isRecent === true,
      hasPip: hasPip === true,
      version,
      executable,
      prefix,
      basePrefix,
    };
  } catch {
    return undefined; // It printed something else; the caller says so.
  }
}
