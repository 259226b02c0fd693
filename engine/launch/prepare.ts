/**
 * Everything between the wish to run a worker and a command that can be started.
 *
 * @module
 */
import type { Clock } from "../ports/clock.ts";
import type { DirectoryEntry } from "../ports/config.ts";
import type { Isolation, Launcher, OutputLine } from "../ports/launcher.ts";
import { installDependencies, type Installed } from "./install.ts";
import type { WorkerSpec } from "./manifest.ts";
import { defaultIsolation, isolationUnavailable } from "./new_worker.ts";
import { pathWithDeno } from "./programs.ts";

/** What preparing needs of its surroundings. */
export interface Preparations {
  readonly clock: Clock;
  readonly launchers: Partial<Record<Isolation, Launcher>>;
  readonly dataDirectory: string;
  readonly platform: typeof Deno.build.os;
}

/** One attempt to prepare a worker. */
export interface PrepareOptions {
  readonly entry: DirectoryEntry;
  readonly spec: WorkerSpec;
  readonly reinstall: boolean;
  readonly signal: AbortSignal;
  output(line: OutputLine): void;
  began(what: string): void;
}

/** A worker that can be started. */
export interface Prepared {
  readonly launcher: Launcher;
  /** The environment without what belongs to one launch only. */
  readonly env: Readonly<Record<string, string>>;
  readonly dependencies: Installed["result"];
}

/** How a worker is kept apart: its entry says, else its manifest, else the platform. */
export function isolationOf(
  entry: DirectoryEntry,
  spec: WorkerSpec | undefined,
  platform: typeof Deno.build.os,
): Isolation {
  return entry.isolation ?? spec?.isolation ?? defaultIsolation(platform);
}

/**
 * Picks the launcher, puts the environment together and installs dependencies.
 *
 * @throws {EngineError} `isolation_unavailable`, `launch_failed`, `install_failed`, `cancelled`.
 */
export async function prepareLaunch(
  { clock, launchers, dataDirectory, platform }: Preparations,
  { entry, spec, reinstall, signal, output, began }: PrepareOptions,
): Promise<Prepared> {
  const isolation = isolationOf(entry, spec, platform);
  const launcher = launchers[isolation];
  if (!launcher) throw isolationUnavailable(entry.name, isolation);

  const inherited = Deno.env.get("PYTHONPATH");
  const base: Record<string, string> = {
    ...inherited ? { PYTHONPATH: inherited } : {},
    ...spec.env,
    ...entry.env,
    ENGINE_WORKER_NAME: entry.name,
    ENGINE_ISOLATION: isolation,
  };
  base.PATH = await pathWithDeno(base.PATH ?? Deno.env.get("PATH") ?? "", dataDirectory);
  const { result, env } = await installDependencies({
    name: entry.name,
    spec,
    launcher,
    dataDirectory,
    env: base,
    clock,
    reinstall,
    signal,
    output,
    began,
  });
  return { launcher, env: { ...base, ...env }, dependencies: result };
}
