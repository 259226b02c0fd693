/**
 * Runs workers that are directories on this machine: the supervisor and its launchers.
 *
 * It is half of an engine's code, and an engine without such workers does not load it.
 *
 * @module
 */
import { checkNewWorker, type NewWorker, type NewWorkerRequest } from "../install/prepare.ts";
import type { Isolation, Launcher } from "../ports/launcher.ts";
import { OutputTurns } from "../process/output_turns.ts";
import { ProcessLauncher } from "../process/process_launcher.ts";
import { MicroVmLauncher, type MicroVmOptions } from "../vm/microvm_launcher.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor.ts";

/** What the launchers and the supervisor need of the engine. */
export type DirectoryWorkersOptions =
  & Omit<SupervisorOptions, "launchers" | "platform">
  & Pick<MicroVmOptions, "engine">;

/** What runs workers that are directories. */
export interface DirectoryWorkers {
  readonly supervisor: Supervisor;
  /**
   * Settles how a worker would run, and checks that it can, before anything is written down.
   *
   * @throws {EngineError} `manifest_invalid`; `isolation_unavailable` with what to do.
   */
  checkNewWorker(request: NewWorkerRequest): Promise<NewWorker>;
}

/** Creates the supervisor with the launchers of this platform; nothing runs yet. */
export function createDirectoryWorkers(options: DirectoryWorkersOptions): DirectoryWorkers {
  const { dataDirectory, clock, log, engine } = options;
  const platform = Deno.build.os;
  const turns = new OutputTurns(clock); // One for all workers: together they get a fifth.
  const launchers: Partial<Record<Isolation, Launcher>> = {
    process: new ProcessLauncher(dataDirectory, turns),
    ...platform === "linux" && {
      microvm: new MicroVmLauncher({ dataDirectory, clock, log, engine, turns }),
    },
  };
  return {
    supervisor: new Supervisor({ ...options, launchers, platform }),
    checkNewWorker: (request) => checkNewWorker(request, { platform, launchers, dataDirectory }),
  };
}
