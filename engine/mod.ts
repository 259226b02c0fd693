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
export { type ConsoleOptions, type EngineConsole, operatorUrl, startConsole } from "./console.ts";
export { CONTROL_HEADER, readControlKey } from "./user_key.ts";
export { type Engine, startEngine, type StartOptions, type StopOptions } from "./engine.ts";
export { writeSdkCopies } from "./launch/sdk_copy.ts";
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
export { setUpVm, vmSetupCommands, type VmSetupOptions, type VmSetupReport } from "./vm/setup.ts";
export type { NamedKernel } from "./vm/setup_plan.ts";
export { type VmStatus, vmStatus } from "./vm/machine_status.ts";
