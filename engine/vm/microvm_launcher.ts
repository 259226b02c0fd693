/**
 * Launcher for microVMs: each worker's program runs in a machine of its own, which sees only the
 * system's programs and the folders in its containment.
 *
 * What lies where: `image/` builds what a guest boots, `machine/` finds and runs QEMU, `guest/`
 * runs programs in a booted machine, `setup/` is `engine vm setup` and `engine vm status`.
 *
 * The whole configuration of a machine, as one text, is its key. A program takes over an idle
 * machine of its worker if the keys are equal.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import {
  type Accelerator,
  type Containment,
  GUEST_MEMORY_MB_MIN,
  type Launcher,
  type LaunchSpec,
  ORPHAN_GRACE_MS,
  type OutputLine,
  type Running,
} from "../ports/launcher.ts";
import { keyFolder } from "../auth/control_key.ts";
import { containedFolders } from "../install/containment.ts";
import {
  type ProtectedFolders,
  resolveShares,
  type Share,
  WorkerFolders,
} from "../install/guest_access.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { PidFiles } from "../process/orphans.ts";
import type { OutputTurns } from "../process/output_turns.ts";
import { processStart } from "../process/process_group.ts";
import { pathOutside } from "../process/programs.ts";
import { Guest, type GuestOptions } from "./guest/guest.ts";
import { type IdleGuest, KeptGuests } from "./kept_guests.ts";
import { Accelerators } from "./machine/accelerators.ts";
import { findVmHost, HOST_PROGRAMS, type VmHost, vmPlaces } from "./machine/host_tools.ts";
import { type BootedGuest, MicroVmProgram } from "./microvm_program.ts";

/** Dependencies of a {@linkcode MicroVmLauncher}; the optional ones are replaced by tests. */
export interface MicroVmOptions {
  /** Absolute path of the engine's files; `run` in it holds pid files and files of guests. */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Current address of the engine's listener on this machine. */
  readonly engine: () => { readonly hostname: string; readonly port: number };
  /** Finds image and programs. Default: on this machine. */
  readonly findHost?: (name: string) => Promise<VmHost>;
  /** Chooses the accelerator. Default: see {@linkcode Accelerators}. */
  readonly accelerators?: Pick<Accelerators, "choose">;
  /** Boots a machine. Default: {@linkcode Guest.boot}. */
  readonly boot?: (options: GuestOptions, signal?: AbortSignal) => Promise<BootedGuest>;
  /** The user's home directory, which no guest sees. Default: `HOME`. */
  readonly home?: string;
  /** The budget of what all programs print. Default: one for each guest. */
  readonly turns?: OutputTurns;
}

/** Configuration of a machine. */
interface Plan {
  readonly key: string;
  readonly host: VmHost;
  readonly accelerator: Accelerator;
  readonly shares: readonly Share[];
  readonly containment: Containment;
}

/** A booted machine. */
interface Booted extends IdleGuest {
  readonly guest: BootedGuest;
}

/** Containment of a program that specifies none. */
const LEAST: Containment = {
  reads: [],
  writes: [],
  network: "engine",
  resources: { cpus: 1, memory_mb: GUEST_MEMORY_MB_MIN },
  accel: "auto",
};
/** How long an idle machine is kept for the next program of its worker. */
const GUEST_KEEP_MS = 10_000;
/** How long an idle guest may take to power off before it is killed. */
const POWER_OFF_MS = 5_000;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

/** Starts programs in microVMs. */
export class MicroVmLauncher implements Launcher {
  readonly isolation = "microvm";
  readonly #options: MicroVmOptions;
  readonly #findHost: (name: string) => Promise<VmHost>;
  readonly #accelerators: Pick<Accelerators, "choose">;
  readonly #boot: NonNullable<MicroVmOptions["boot"]>;
  readonly #pidFiles: PidFiles;
  readonly #runFolders: RunFolders;
  readonly #folders = new WorkerFolders();
  readonly #kept: KeptGuests<Booted>;
  #isWarned = false;

