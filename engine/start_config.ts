/**
 * Which configuration an engine starts with: a file that was named, the one of the directory, or
 * the embedded defaults.
 *
 * @module
 */
import { builtinWorkers } from "../workers/mod.ts";
import { defaultConfig, loadConfig } from "./config/config.ts";
import type { Config } from "./ports/config.ts";

/** Where to look. */
export interface ConfigPlace {
  /** The config.yaml to run; left out: the one in `directory`, else embedded defaults. */
  readonly configPath?: string;
  /** Where the project lies if `configPath` is left out. Default: the current directory. */
  readonly directory?: string;
}

/**
 * Reads it.
 *
 * @throws {EngineError} `config_invalid` with `details.problems`.
 */
export async function readConfig(options: ConfigPlace): Promise<Config> {
  const directory = await Deno.realPath(options.directory ?? ".");
  const path = options.configPath === undefined
    ? `${directory}/config.yaml`
    : await withRealFolder(options.configPath);
  const named = options.configPath !== undefined;
  const there = named || await Deno.stat(path).then(() => true, () => false);
  if (!there) return defaultConfig(directory, builtinWorkers);
  return loadConfig(path, builtinWorkers, Deno.env.toObject());
}

/** The same file by a path without linked folders, so that workers below it are seen to be so. */
async function withRealFolder(path: string): Promise<string> {
  const cut = path.lastIndexOf("/");
  const folder = cut < 0 ? "." : path.slice(0, cut) || "/";
  // Without such a folder there is no such file, which is for others to say.
  const real = await Deno.realPath(folder).catch(() => folder);
  return `${real}/${path.slice(cut + 1)}`;
}
