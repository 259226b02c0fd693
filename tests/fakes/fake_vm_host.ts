/**
 * A machine with all parts for microVMs in one folder, or without some of them; none of them runs.
 *
 * @module
 */
import type { VmPlaces } from "../../engine/vm/machine/host_tools.ts";
import { storeKernel } from "../../engine/vm/image/kernel_store.ts";
import type { ProbeBoot, ProbeRequest, ProbeResult } from "../../engine/vm/machine/probe_boot.ts";
import type { CommandEnd, SetupMachine } from "../../engine/vm/setup/setup_machine.ts";
import { createDecompress } from "../../engine/vm/image/kernel_file.ts";
import { fakeElf, temporaryFolder, writeFakeKernel } from "./fake_kernel.ts";

/** Which parts there are; all that is left out is there. */
export interface FakeHostOptions {
  readonly qemu?: boolean;
  readonly busybox?: "static" | "dynamic" | "none";
  readonly kernel?: boolean;
}

/** Places in a folder that is gone at the end of a test. */
export async function fakeVmPlaces(
  { qemu = true, busybox = "static", kernel = true }: FakeHostOptions = {},
): Promise<{ path: string; places: VmPlaces & { cache: string } } & AsyncDisposable> {
  const folder = await temporaryFolder();
  const bin = `${folder.path}/bin`;
  const cache = `${folder.path}/cache`;
  await Deno.mkdir(bin);
  await Deno.mkdir(cache);
  if (qemu) {
    const script = "#!/bin/sh\necho 'QEMU emulator version 7.2.22 (Debian)'\n";
    await Deno.writeTextFile(`${bin}/qemu-system-x86_64`, script, { mode: 0o755 });
  }
  if (busybox !== "none") await writeBusybox(`${bin}/busybox`, busybox);
  if (kernel) {
    const source = await writeFakeKernel(`${folder.path}/package`);
    await storeKernel(cache, source, createDecompress(undefined));
  }
  return { ...folder, places: { os: "linux", arch: "x86_64", path: bin, cache } };
}

/** Writes a file that looks like busybox. */
export async function writeBusybox(path: string, form: "static" | "dynamic"): Promise<void> {
  await Deno.writeFile(path, fakeElf({ type: form === "static" ? 1 : 3 }), { mode: 0o755 });
}

/** A probe that comes to a result at once, or when a test lets it, and remembers what it was asked. */
export class FakeBoot {
  readonly requests: ProbeRequest[] = [];
  readonly #result: ProbeResult | ((request: ProbeRequest) => ProbeResult);
  readonly #until: Promise<void>;

  constructor(
    result: ProbeResult | ((request: ProbeRequest) => ProbeResult),
    until: Promise<void> = Promise.resolve(),
  ) {
    this.#result = result;
    this.#until = until;
  }

  readonly boot: ProbeBoot = async (request) => {
    this.requests.push(request);
    await this.#until;
    return typeof this.#result === "function" ? this.#result(request) : this.#result;
  };
}

/** A guest that came up. */
export const REACHED: ProbeResult = { outcome: "reached", afterMs: 812, tail: [] };

/** What a {@linkcode FakeMachine} is like. */
export interface FakeMachineOptions {
  /** Default: 1000. */
  readonly uid?: number;
  /** Default: `apt-get`, `sudo` and `xz`. */
  readonly programs?: readonly string[];
  /** Answers questions; the default knows a kernel package, QEMU, busybox and xz. */
  readonly ask?: (command: string) => string;
  /** What a command does, in the folder it runs in. Default: nothing, with success. */
  readonly run?: (command: string, directory: string) => Promise<CommandEnd | void>;
  readonly sudoUser?: string;
  readonly os?: string;
}

/** Remembers what was run. */
export class FakeMachine implements SetupMachine {
  readonly places: VmPlaces & { cache: string };
  readonly uid: number;
  readonly sudoUser: string | undefined;
  readonly root: string;
  readonly ran: string[] = [];
  readonly #options: FakeMachineOptions;

  /** @param host Where its parts lie; what is installed on it lies in `<path>/root`. */
  constructor(
    host: { path: string; places: VmPlaces & { cache: string } },
    options: FakeMachineOptions = {},
  ) {
    this.places = { ...host.places, ...options.os ? { os: options.os } : {} };
    this.uid = options.uid ?? 1000;
    this.sudoUser = options.sudoUser;
    this.root = `${host.path}/root`;
    this.#options = options;
  }

  find(program: string): Promise<string | undefined> {
    const programs = this.#options.programs ?? ["apt-get", "sudo", "xz"];
    return Promise.resolve(programs.includes(program) ? `/usr/bin/${program}` : undefined);
  }

  ask(command: readonly string[]): Promise<string> {
    return Promise.resolve((this.#options.ask ?? debian)(command.join(" ")));
  }

  async run(
    command: readonly string[],
    directory: string,
    output: (line: string) => void,
  ): Promise<CommandEnd> {
    const line = command.join(" ");
    this.ran.push(line);
    const end = await this.#options.run?.(line, directory) ?? { success: true, output: "" };
    for (const line of end.output.split("\n")) output(line);
    return end;
  }
}

/** What a Debian with its lists of packages answers. */
export function debian(question: string): string {
  const policy = /^apt-cache policy (\S+)$/.exec(question)?.[1];
  if (policy) return `${policy}:\n  Installed: (none)\n  Candidate: 1.2\n  Version table:\n`;
  if (question === "apt-cache depends linux-image-amd64") {
    return "linux-image-amd64\n  Depends: linux-image-6.1.0-7-amd64\n";
  }
  if (question === "apt-cache depends linux-image-6.1.0-7-amd64") {
    return "linux-image-6.1.0-7-amd64\n  Depends: kmod\n |Depends: linux-initramfs-tool\n";
  }
  return "";
}

/** What a Debian without lists answers. */
export function withoutLists(question: string): string {
  const policy = /^apt-cache policy (\S+)$/.exec(question)?.[1];
  return policy ? `${policy}:\n  Installed: (none)\n  Candidate: (none)\n` : "";
}
