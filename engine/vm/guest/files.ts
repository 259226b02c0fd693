/**
 * The files of one guest on the host: how it looks, its `/etc`, and a script for each program.
 *
 * They lie in a folder that only the engine's user may enter. The guest reads them; it cannot write
 * them, nor see anything else of that folder.
 *
 * @module
 */
import type { Network } from "../../ports/launcher.ts";
import { shellWord } from "../../process/programs.ts";
import type { SharedFolder } from "../machine/qemu.ts";

/** Name of the device with the scripts; `guest_init.sh` knows it. */
const SCRIPTS_TAG = "host";
const ETC_TAG = "etc";
/** Links at the root that lead into `/usr` on systems of today. */
const ROOT_LINKS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/** What they depend on. */
export interface GuestFilesOptions {
  /** The worker's name. */
  readonly name: string;
  readonly network: Network;
  readonly shares: readonly { readonly path: string; readonly writable: boolean }[];
  /** Absolute; made and removed. */
  readonly runDirectory: string;
}

/** Writes and removes them. */
export class GuestFiles {
  /** All that the guest sees of the host. */
  readonly folders: readonly SharedFolder[];
  readonly #directory: string;
  readonly #options: GuestFilesOptions;
  readonly #user = guestUser(Deno.uid() ?? 0, Deno.gid() ?? 0);
  #scripts = 0;

  /** Writes nothing yet. */
  constructor(options: GuestFilesOptions) {
    this.#options = options;
    this.#directory = options.runDirectory;
    this.folders = [
      { tag: SCRIPTS_TAG, path: `${this.#directory}/host`, writable: false },
      { tag: ETC_TAG, path: `${this.#directory}/etc`, writable: false },
      ...options.shares.map((share, i) => ({ ...share, tag: `s${i}` })),
    ];
  }

  /** Writes what a guest needs to boot. */
  async write(): Promise<void> {
    const { name, network } = this.#options;
    await Deno.mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await Deno.chmod(this.#directory, 0o700);
    const folders = ["host", "etc"].map((folder) => `${this.#directory}/${folder}`);
    await Promise.all(folders.map((folder) => Deno.mkdir(folder, { mode: 0o755 })));
    const shape = {
      shares: this.folders.slice(2),
      etcTag: ETC_TAG,
      links: await rootLinks(),
      user: this.#user,
    };
    await Deno.writeTextFile(`${this.#directory}/host/boot.sh`, bootScript(shape));
    await writeGuestEtc(`${this.#directory}/etc`, { name, network, user: this.#user });
  }

  /** Writes a program and returns its number. */
  async writeScript(script: GuestScript): Promise<number> {
    const number = ++this.#scripts;
    await Deno.writeTextFile(this.#scriptPath(number), programScript(script, this.#user));
    return number;
  }

  /** Removes a program: there may be secrets in its environment. */
  async removeScript(number: number): Promise<void> {
    await Deno.remove(this.#scriptPath(number)).catch(() => {}); // The guest may be gone.
  }

  /** Removes all of it. */
  async remove(): Promise<void> {
    await Deno.remove(this.#directory, { recursive: true }).catch(() => {}); // Gone is fine.
  }

  #scriptPath(number: number): string {
    return `${this.#directory}/host/${number}.sh`;
  }
}

async function rootLinks(): Promise<{ name: string; target: string }[]> {
  const links = await Promise.all(ROOT_LINKS.map(async (name) => ({
    name,
    target: await Deno.readLink(`/${name}`).catch(() => undefined),
  })));
  return links.flatMap(({ name, target }) => target === undefined ? [] : [{ name, target }]);
}

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

/** Certificates, libraries, alternatives, time zone and the like; folders with all in them. */
const COPIED = [
  "alternatives",
  "ca-certificates",
  "crypto-policies",
  "debian_version",
  "gai.conf",
  "host.conf",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "locale.alias",
  "localtime",
  "magic",
  "mime.types",
  "npmrc",
  "os-release",
  "perl",
  "pip.conf",
  "pki/ca-trust/extracted",
  "pki/tls/cert.pem",
  "pki/tls/certs",
  "pki/tls/openssl.cnf",
  "protocols",
  "services",
  "ssl/cert.pem",
  "ssl/certs",
  "ssl/openssl.cnf",
  "terminfo",
  "timezone",
];
/** Settings of the versions of a program, such as `python3.11`. */
const COPIED_BY_START = ["java-", "python3"];
/** Manual pages that have alternatives; nobody reads them in a guest, and there are hundreds. */
const MANUAL = /\.\d\w*\.gz$/;
const WORLD_READABLE = 0o004;

/** Who and where a guest is. */
export interface GuestIdentity {
  readonly name: string;
  readonly user: GuestUser;
  readonly network: Network;
}

/**
 * Fills a folder that exists and is empty.
 *
 * @param host The folder to copy from; tests lend another one.
 */
export async function writeGuestEtc(
  directory: string,
  identity: GuestIdentity,
  host = "/etc",
): Promise<void> {
  const names = [...COPIED];
  for await (const { name } of Deno.readDir(host)) {
    if (COPIED_BY_START.some((start) => name.startsWith(start))) names.push(name);
  }
  await Promise.all(names.map(async (name) => {
    const parent = name.slice(0, Math.max(0, name.lastIndexOf("/")));
    await Deno.mkdir(`${directory}/${parent}`, { recursive: true });
    await copy(`${host}/${name}`, `${directory}/${name}`);
  }));
  const written = Object.entries(identityFiles(identity));
  await Promise.all(
    written.map(([name, text]) => Deno.writeTextFile(`${directory}/${name}`, text)),
  );
}

async function copy(from: string, to: string): Promise<void> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(from);
  } catch {
    return; // Not every system has all of it.
  }
  if (info.isSymlink) return await Deno.symlink(await Deno.readLink(from), to);
  if (((info.mode ?? 0) & WORLD_READABLE) === 0) return;
  if (info.isFile) return await Deno.copyFile(from, to);
  if (!info.isDirectory) return;
  await Deno.mkdir(to, { recursive: true });
  const entries = await Array.fromAsync(Deno.readDir(from));
  await Promise.all(
    entries.filter(({ name }) => !MANUAL.test(name))
      .map(({ name }) => copy(`${from}/${name}`, `${to}/${name}`)),
  );
}

/** The files that are made, by name. */
export function identityFiles(identity: GuestIdentity): Readonly<Record<string, string>> {
  const { name, network, user } = identity;
  const isRoot = user.uid === 0;
  const own = isRoot ? "" : `${user.name}:x:${user.uid}:${user.gid}::${user.home}:/bin/sh\n`;
  const group = isRoot || user.gid === 0 ? "" : `${user.name}:x:${user.gid}:\n`;
  return {
    passwd: `root:x:0:0:root:/root:/bin/sh\n${own}nobody:x:65534:65534::/:/usr/sbin/nologin\n`,
    group: `root:x:0:\ntty:x:5:\n${group}nogroup:x:65534:\n`,
    hostname: `${name}\n`,
    hosts: `127.0.0.1 localhost\n::1 localhost\n127.0.1.1 ${name}\n`,
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    // Without a server names fail at once, where they could not be looked up anyway.
    "resolv.conf": network === "full" ? "nameserver 10.0.2.3\n" : "",
  };
}
