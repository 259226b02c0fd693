/**
 * The files that the engine writes for one guest: `boot.sh`, which describes its file system, its
 * `/etc`, and a script for each program.
 *
 * They lie in a folder that only the engine's user may enter, and are shared read-only. Values in
 * the scripts are quoted, so paths, environments and commands may hold anything but a zero byte.
 *
 * @module
 */
import { SYSTEM_PATH } from "../../install/guest_access.ts";
import type { Network } from "../../ports/launcher.ts";
import { shellWord } from "../../process/programs.ts";
import type { SharedFolder } from "../machine/qemu.ts";

/** Mount tag of the folder with the scripts; `guest_init.sh` uses it too. */
const SCRIPTS_TAG = "host";
const ETC_TAG = "etc";
/** Symbolic links at the root of systems with a merged `/usr`. */
const ROOT_LINKS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
/** Files and whole folders of the host's `/etc` that programs in `/usr` need. */
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
/** Prefixes of folders with the settings of a program version, such as `python3.11`. */
const COPIED_PREFIXES = ["java-", "python3"];
/** Alternatives for manual pages: hundreds of links that guests do not need. */
const MANUAL = /\.\d\w*\.gz$/;
const WORLD_READABLE = 0o004;

/** Properties of a guest that its files depend on. */
export interface GuestFilesOptions {
  /** The worker's name. */
  readonly name: string;
  readonly network: Network;
  readonly shares: readonly { readonly path: string; readonly writable: boolean }[];
  /** Absolute path of the folder for the files. */
  readonly runDirectory: string;
}

/** User of programs in a guest; with the ids of the engine's user, who then owns their files. */
export interface GuestUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  readonly home: string;
}

/** File system and user of a guest. */
export interface GuestLayout {
  readonly shares: readonly SharedFolder[];
  /** Mount tag of the generated `/etc`. */
  readonly etcTag: string;
  /** Symbolic links at the root, such as `bin` to `usr/bin`. */
  readonly links: readonly { readonly name: string; readonly target: string }[];
  readonly user: GuestUser;
}

/** A program to run in a guest. */
export interface GuestScript {
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly directory: string;
  /** The whole environment; `PATH` and `HOME` get defaults. */
  readonly env: Readonly<Record<string, string>>;
}

/** Name, user and network of a guest. */
export interface GuestIdentity {
  readonly name: string;
  readonly user: GuestUser;
  readonly network: Network;
}

/** Writes and removes the files of a guest. */
export class GuestFiles {
  /** All folders of the host that the guest sees. */
  readonly folders: readonly SharedFolder[];
  readonly #directory: string;
  readonly #options: GuestFilesOptions;
  readonly #user = guestUser(Deno.uid() ?? 0, Deno.gid() ?? 0);
  #scripts = 0;

  constructor(options: GuestFilesOptions) {
    this.#options = options;
    this.#directory = options.runDirectory;
    this.folders = [
      { tag: SCRIPTS_TAG, path: `${this.#directory}/host`, writable: false },
      { tag: ETC_TAG, path: `${this.#directory}/etc`, writable: false },
      ...options.shares.map((share, i) => ({ ...share, tag: `s${i}` })),
    ];
  }

  /** Creates the folder with everything that the guest needs to boot. */
  async write(): Promise<void> {
    const { name, network } = this.#options;
    await Deno.mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await Deno.chmod(this.#directory, 0o700);
    const folders = ["host", "etc"].map((folder) => `${this.#directory}/${folder}`);
    await Promise.all(folders.map((folder) => Deno.mkdir(folder, { mode: 0o755 })));
    const layout = {
      shares: this.folders.slice(2),
      etcTag: ETC_TAG,
      links: await rootLinks(),
      user: this.#user,
    };
    await Deno.writeTextFile(`${this.#directory}/host/boot.sh`, bootScript(layout));
    await writeGuestEtc(`${this.#directory}/etc`, { name, network, user: this.#user });
  }

  /** Writes the script of a program and returns its number. */
  async writeScript(script: GuestScript): Promise<number> {
    const number = ++this.#scripts;
    await Deno.writeTextFile(this.#scriptPath(number), programScript(script, this.#user));
    return number;
  }

  /** Removes a script, because its environment may contain secrets. */
  async removeScript(number: number): Promise<void> {
    await Deno.remove(this.#scriptPath(number)).catch(() => {}); // Removed with the guest.
  }

  async remove(): Promise<void> {
    await Deno.remove(this.#directory, { recursive: true }).catch(() => {}); // Already gone.
  }

  #scriptPath(number: number): string {
    return `${this.#directory}/host/${number}.sh`;
  }
}

/** The guest user for the engine's user; root stays root. */
export function guestUser(uid: number, gid: number): GuestUser {
  return uid === 0
    ? { uid, gid, name: "root", home: "/root" }
    : { uid, gid, name: "worker", home: "/home/worker" };
}

/** Content of `boot.sh`; `guest_init.sh` defines its commands. */
export function bootScript({ shares, etcTag, links, user }: GuestLayout): string {
  // A mount hides what is mounted below its path, so outer folders come first.
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

/** Content of `<n>.sh`, which executes the program. */
export function programScript(script: GuestScript, user: GuestUser): string {
  const env = { PATH: SYSTEM_PATH, HOME: user.home, ...script.env };
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

/**
 * Writes the `/etc` of a guest into an existing empty folder.
 *
 * The listed files are copied from the host if they are world-readable; files about user, host name
 * and network are generated. Symbolic links are copied as links: in the guest they lead into the
 * shared `/usr`, or nowhere.
 *
 * @param host The folder to copy from; tests pass another one.
 */
export async function writeGuestEtc(
  directory: string,
  identity: GuestIdentity,
  host = "/etc",
): Promise<void> {
  const names = [...COPIED];
  for await (const { name } of Deno.readDir(host)) {
    if (COPIED_PREFIXES.some((prefix) => name.startsWith(prefix))) names.push(name);
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

/** The generated files of `/etc`, by name. */
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
    // Without a reachable DNS server, lookups fail immediately if none is listed.
    "resolv.conf": network === "full" ? "nameserver 10.0.2.3\n" : "",
  };
}

async function copy(from: string, to: string): Promise<void> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.lstat(from);
  } catch {
    return; // Not every system has every file.
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

async function rootLinks(): Promise<{ name: string; target: string }[]> {
  const links = await Promise.all(ROOT_LINKS.map(async (name) => ({
    name,
    target: await Deno.readLink(`/${name}`).catch(() => undefined),
  })));
  return links.flatMap(({ name, target }) => target === undefined ? [] : [{ name, target }]);
}
