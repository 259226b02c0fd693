/**
 * Which engine a command talks to: the one that is named, else that of the project in the folder
 * where the command runs, else the one on the usual port.
 *
 * A command in a project never changes the engine of another one by mistake: if the engine of the
 * project does not run and another has its port, the command is refused, with both.
 *
 * @module
 */
import { type EngineInfo, type ProjectAddress, projectAddress } from "../engine/mod.ts";
import { ENGINE_URL_DEFAULT, readEngineUrl } from "./arguments.ts";
import { connectToEngine, type EngineAddress, type EngineConnection } from "./connect.ts";
import { CommandError } from "./failure.ts";

/** The engine a command talks to. */
export interface FoundEngine {
  readonly url: string;
  readonly token?: string;
  /** The project whose engine it has to be, unless that is known to run. */
  readonly project?: ProjectAddress;
}

/** Where a command runs. */
export interface CommandPlace {
  readonly directory: string;
  env(name: string): string | undefined;
  /** Default: {@linkcode projectAddress}. */
  readonly find?: (directory: string) => Promise<ProjectAddress | undefined>;
}

/**
 * Finds it; connects to nothing.
 *
 * @throws {UsageError} The address is invalid.
 */
export async function findEngine(
  address: EngineAddress,
  { directory, env, find = findHere }: CommandPlace,
): Promise<FoundEngine> {
  const typed = address.url ?? env("ENGINE_URL");
  const named = typed === undefined ? undefined : readEngineUrl(typed);
  const project = named === undefined ? await find(directory) : undefined;
  const token = address.token ?? env("ENGINE_TOKEN") ?? project?.token;
  return {
    url: named ?? project?.url ?? ENGINE_URL_DEFAULT,
    ...token !== undefined && { token },
    ...project && !project.isRunning && { project },
  };
}

/** How {@linkcode connectToFound} connects; tests provide another way. */
type Connect = (address: EngineAddress) => Promise<EngineConnection>;

/**
 * Connects to an engine that was found.
 *
 * @throws {CommandError} It does not run, or another project's engine has its port.
 */
export async function connectToFound(
  { url, token, project }: FoundEngine,
  { isShort }: EngineAddress,
  connect: Connect = connectToEngine,
): Promise<EngineConnection> {
  const port = new URL(url).port;
  const holder = project?.others.find((other) => new URL(other.url).port === port);
  if (project && holder) throw otherProject(project, holder.url, holder.directory);
  let engine: EngineConnection;
  try {
    engine = await connect({ url, token, isShort });
  } catch (thrown) {
    throw withOthers(thrown, project);
  }
  try {
    if (project) await refuseOther(engine, project);
    return engine;
  } catch (thrown) {
    await engine[Symbol.asyncDispose]();
    throw thrown;
  }
}

/** Asks an engine that left no trace on this machine what it runs: it may be of another user. */
async function refuseOther(engine: EngineConnection, project: ProjectAddress): Promise<void> {
  const answer = await engine.call("engine::supervisor::info", {});
  const { data_directory } = answer as unknown as EngineInfo;
  const directory = data_directory.replace(/\/\.engine$/, "");
  if (directory !== project.directory) throw otherProject(project, project.url, directory);
}

function otherProject(
  { directory, url }: ProjectAddress,
  otherUrl: string,
  other: string,
): CommandError {
  return new CommandError(
    `The engine of ${directory} (${url}) is not running, and the engine at ${otherUrl} is ` +
      `that of ${other}; start this one on a port of its own (engine.port in config.yaml), ` +
      `or name the other one: --url ${otherUrl}`,
  );
}

/** Adds the engines that run instead. */
function withOthers(thrown: unknown, project: ProjectAddress | undefined): unknown {
  const others = project?.others ?? [];
  if (!(thrown instanceof CommandError) || others.length === 0) return thrown;
  const shown = others.slice(0, 3).map(({ directory, url }) => `${url} (${directory})`);
  const more = others.length > 3 ? ` and ${others.length - 3} more` : "";
  return new CommandError(
    `${thrown.message}; running engines of other projects, for --url: ${shown.join(", ")}${more}`,
  );
}

async function findHere(directory: string): Promise<ProjectAddress | undefined> {
  return await projectAddress(directory, () => Deno.env.toObject());
}
