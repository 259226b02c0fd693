/**
 * Run or embed an engine.
 *
 * Each function imports its part when it is called, so that a program which uses one of them does
 * not load the others.
 *
 * @example
 * ```ts ignore
 * import { startEngine } from "@engine/engine/engine";
 *
 * await using engine = await startEngine({ configPath: "config.yaml" });
 * console.log(engine.endpoints);
 * await engine.finished;
 * ```
 *
 * @module
 */
import type { CreatedToken, NewToken, TokenInfo } from "./auth/token_file.ts";
import type { ConsoleOptions, EngineConsole } from "./console.ts";
import type { Engine, StartOptions } from "./engine.ts";
import type { NamedKernel } from "./vm/setup/plan.ts";
import type { ClusterSettings } from "./ports/config.ts";
import type { Log } from "./ports/log.ts";
import type { StateCheck } from "./ports/store.ts";
import type { RestoredState } from "./store/offline_state.ts";
import type { VmSetupOptions, VmSetupReport } from "./vm/setup/setup.ts";
import type { VmStatus } from "./vm/setup/status.ts";

export type { ConsoleOptions, EngineConsole } from "./console.ts";
export type { Engine, StartOptions, StopOptions } from "./engine.ts";
export {
  CONTROL_HEADER,
  isProcessDead,
  keyFolder,
  type KeyPlace,
  readControlKey,
  type RunningEngine,
  runningEngines,
} from "./auth/control_key.ts";
export { type ProjectAddress, projectAddress } from "./project_address.ts";
export { VERSION } from "./version.ts";
export { similarNames } from "../sdk/typescript/wire/similar.ts";
export type {
  ControlKeyInfo,
  Endpoint,
  EngineInfo,
  ListenerInfo,
  ReplicaStatus,
  WorkerState,
  WorkerStatus,
} from "./ports/supervision.ts";
export type {
  ClusterLogView,
  ClusterView,
  EngineLinkView,
  EngineRow,
  EngineView,
} from "./ports/directory.ts";
export type { CreatedToken, NewToken, TokenInfo } from "./auth/token_file.ts";
export type { DamagedKey, StateCheck, StoreKey } from "./ports/store.ts";
export type { RestoredState } from "./store/offline_state.ts";
export type { LogLevel } from "./ports/log.ts";
export type { Accelerator, Isolation, Network, Resources } from "./ports/launcher.ts";
export type { VmSetupOptions, VmSetupReport } from "./vm/setup/setup.ts";
export type { NamedKernel } from "./vm/setup/plan.ts";
export type { VmStatus } from "./vm/setup/status.ts";

/**
 * Starts an engine and returns when it listens and its built-in workers have started.
 *
 * Workers that are directories start in the background; `engine::supervisor::list` reports their
 * progress.
 *
 * @throws {EngineError} `config_invalid` with `details.problems`, `store_unavailable`,
 * `address_in_use`, `address_not_available`, `too_few_descriptors`.
 */
export async function startEngine(options: StartOptions = {}): Promise<Engine> {
  const { explainExhausted, requireDescriptors } = await import("./platform/descriptors.ts");
  requireDescriptors();
  try {
    return await (await import("./engine.ts")).startEngine(options);
  } catch (thrown) {
    throw explainExhausted(thrown);
  }
}

/**
 * Starts a console in this process and returns when it listens.
 *
 * @throws {EngineError} `engine_unreachable` when no connection is established within 10 s;
 * `address_in_use`, `address_not_available`; `INVALID_ARGUMENTS` for an address that other machines
 * reach without `typed`.
 */
export async function startConsole(options: ConsoleOptions): Promise<EngineConsole> {
  return await (await import("./console.ts")).startConsole(options);
}

/**
 * The address of a page that may manage workers, of a console that the engine at `engineUrl` serves
 * itself; without a key of the engine's on this machine the address as it is.
 */
export async function operatorUrl(consoleUrl: string, engineUrl: string): Promise<string> {
  return await (await import("./console.ts")).operatorUrl(consoleUrl, engineUrl);
}

/**
 * Writes what workers and editors need of the engine below the data directory: the SDKs to
 * `sdk/python/engine_sdk` and `sdk/typescript`, JSON Schemas of config.yaml and engine.worker.yaml
 * to `schemas`.
 */
export async function writeProjectFiles(dataDirectory: string): Promise<void> {
  await (await import("./install/sdk_copy.ts")).writeSdkCopies(dataDirectory);
  await (await import("./schemas.ts")).writeSchemas(dataDirectory);
}

/**
 * Installs what microVMs need on this machine, and boots one as a check.
 *
 * @throws {EngineError} `isolation_unavailable`, `install_failed` or `launch_failed`, with what to
 * do; steps that were done are kept and are not repeated next time.
 */
export async function setUpVm(options: VmSetupOptions): Promise<VmSetupReport> {
  return await (await import("./vm/setup/setup.ts")).setUpVm(options);
}

