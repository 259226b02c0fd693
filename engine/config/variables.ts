/**
 * What a config.yaml may insert: environment variables, those of the `.env` file beside it, and the
 * content of files.
 *
 * A variable of the environment comes before one of `.env`, so a deployment can replace what a
 * developer's file says. Nothing of `.env` reaches the environment of workers.
 *
 * @module
 */
import { parseEnv } from "node:util";
import { thrownText } from "../../sdk/typescript/wire/errors.ts";
import type { ReadFile, Variables } from "./yaml.ts";

/** Environment variables, such as `Deno.env.toObject()`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Longest `.env` and longest inserted file: the engine's only thread reads them. */
export const INSERTED_BYTES_MAX = 64 * 1024;

/** The values for a config.yaml at `path` (absolute). */
export function variablesOf(
  path: string,
  env: Environment,
): [variable: Variables, file: ReadFile] {
  const directory = path.slice(0, path.lastIndexOf("/"));
  let written: Environment | undefined;
  return [
    (name) => {
      if (Object.hasOwn(env, name)) return env[name];
      written ??= readDotEnv(`${directory}/.env`);
      return Object.hasOwn(written, name) ? written[name] : undefined;
    },
    (name) => {
      const file = name.startsWith("/") ? name : `${directory}/${name}`;
      try {
        return readBounded(file);
      } catch (thrown) {
        return new Error(thrown instanceof Deno.errors.NotFound ? "none" : thrownText(thrown));
      }
    },
  ];
}

/** Variables of a file that need not be there. */
function readDotEnv(path: string): Environment {
  try {
    return parseEnv(readBounded(path));
  } catch {
    return {}; // There is none; what it would define is then reported as not set.
  }
}

/** @throws {Error} The file is missing, not readable, no file, or too large. */
function readBounded(path: string): string {
  const { size, isFile } = Deno.statSync(path);
  if (!isFile) throw new Error("it is not a file");
  if (size > INSERTED_BYTES_MAX) throw new Error(`it has more than ${INSERTED_BYTES_MAX} bytes`);
  return Deno.readTextFileSync(path);
}