  constructor(options: MicroVmOptions) {
    const { dataDirectory, clock } = options;
    this.#options = options;
    this.#findHost = options.findHost ?? ((name) => findHost(name, dataDirectory));
    this.#accelerators = options.accelerators ?? new Accelerators();
    this.#boot = options.boot ?? ((guest, signal) => Guest.boot(guest, signal));
    this.#pidFiles = new PidFiles(`${dataDirectory}/run`);
    this.#runFolders = new RunFolders(`${dataDirectory}/run/vm`);
    this.#kept = new KeptGuests(clock, GUEST_KEEP_MS);
  }

  async check(name: string, accel: Accelerator | "auto"): Promise<void> {
    await this.#choose(name, accel);
  }

  async start(
    spec: LaunchSpec,
    output: (line: OutputLine) => void,
    phase: (what: string) => void = () => {},
    signal?: AbortSignal,
  ): Promise<Running> {
    const plan = await this.#plan(spec);
    if (signal?.aborted) throw cancelled(spec);
    const { directory } = spec;
    const kept = this.#kept.take(plan.key, directory);
    // A kept machine that ended at this moment cannot run it; then a new one is booted.
    const running = kept && await this.#run(kept, plan, spec, output).catch(() => undefined);
    if (running) return running;
    phase(`booting a microVM (${plan.accelerator})`);
    const booted = await this.#bootFor(plan, spec, signal).catch((thrown) => {
      throw signal?.aborted ? cancelled(spec) : thrown;
    });
    return await this.#run(booted, plan, spec, output);
  }

  async close(): Promise<void> {
    await this.#kept.close();
  }

  async #choose(
    name: string,
    accel: Accelerator | "auto",
  ): Promise<{ host: VmHost; accelerator: Accelerator }> {
    const host = await this.#findHost(name);
    const { accelerator, warning } = await this.#accelerators.choose(name, accel, host);
    if (warning !== null && !this.#isWarned) {
      this.#isWarned = true;
      const text = "microVMs run in software emulation, which is slow";
      this.#options.log.warn(text, { worker: name, reason: warning });
    }
    return { host, accelerator };
  }

  async #plan(spec: LaunchSpec): Promise<Plan> {
    const containment = spec.containment ?? LEAST;
    const { host, accelerator } = await this.#choose(spec.name, containment.accel);
    const shares = await resolveShares(spec, this.#protectedFolders(host));
    await this.#folders.claim(spec.name, spec.directory);
    const { network, resources } = containment;
    const parts = [host, accelerator, shares, network, resources, this.#options.engine()];
    return { key: JSON.stringify(parts), host, accelerator, shares, containment };
  }

  #protectedFolders({ image }: VmHost): ProtectedFolders {
    const { dataDirectory, home = Deno.env.get("HOME") } = this.#options;
    const more = [image.kernel, image.initrd, keyFolder()];
    return { dataDirectory, home, more };
  }

  async #bootFor(
    plan: Plan,
    { name, directory, env }: LaunchSpec,
    signal: AbortSignal | undefined,
  ): Promise<Booted> {
    await this.#pidFiles.endLeftovers(name, ORPHAN_GRACE_MS);
    const { host, accelerator, shares, key, containment: { network, resources } } = plan;
    const runDirectory = await this.#runFolders.next();
    const engine = this.#options.engine();
    const { turns } = this.#options;
    const own = {
      ...{ name, accelerator, network, resources, shares, engine, runDirectory },
      ...turns && { turns },
    };
    const guest = await this.#boot({ ...own, ...host }, signal);
    const gone = guest.ended.then(() => this.#pidFiles.remove(name, guest.pid));
    const release = async (): Promise<void> => {
      await guest.powerOff(POWER_OFF_MS);
      await gone;
    };
    try {
      await this.#pidFiles.write(name, guest.pid, env.ENGINE_LAUNCH_ID ?? null);
    } catch (thrown) {
      await release();
      throw launchFailed(name, thrown);
    }
    return { key, directory, guest, ended: gone, release };
  }

  async #run(
    booted: Booted,
    { accelerator }: Plan,
    spec: LaunchSpec,
    output: (line: OutputLine) => void,
  ): Promise<Running> {
    const { guest } = booted;
    const { name, command, directory } = spec;
    const env = addressedEnv(spec.env, guest.engineUrlHost);
    try {
      const program = await guest.run({ command, directory, env }, output);
      const endUse = async (isKept: boolean): Promise<void> => {
        if (isKept) this.#kept.keep(booted);
        else await booted.release();
      };
      const { clock } = this.#options;
      return new MicroVmProgram(program, { spec, env, guest, accelerator, clock, endUse });
    } catch (thrown) {
      await booted.release();
      throw launchFailed(name, thrown);
    }
  }
}

