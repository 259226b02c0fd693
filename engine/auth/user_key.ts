/**
 * Reads the key that an engine has left for its user, and says where keys lie.
 *
 * What a command line needs of the engine and nothing more: it is loaded with every command.
 * control_key.ts writes the keys and checks them.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";

/** The header that carries the key. Web pages cannot send it. */
export const CONTROL_HEADER = "x-engine-control";

/** What of a machine says where keys lie. */
export interface KeyPlace {
  /** As `Deno.build.os` names it. */
  readonly platform: string;
  /** A variable of the environment. */
  env(name: string): string | undefined;
  /** Number of the user; `null` where users have none. */
  readonly uid: number | null;
}

/** What the file says. */
export interface KeyRecord {
  /** Address of the engine, such as `ws://127.0.0.1:49134`. */
  readonly url: string;
  /** Process id of the engine. */
  readonly pid: number;
  /** The machine or container it runs in: process ids of others say nothing here. */
  readonly machine: string;
  readonly key: string;
}

/**
 * The key of the engine at an address; `undefined` when there is none that may be sent there: only
 * this machine gets one, as does the address that the engine itself said it listens on.
 */
export async function readControlKey(url: string, folder?: string): Promise<string | undefined> {
  try {
    const record = await readRecord(`${folder ?? keyFolder(thisUser())}/${portOf(url)}.json`);
    if (!record) return undefined;
    const host = hostOf(url);
    return isLoopback(host) || host === hostOf(record.url) ? record.key : undefined;
  } catch {
    return undefined; // Without a key the line is like any other; the engine says what it may do.
  }
}

/** The folder of all keys of a user; absolute. */
export function keyFolder({ platform, env, uid }: KeyPlace): string {
  if (platform === "windows") {
    const data = env("LOCALAPPDATA") ?? env("TEMP") ?? "C:\\Windows\\Temp";
    return `${data.replaceAll("\\", "/")}/engine`;
  }
  const state = env("XDG_STATE_HOME");
  if (state?.startsWith("/")) return `${state}/engine`; // A relative one has to be ignored.
  const home = env("HOME");
  if (home?.startsWith("/")) return `${home}/.local/state/engine`;
  return `${env("TMPDIR")?.replace(/\/$/, "") ?? "/tmp"}/engine-${uid ?? "user"}/engine`;
}

/** Who runs this program, and where. */
export function thisUser(): KeyPlace {
  return {
    platform: Deno.build.os,
    env: (name) => Deno.env.get(name) || undefined,
    uid: Deno.uid(),
  };
}

/** What a file says; `undefined` when it is not there or no key file. */
export async function readRecord(path: string): Promise<KeyRecord | undefined> {
  const text = await Deno.readTextFile(path).catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { url, pid, machine, key } = JSON.parse(text);
    const isWhole = typeof url === "string" && URL.canParse(url) && Number.isInteger(pid) &&
      pid > 0 && typeof machine === "string" && typeof key === "string" &&
      /^[0-9a-f]{64}$/.test(key);
    return isWhole ? { url, pid, machine, key } : undefined;
  } catch {
    return undefined; // Not JSON: somebody else's file.
  }
}

/** The port of an address, which names its key's file. */
export function portOf(url: string): string {
  const { port, protocol } = new URL(url);
  return port || (protocol === "wss:" ? "443" : "80");
}

function hostOf(url: string): string {
  return new URL(url).hostname;
}
