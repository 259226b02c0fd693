/**
 * Run or embed an engine.
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
export type { ConsoleOptions, EngineConsole } from "./console.ts";
export {
  operatorUrl,
  setUpVm,
  startConsole,
  startEngine,
  vmSetupCommands,
  vmStatus,
  writeSdkCopies,
} from "./door_functions.ts";
export type { Engine, StartOptions, StopOptions } from "./engine_door.ts";
export { CONTROL_HEADER, readControlKey } from "./auth/user_key.ts";
export { VERSION } from "./version.ts";
export type {
  ControlKeyInfo,
  Endpoint,
  EngineInfo,
  ReplicaStatus,
  WorkerState,
  WorkerStatus,
} from "./ports/supervision.ts";
export type { LogLevel } from "./ports/log.ts";
export type { Accelerator, Isolation, Network, Resources } from "./ports/launcher.ts";
export type { VmSetupOptions, VmSetupReport } from "./vm/setup/setup.ts";
export type { NamedKernel } from "./vm/setup/plan.ts";
export type { VmStatus } from "./vm/setup/status.ts";