function cancelled({ name }: LaunchSpec): EngineError {
  return new EngineError("cancelled", `The start of ${name} was cancelled`);
}

/** Finds image and programs, never a program in a folder that contained workers can write. */
async function findHost(name: string, dataDirectory: string): Promise<VmHost> {
  const places = vmPlaces();
  const writable = await containedFolders(dataDirectory);
  return await findVmHost(name, {
    ...places,
    path: await pathOutside(places.path, writable, HOST_PROGRAMS),
  });
}

function launchFailed(name: string, thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown;
  const message = `Worker ${name} cannot be started in a microVM: ${
    thrown instanceof Error ? thrown.message : String(thrown)
  }`;
  return new EngineError("launch_failed", message, { cause: thrown });
}

/**
 * The folders for files of running guests. Each is named after the engine's process, so that a
 * later engine can remove the folders of one that was killed.
 */
export class RunFolders {
  readonly #parent: string;
  #cleaned: Promise<void> | undefined;

  constructor(parent: string) {
    this.#parent = parent;
  }

  /** Absolute path for a new folder, which the guest creates and removes. */
  async next(): Promise<string> {
    await (this.#cleaned ??= removeOrphans(this.#parent));
    return `${this.#parent}/${await ownerOf(Deno.pid)}-${crypto.randomUUID().slice(0, 8)}`;
  }
}

/** Identifies a process by its id and start time, which is counted from the boot of the host. */
async function ownerOf(pid: number): Promise<string> {
  return `${pid}-${(await processStart(pid))?.split("/").at(-1) ?? ""}`;
}

async function removeOrphans(parent: string): Promise<void> {
  for (const name of await namesIn(parent)) {
    const [, owner, pid] = /^((\d+)-\d*)-\w+$/.exec(name) ?? [];
    if (owner === undefined || owner === await ownerOf(Number(pid))) continue;
    await Deno.remove(`${parent}/${name}`, { recursive: true })
      .catch(() => {}); // Removed next time.
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  } catch {
    return []; // Not created yet.
  }
}

/**
 * Adapts a program's environment to the network of its guest: `ENGINE_URL` and proxies on loopback
 * get the host of `engineHost` (such as `10.0.2.2:49134`), and connections to the engine bypass
 * proxies.
 */
export function addressedEnv(
  env: Readonly<Record<string, string>>,
  engineHost: string,
): Record<string, string> {
  const addressed: Record<string, string> = { ...env };
  const hostname = engineHost.replace(/:\d+$/, "");
  if (env.ENGINE_URL !== undefined) {
    addressed.ENGINE_URL = env.ENGINE_URL.replace(/^(\w+:\/\/)[^/?#]*/, `$1${engineHost}`);
  }
  const proxies = Object.keys(env).filter((name) => /^(https?|ftp|all)_proxy$/i.test(name));
  for (const name of proxies) addressed[name] = withoutLoopback(env[name]!, hostname);
  if (proxies.length === 0) return addressed;
  for (const name of ["no_proxy", "NO_PROXY"]) {
    const known = env[name] ?? env.no_proxy ?? env.NO_PROXY ?? "";
    addressed[name] = known === "" ? hostname : `${known},${hostname}`;
  }
  return addressed;
}

function withoutLoopback(url: string, hostname: string): string {
  return url.replace(
    /^(\w+:\/\/)?([^/@]*@)?([^/:@[]+|\[[^\]]*\])/,
    (all, scheme = "", user = "", host) =>
      LOOPBACK.test(host) ? `${scheme}${user}${hostname}` : all,
  );
}
