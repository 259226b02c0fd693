/**
 * How distributions call what microVMs need, and what apt says when it cannot get it.
 *
 * Only the apt family is run; for the others there is the text of what to do by hand.
 *
 * @module
 */
import type { SetupMachine } from "./setup_machine.ts";

/** Packages that depend on the newest kernel: Debian's, Ubuntu's. Flavours for clouds lack 9p. */
export const KERNEL_PACKAGES: readonly string[] = ["linux-image-amd64", "linux-image-generic"];
/** Of what they depend on, the packages with the files of a kernel. */
const KERNEL_FILES = /^linux-(image|modules|modules-extra)-\d/;

/** What to install by hand where no apt is: QEMU and a static busybox. */
const BY_HAND: readonly (readonly [string, string])[] = [
  ["dnf", "dnf install qemu-system-x86-core busybox"],
  ["pacman", "pacman -S qemu-system-x86 busybox"],
  ["zypper", "zypper install qemu-x86 busybox-static"],
  ["apk", "apk add qemu-system-x86_64 busybox-static"],
];

/** What to do on a machine without apt, line by line. */
export async function byHand(machine: SetupMachine): Promise<string[]> {
  const found = await Promise.all(BY_HAND.map(([program]) => machine.find(program)));
  const install = BY_HAND.find((_, i) => found[i] !== undefined)?.[1];
  return [
    install === undefined
      ? "install qemu-system-x86_64 and a static busybox"
      : `install QEMU and a static busybox, such as: ${install}`,
    "then name a kernel that has 9p and virtio as modules, such as this machine's own:",
    '  engine vm setup --kernel "/boot/vmlinuz-$(uname -r)" --modules "/lib/modules/$(uname -r)"',
  ];
}

/** Whether apt knows where to get all the packages. */
export async function isKnown(machine: SetupMachine, names: readonly string[]): Promise<boolean> {
  for (const name of names) {
    const policy = await machine.ask(["apt-cache", "policy", name]);
    if (!/^\s*Candidate: (?!\(none\))\S/m.test(policy)) return false;
  }
  return true;
}

/** The packages with the newest kernel and its modules; empty when apt knows none. */
export async function kernelPackages(machine: SetupMachine): Promise<string[]> {
  for (const name of KERNEL_PACKAGES) {
    const found = new Set<string>();
    const visit = async (of: string): Promise<void> => {
      const text = await machine.ask(["apt-cache", "depends", of]);
      for (const [, other] of text.matchAll(/^[ |]+Depends: ([^\s<]\S*)$/gm)) {
        if (!KERNEL_FILES.test(other!) || found.has(other!)) continue;
        found.add(other!);
        await visit(other!);
      }
    };
    await visit(name);
    if ([...found].some((other) => other.startsWith("linux-image-"))) return [...found];
  }
  return [];
}

const NO_NETWORK = "there is no way to the package server; check the network and http_proxy";

/** What apt, dpkg or sudo said, by a part of it, and what to do then. */
const FAILURES: readonly (readonly [RegExp, string])[] = [
  [
    /No space left on device|don't have enough free space/i,
    "there is no space left; free some (a kernel takes 600 MB while it is unpacked)",
  ],
  [
    /Could not get lock|is another process using it/i,
    "another package manager is at work; try again when it has finished",
  ],
  [
    /not in the sudoers|may not run|password is required|incorrect password|terminal is required/i,
    "sudo was not allowed; let somebody who may run it by hand, then repeat this",
  ],
  [
    /\b404\b|Hash Sum mismatch|size mismatch/i,
    "the lists of packages are old; run apt-get update as root, then repeat this",
  ],
  [/Temporary failure|Could not (resolve|connect)|Cannot initiate|Unable to connect/i, NO_NETWORK],
  [/Network is unreachable|Failed to fetch|timed out/i, NO_NETWORK],
  [
    /Unable to locate package|No packages found|has no installation candidate|Can't find a source/i,
    "apt does not know the package; check the sources in /etc/apt",
  ],
  [/Permission denied|are you root/i, "this user may not do that; run it as root"],
];

/** What to do after a command that failed, in a few words. */
export function adviceOn(output: string): string {
  const known = FAILURES.find(([pattern]) => pattern.test(output));
  if (known) return known[1];
  const said = output.split("\n").map((line) => line.trim()).findLast((line) => line !== "");
  return said === undefined ? "it said nothing; run it by hand" : `it said: ${said}`;
}
