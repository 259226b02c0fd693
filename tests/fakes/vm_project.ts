/**
 * Real microVMs for tests: a project to run some in, and whether this machine can boot any.
 *
 * They run in software emulation, which every machine has, so that a test means the same everywhere.
 * A test that needs one is skipped elsewhere, with the reason printed once:
 * `Deno.test({ name, ignore: typeof vmHere === "string", fn })`.
 *
 * @module
 */
import { readManifest } from "../../engine/install/manifest.ts";
import { prepareLaunch } from "../../engine/install/prepare.ts";
import { writeSdkCopies } from "../../engine/install/sdk_copy.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { DirectoryEntry } from "../../engine/ports/config.ts";
import type { Containment, Ended, LaunchSpec, Running } from "../../engine/ports/launcher.ts";
import {
  findVmHost,
  type VmHost,
  type VmPlaces,
  vmPlaces,
} from "../../engine/vm/machine/host_tools.ts";
import { MicroVmLauncher } from "../../engine/vm/microvm_launcher.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** A program in a microVM. */
export interface VmRun {
  readonly running: Running;
  /** What it has printed so far, both streams. */
  readonly lines: readonly string[];
}

/** A folder with an engine's files, workers, and a launcher. */
export class VmProject implements AsyncDisposable {
  /** Absolute, without links. */
  readonly root: string;
  readonly dataDirectory: string;
  readonly launcher: MicroVmLauncher;
  /** The phases before programs run, in order. */
  readonly phases: string[] = [];
  /** The last lines of the output of all installations. */
  readonly installLines: string[] = [];

  private constructor(root: string, enginePort: number) {
    this.root = root;
    this.dataDirectory = `${root}/project/.engine`;
    const quiet = (): void => {};
    this.launcher = new MicroVmLauncher({
      dataDirectory: this.dataDirectory,
      clock: systemClock,
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      engine: () => ({ hostname: "127.0.0.1", port: enginePort }),
      accelerators: { choose: () => Promise.resolve({ accelerator: "tcg", warning: null }) },
    });
  }

  /** A project whose engine listens there. */
  static async create(enginePort = 49134): Promise<VmProject> {
    const project = new VmProject(await Deno.realPath(await Deno.makeTempDir()), enginePort);
    await writeSdkCopies(project.dataDirectory);
    return project;
  }

  /** The directory of a worker. */
  directory(name: string): string {
    return `${this.root}/project/workers/${name}`;
  }

  /** Makes a worker, or changes it. */
  async addWorker(name: string, files: Readonly<Record<string, string>> = {}): Promise<string> {
    const directory = this.directory(name);
    await Deno.mkdir(directory, { recursive: true });
    for (const [path, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${directory}/${path}`, text);
    }
    return directory;
  }

  /** Starts a command in a worker's microVM. */
  async start(
    name: string,
    command: string,
    containment: Partial<Containment> = {},
    spec: Partial<LaunchSpec> = {},
  ): Promise<VmRun> {
    const lines: string[] = [];
    const running = await this.launcher.start(
      {
        name,
        command,
        directory: this.directory(name),
        env: {},
        containment: { ...CONTAINMENT, ...containment },
        ...spec,
      },
      ({ text }) => void lines.push(text),
      (what) => void this.phases.push(what),
    );
    return { running, lines };
  }

  /** Runs a command to its end. */
  async run(
    name: string,
    command: string,
    containment: Partial<Containment> = {},
    spec: Partial<LaunchSpec> = {},
  ): Promise<{ ended: Ended; lines: readonly string[] }> {
    const { running, lines } = await this.start(name, command, containment, spec);
    return { ended: await running.ended, lines };
  }

  /** Installs what a worker depends on and runs it to its end, as the supervisor does. */
  async live(name: string, env: Readonly<Record<string, string>> = {}) {
    const directory = this.directory(name);
    const entry: DirectoryEntry = { kind: "directory", name, path: directory, env: {} };
    const spec = readManifest(directory);
    const prepared = await prepareLaunch({
      clock: systemClock,
      launchers: { microvm: this.launcher },
      dataDirectory: this.dataDirectory,
      platform: "linux",
    }, {
      entry,
      spec,
      reinstall: false,
      signal: new AbortController().signal,
      output: ({ text }) => void this.installLines.push(text),
      began: (what) => void this.phases.push(what),
    });
    const containment = prepared.containment!;
    const all = { ...prepared.env, ...env };
    const { ended, lines } = await this.run(name, spec.start, containment, { env: all });
    return { dependencies: prepared.dependencies, ended, lines };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.launcher.close();
    await Deno.remove(this.root, { recursive: true });
  }
}

const CONTAINMENT: Containment = {
  reads: [],
  writes: [],
  network: "engine",
  resources: { cpus: 1, memory_mb: 160 },
  accel: "tcg",
};

/** What microVMs are made with here, or the reason why there can be none. */
export async function vmHostOrReason(places: VmPlaces = vmPlaces()): Promise<VmHost | string> {
  try {
    return await findVmHost("of a test", places);
  } catch (thrown) {
    if (thrown instanceof EngineError) return thrown.message;
    throw thrown;
  }
}

/** The answer for this machine; a reason has been printed. */
export const vmHere: VmHost | string = await vmHostOrReason();

if (typeof vmHere === "string") console.error(`No test boots a microVM: ${vmHere}`);
