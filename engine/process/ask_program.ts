/**
 * Asks a program of this machine what it is. One that gives no answer is not waited for.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { ProgramName } from "./programs.ts";

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
