/**
 * `engine vm`: prepare this machine for workers in microVMs, and check whether it is ready.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { NamedKernel, VmSetupOptions, VmSetupReport, VmStatus } from "../../engine/mod.ts";
import type { Json } from "../../mod.ts";
import { absolutePath } from "../arguments.ts";
import { EXIT_FAILED, ExitWith, UsageError } from "../failure.ts";
import { compactJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine vm setup                     install what is missing, then boot a guest as a check
  engine vm setup --dry-run           print the commands and run none of them
  engine vm status                    what there is, and what is missing`;

const SETUP_EXAMPLES = `
Installs QEMU with the package manager (sudo), and a kernel and busybox in your cache folder. Does
not download again what is there; no other command downloads anything.

Examples:
  engine vm setup
  engine vm setup --dry-run
  engine vm setup --kernel /boot/vmlinuz-6.1.0-56-amd64 --modules /lib/modules/6.1.0-56-amd64`;

const STATUS_EXAMPLES = `
Exit codes: 0 ready, 1 not ready.

Examples:
  engine vm status
  engine vm status --json`;

/** Functions of the engine that these commands use; tests provide others. */
export interface VmMachine {
  /** Installs what is missing. */
  setUp(options: VmSetupOptions): Promise<VmSetupReport>;
  /** The commands that `setUp` would run. */
  commands(kernel?: NamedKernel): Promise<string[]>;
  /** What is installed and what is missing. */
  status(): Promise<VmStatus>;
}

/** Adds `engine vm`. */
export function addVm(
  program: Command,
  terminal: Terminal,
  machine: VmMachine = realMachine,
): void {
  const vm = program.command("vm")
    .description("Set this machine up for workers in microVMs")
    .addHelpText("after", EXAMPLES);
  vm.command("setup")
    .description("Install what microVMs need and boot one as a check")
    .option("--dry-run", "print the commands and change nothing")
    .option("--kernel <file>", "the kernel that guests boot, a vmlinuz or vmlinux")
    .option("--modules <dir>", "the folder of its modules")
    .addHelpText("after", SETUP_EXAMPLES)
    .action(async (flags) => {
      const kernel = readKernel(terminal.directory, flags.kernel, flags.modules);
      if (flags.dryRun) return printCommands(await machine.commands(kernel), terminal);
      const report = await machine.setUp({ kernel, print: (line) => terminal.err(line) });
      for (const line of reportLines(report)) terminal.out(line);
    });
  vm.command("status")
    .description("Show whether microVMs can run here, and what is missing")
    .option("--json", "print JSON on one line, for programs")
    .addHelpText("after", STATUS_EXAMPLES)
    .action(async (flags) => {
      const status = await machine.status();
      if (flags.json) terminal.out(compactJson(status as unknown as Json));
      else for (const line of statusLines(status)) terminal.out(line);
      if (!status.ready) throw new ExitWith(EXIT_FAILED);
    });
}

/** @throws {UsageError} Only one of the options is set, or one is empty. */
function readKernel(
  directory: string,
  kernel: string | undefined,
  modules: string | undefined,
): NamedKernel | undefined {
  if (kernel === undefined && modules === undefined) return undefined;
  if (!kernel || !modules) {
    throw new UsageError("--kernel FILE and --modules DIR belong together: name both");
  }
  return {
    kernel: absolutePath(directory, kernel),
    modules: absolutePath(directory, modules),
  };
}

function printCommands(commands: readonly string[], terminal: Terminal): void {
  if (commands.length === 0) return terminal.err("Nothing is missing; no command would be run");
  for (const line of commands) terminal.out(line);
}

function reportLines({ ready, accelerator, why, boot_ms, kernel }: VmSetupReport): string[] {
  const seconds = (boot_ms / 1000).toFixed(1);
  const boots = `kernel ${kernel} boots in ${seconds} s with ${ACCELERATOR_NAMES[accelerator]}`;
  if (!ready) return [`Set up: ${boots}`, `KVM not accessible: ${why}`];
  return [`Ready: ${boots}`, ...why === null ? [] : [`Not with KVM: ${why}`]];
}

const ACCELERATOR_NAMES = { kvm: "KVM", tcg: "software emulation (tcg)" } as const;

function statusLines(status: VmStatus): string[] {
  const { qemu, kernel, initramfs, busybox, cache, accelerator_reason: reason } = status;
  const accelerator = status.accelerator === null ? "none" : ACCELERATOR_NAMES[status.accelerator];
  const rows: [string, string][] = [
    ["accelerator", reason === null ? accelerator : `${accelerator}: ${reason}`],
    ["qemu", qemu ? `${qemu.version}  ${qemu.path}` : "none"],
    ["kernel", kernel ? `${kernel.version}  ${kernel.path}` : "none"],
    ["initramfs", initramfs ? `${initramfs.path}  ${megabytes(initramfs.bytes)}` : "none"],
    ["busybox", busybox?.path ?? "none"],
    ["cache", cache ? `${cache.path}  ${megabytes(cache.bytes)}` : "none"],
  ];
  const lines = rows.map(([name, text]) => `${name.padEnd(13)}${text}`);
  if (status.ready) return [...lines, "Ready"];
  return [...lines, "Not ready:", ...status.missing.map((what) => `  ${what}`)];
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

const realMachine: VmMachine = {
  async setUp(options) {
    const { setUpVm } = await import("../../engine/mod.ts");
    return await setUpVm(options);
  },
  async commands(kernel) {
    const { vmSetupCommands } = await import("../../engine/mod.ts");
    return await vmSetupCommands(kernel);
  },
  async status() {
    const { vmStatus } = await import("../../engine/mod.ts");
    return await vmStatus();
  },
};
