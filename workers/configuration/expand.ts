/**
 * References in texts of a configuration: `${NAME}` and `${NAME:default}` stand for environment
 * variables of the engine, `${file:NAME}` for a file of its directory of secrets.
 *
 * A caller that may set a value could otherwise read the whole environment of the engine by it. So
 * only variables that the operator lists are expanded, and only files directly in one directory.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** References in one value. */
export const REFERENCES_MAX = 1_000;
/** Largest file of a secret. */
export const SECRET_FILE_BYTES_MAX: number = 64 * 1024;
const REFERENCE = /\$\{(file:)?([^}:]*)(?::([^}]*))?\}/g;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const FILE = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/;

/** What references may stand for. */
export interface References {
  /** Names of variables, in which `*` at the end matches any. */
  readonly environment: readonly string[];
  /** Where files of secrets are; `undefined`: nowhere. */
  readonly secretsDirectory: string | undefined;
  /** The value of a variable. */
  env(name: string): string | undefined;
  /** The text of a file, which may throw. */
  readFile(path: string): string;
}

/** A text that is a reference as a whole, so that its name is no part of a password. */
const ONLY_REFERENCE = /^\$\{(?:file:[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}|[A-Za-z_]\w*)\}$/;

/**
 * Makes a function that replaces the references of texts; it counts those of one value. Its errors
 * quote no part of a secret, unless that is one reference and nothing else.
 */
export function expander(references: References): (text: string, isSecret?: boolean) => string {
  let count = 0;
  const expand = (text: string): string =>
    text.replaceAll(REFERENCE, (whole, file, name: string, fallback?: string) => {
      if (++count > REFERENCES_MAX) throw failed(`more than ${REFERENCES_MAX} references`);
      if (file !== undefined) return fileOf(references, whole, name);
      return variableOf(references, whole, name, fallback);
    });
  return (text, isSecret = false) => {
    if (!text.includes("${")) return text;
    if (!isSecret || ONLY_REFERENCE.test(text)) return expand(text);
    try {
      return expand(text);
    } catch {
      throw failed(
        "a secret has a reference that stands for nothing, or may not be used; write the secret " +
          "as one reference, ${NAME} or ${file:NAME}, for an error that names it",
      );
    }
  };
}

/** @throws {EngineError} `EXPAND_FAILED` */
function variableOf(
  { environment, env }: References,
  whole: string,
  name: string,
  fallback: string | undefined,
): string {
  if (!VARIABLE.test(name)) throw failed(`${whole} names no variable`);
  if (!environment.some((pattern) => matches(pattern, name))) {
    throw failed(
      `the variable ${name} may not be used; add it to environment of engine-configuration if ` +
        "it may",
    );
  }
  const value = env(name) ?? fallback;
  if (value !== undefined) return value;
  throw failed(`the engine has no variable ${name}; set it, or write \${${name}:default}`);
}

/** @throws {EngineError} `EXPAND_FAILED` */
function fileOf({ secretsDirectory, readFile }: References, whole: string, name: string): string {
  if (secretsDirectory === undefined) {
    throw failed(`${whole} needs secrets_directory in the config of engine-configuration`);
  }
  if (!FILE.test(name)) throw failed(`${whole} names no file of the directory of secrets`);
  let text: string;
  try {
    text = readFile(`${secretsDirectory}/${name}`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw failed(`the file ${name} of the directory of secrets cannot be read (${reason})`);
  }
  if (text.length > SECRET_FILE_BYTES_MAX) {
    throw failed(`the file ${name} has more than ${SECRET_FILE_BYTES_MAX} bytes`);
  }
  return text.replace(/\r?\n$/, "");
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

function failed(why: string): EngineError {
  return new EngineError("EXPAND_FAILED", `The value cannot be expanded: ${why}`);
}
