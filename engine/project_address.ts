/**
 * Which engine belongs to the folder in which a command runs.
 *
 * A folder with a config.yaml is a project, and a command there means its engine. A running engine
 * has left its address in a file of its user; without one, the address is that of config.yaml. Only
 * the folder itself counts, as for `engine` without `--config`, and not the folders around it.
 *
 * @module
 */
import { EngineError } from "../sdk/typescript/wire/errors.ts";
import { isLoopback } from "../sdk/typescript/wire/loopback.ts";
import { type RunningEngine, runningEngines } from "./auth/control_key.ts";

/** Where the engine of a project is, or would be. */
export interface ProjectAddress {
  /** The folder; absolute and without links. */
  readonly directory: string;
  /** Where programs on this machine reach it. */
  readonly url: string;
  /** Its token, if it wants one and config.yaml has it. */
  readonly token?: string;
  /** Whether an engine of this user runs there for this project. */
  readonly isRunning: boolean;
  /** The engines of this user on this machine, if this one does not run. */
  readonly others: readonly { readonly directory: string; readonly url: string }[];
}

/**
 * The engine of a folder (absolute); `undefined` when the folder is no project.
 *
 * @param variables The environment, whose values config.yaml may insert.
 * @param keys Where running engines have left their addresses; default: the user's own folder.
 * @throws {EngineError} `config_invalid` when no engine runs and config.yaml cannot be read.
 */
export async function projectAddress(
  directory: string,
  variables: () => Readonly<Record<string, string>>,
  keys?: string,
): Promise<ProjectAddress | undefined> {
  const path = `${directory}/config.yaml`;
  const hasFile = isThere(path);
  if (!hasFile && !isThere(`${directory}/.engine`)) return undefined;
  const real = Deno.realPathSync(directory);
  const engines = await runningEngines(keys);
  const running = engines.find(({ project }) => project === real);
  if (running) return await addressOfRunning(running, hasFile ? path : undefined, variables);
  if (!hasFile) return undefined;
  const { readEngineSettings } = await import("./config/config.ts");
  const { host, port, tls, auth_token } = readEngineSettings(path, variables());
  refuseElsewhere(host, path);
  const isEverywhere = host === "0.0.0.0" || host === "::";
  const name = isEverywhere ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return {
    directory: real,
    url: `${tls ? "wss" : "ws"}://${name}:${port}`,
    ...auth_token !== undefined && { token: auth_token },
    isRunning: false,
    others: engines.map(({ url, project }) => ({ directory: project, url })),
  };
}

/**
 * An engine listens on an address of its own machine. A folder that came from elsewhere must not
 * send the commands, and with them a token, to an address of its choice.
 */
function refuseElsewhere(host: string, path: string): void {
  const isHere = isLoopback(host) || host === "0.0.0.0" || host === "::" ||
    host === Deno.hostname() ||
    Deno.networkInterfaces().some(({ address }) => address === host);
  if (isHere) return;
  const message =
    `${path}: engine.host ${host} is not an address of this machine, so its engine runs ` +
    "elsewhere; name it with --url or ENGINE_URL";
  throw new EngineError("config_invalid", message, { details: { problems: [message] } });
}

/** A token is read from config.yaml only if the engine wants one: reading takes time. */
async function addressOfRunning(
  { local, project, needs_token }: RunningEngine,
  path: string | undefined,
  variables: () => Readonly<Record<string, string>>,
): Promise<ProjectAddress> {
  const found = { directory: project, url: local, isRunning: true, others: [] };
  if (!needs_token || path === undefined) return found;
  const { readEngineSettings } = await import("./config/config.ts");
  try {
    const { auth_token } = readEngineSettings(path, variables());
    return auth_token === undefined ? found : { ...found, token: auth_token };
  } catch {
    return found; // The engine says that it wants a token.
  }
}

function isThere(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false; // Missing, or not for this user.
  }
}
