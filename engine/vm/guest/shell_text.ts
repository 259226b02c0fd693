/**
 * Writes the shell texts that a guest is given: how it looks, and the programs that it runs.
 *
 * Names of the host stand in them between quotes, so that they may hold anything but a zero byte.
 *
 * @module
 */
import { shellWord } from "../../process/shell_word.ts";
import type { SharedFolder } from "../machine/qemu.ts";

/** Who a guest's programs run as: the ids of the engine's user, so that files are its own. */
export interface GuestUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  readonly home: string;
}

/** How a guest looks. */
export interface GuestShape {
  readonly shares: readonly SharedFolder[];
  /** Name of the generated `/etc`, as a device. */
  readonly etcTag: string;
  /** Links at the root, such as `bin` to `usr/bin`. */
  readonly links: readonly { readonly name: string; readonly target: string }[];
  readonly user: GuestUser;
}

/** A program. */
export interface GuestScript {
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly directory: string;
  /** All that is in its environment, besides a `PATH` and a `HOME` if they are missing. */
  readonly env: Readonly<Record<string, string>>;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The engine's user, in a guest. Root stays root. */
export function guestUser(uid: number, gid: number): GuestUser {
  return uid === 0
    ? { uid, gid, name: "root", home: "/root" }
    : { uid, gid, name: "worker", home: "/home/worker" };
}

/** `boot.sh`: see `guest_init.sh` for its words. */
export function bootScript({ shares, etcTag, links, user }: GuestShape): string {
  // A folder below another one is mounted after it, or it would be hidden.
  const ordered = shares.toSorted((a, b) => a.path.length - b.path.length);
  return [
    `read_only ${etcTag} /etc`,
    ...links.map(({ name, target }) => `link ${shellWord(name)} ${shellWord(target)}`),
    ...ordered.map(({ tag, path, writable }) =>
      `${writable ? "writable" : "read_only"} ${tag} ${shellWord(path)}`
    ),
    `user ${user.uid} ${user.gid} ${user.name}`,
    "",
  ].join("\n");
}

/** `<n>.sh`: becomes the program. */
export function programScript(script: GuestScript, user: GuestUser): string {
  const env = { PATH, HOME: user.home, ...script.env };
  const words = [
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...script.command,
  ];
  return [
    `cd ${shellWord(script.directory)} || exit 126`,
    `exec /busybox env -i ${words.map(shellWord).join(" ")}`,
    "",
  ].join("\n");
}
