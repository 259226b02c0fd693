/**
 * Makes the `/etc` of a guest: what the programs in `/usr` need to run, and nothing else.
 *
 * Some of it is copied from the host, by name, and only what everybody on the host may read; who
 * and where the guest is is written anew. Links are copied as links: they lead into the shared
 * `/usr`, or nowhere.
 *
 * @module
 */
import type { Network } from "../../ports/launcher.ts";
import type { GuestUser } from "./shell_text.ts";

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