/**
 * The commands that {@linkcode setUpVm} would run on this machine; empty when nothing is missing.
 *
 * @throws {EngineError} `isolation_unavailable` when it cannot be set up, with what to do.
 */
export async function vmSetupCommands(kernel?: NamedKernel): Promise<string[]> {
  return await (await import("./vm/setup/setup.ts")).vmSetupCommands(kernel);
}

/** Whether microVMs run on this machine. Takes up to 5 s when KVM was not probed before. */
export async function vmStatus(): Promise<VmStatus> {
  return await (await import("./vm/setup/status.ts")).vmStatus();
}

/**
 * Verifies the state of the project in a directory whose engine does not run.
 *
 * @throws {EngineError} `store_unavailable`, with `details.pid` when an engine holds the state.
 */
export async function checkState(directory: string): Promise<StateCheck> {
  const { checkOffline } = await import("./store/offline_state.ts");
  return checkOffline(await statePath(directory));
}

/**
 * Copies the state of the project in a directory whose engine does not run to an absolute path.
 *
 * @throws {EngineError} `store_unavailable`, with `details.pid` when an engine holds the state.
 */
export async function backupState(directory: string, to: string): Promise<StateCheck> {
  const { backupOffline } = await import("./store/offline_state.ts");
  return backupOffline(await statePath(directory), to);
}

/**
 * Puts a backup in place of the state of the project in a directory, whose engine must not run; or
 * of the cluster that it belongs to, whose engines may run.
 *
 * @throws {EngineError} `store_unavailable`, with `details.pid` when an engine holds the state;
 * `INVALID_ARGUMENTS` when the backup is not intact.
 */
export async function restoreState(directory: string, from: string): Promise<RestoredState> {
  const { restoreOffline } = await import("./store/offline_state.ts");
  const { makePrivate } = await import("./store/private_files.ts");
  const [data, cluster] = [await dataPath(directory), await clusterOf(directory)];
  makePrivate(data);
  if (cluster === undefined) return await restoreOffline(`${data}/state.sqlite`, from);
  const { restoreCluster } = await import("./cluster/keeper/restore.ts");
  const { systemClock } = await import("./platform/system_clock.ts");
  const copy = `${data}/cluster_state.sqlite.restored`;
  const setup = { settings: cluster, copy, clock: systemClock, log: SILENT };
  const check = await restoreCluster(from, setup);
  return { check, aside: undefined, cluster: cluster.name };
}

/**
 * Creates a token for clients of the engine of the project in a directory, which may run. Only a
 * hash of it is stored.
 *
 * @throws {EngineError} `INVALID_ARGUMENTS` for a name in use or another bad argument;
 * `store_unavailable` when the file of tokens cannot be read or written.
 */
export async function createToken(directory: string, wanted: NewToken): Promise<CreatedToken> {
  const { createToken, tokenPath } = await import("./auth/token_file.ts");
  const { makePrivate } = await import("./store/private_files.ts");
  const data = await dataPath(directory);
  makePrivate(data);
  return await createToken(tokenPath(data), wanted, Date.now());
}

/**
 * The created tokens of the project in a directory, oldest first.
 *
 * @throws {EngineError} `store_unavailable` when the file of tokens cannot be read.
 */
export async function listTokens(directory: string): Promise<TokenInfo[]> {
  const { listTokens, tokenPath } = await import("./auth/token_file.ts");
  return listTokens(tokenPath(await dataPath(directory)));
}

/**
 * Revokes a created token of the project in a directory. An engine that runs ends its connections
 * within a second.
 *
 * @throws {EngineError} `NOT_FOUND`; `store_unavailable` when the file cannot be changed.
 */
export async function revokeToken(directory: string, name: string): Promise<TokenInfo> {
  const { revokeToken, tokenPath } = await import("./auth/token_file.ts");
  return await revokeToken(tokenPath(await dataPath(directory)), name, Date.now());
}

async function dataPath(directory: string): Promise<string> {
  return `${await Deno.realPath(directory)}/.engine`;
}

async function statePath(directory: string): Promise<string> {
  const name = await clusterOf(directory) === undefined ? "state" : "cluster_state";
  return `${await dataPath(directory)}/${name}.sqlite`;
}

/** The cluster that keeps the state of a project; a config.yaml that does not fit names none. */
async function clusterOf(directory: string): Promise<ClusterSettings | undefined> {
  const { findConfig } = await import("./config/config.ts");
  const { builtinWorkers } = await import("../workers/mod.ts");
  const found = findConfig({ directory }, builtinWorkers, Deno.env.toObject());
  const cluster = (await found.catch(() => undefined))?.engine.cluster;
  return cluster?.log === "none" ? undefined : cluster;
}

const ignore = (): void => {};
/** The command prints what matters. */
const SILENT: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };
