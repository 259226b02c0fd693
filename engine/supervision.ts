/**
 * What runs workers that are directories on this machine, put together.
 *
 * The largest part of an engine by far, and one that has none of them does not need it: it is
 * imported by late_supervisor.ts only, with the first.
 *
 * @module
 */
import { checkNewWorker, type NewWorker, type NewWorkerRequest } from "./install/prepare.ts";
import { ProcessLauncher } from "./process/process_launcher.ts";
import { Supervisor, type SupervisorOptions } from "./supervisor/supervisor.ts";
import type { Isolation, Launcher } from "./ports/launcher.ts";
import { MicroVmLauncher, type MicroVmOptions } from "./vm/microvm_launcher.ts";

/** What is said of the engine around it. */
export type SupervisionOptions =
  & Omit<SupervisorOptions, "launchers" | "platform">
  & Pick<MicroVmOptions, "engine">;

/** The parts that others talk to. */
export interface SupervisionParts {
  readonly supervisor: Supervisor;
  /** As {@linkcode checkNewWorker}, on this machine. */
  checkNewWorker(request: NewWorkerRequest): Promise<NewWorker>;
}

/** Puts them together; nothing runs yet. */
export function createSupervision(options: SupervisionOptions): SupervisionParts {
  const { dataDirectory, clock, log, engine } = options;
  const platform = Deno.build.os;
  const launchers: Partial<Record<Isolation, Launcher>> = {
    process: new ProcessLauncher(dataDirectory),
    ...platform === "linux" && {
      microvm: new MicroVmLauncher({ dataDirectory, clock, log, engine }),
    },
  };
  return {
    supervisor: new Supervisor({ ...options, launchers, platform }),
    checkNewWorker: (request) => checkNewWorker(request, { platform, launchers, dataDirectory }),
  };
}
