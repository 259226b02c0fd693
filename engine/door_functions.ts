/**
 * The functions of the door, each read when it is first called.
 *
 * Who starts an engine need not wait until the set-up of microVMs has been read, nor the other way
 * round: together they are 400 files, and each takes 0.3 ms. What they do is said where they are.
 *
 * @module
 */
import type { ConsoleOptions, EngineConsole } from "./console.ts";
import type { Engine, StartOptions } from "./engine_door.ts";
import type { VmStatus } from "./vm/setup/status.ts";
import type { VmSetupOptions, VmSetupReport } from "./vm/setup/setup.ts";
import type { NamedKernel } from "./vm/setup/plan.ts";

/**
 * Starts an engine and returns when it listens and its built-in workers have started.
 *
 * Workers that are directories start in the background; `engine::supervisor::list` says how far
 * they are.
 *
 * @throws {EngineError} `config_invalid` with `details.problems`, `store_unavailable`,
 * `address_in_use`, `address_not_available`.
 */
export async function startEngine(options: StartOptions = {}): Promise<Engine> {
  return await (await import("./engine.ts")).startEngine(options);
}

/**
 * Starts a console in this process and returns when it listens.
 *
 * @throws {EngineError} `engine_unreachable` when no line comes about within 10 s;
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

/** Writes the SDKs to `sdk/python/engine_sdk` and `sdk/typescript` below the data directory. */
export async function writeSdkCopies(dataDirectory: string): Promise<void> {
  await (await import("./install/sdk_copy.ts")).writeSdkCopies(dataDirectory);
}

/**
 * Gets what microVMs need on this machine, and boots one as a check.
 *
 * @throws {EngineError} `isolation_unavailable`, `install_failed` or `launch_failed`, with what to
 * do; what was done until then stays and is not done again next time.
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
