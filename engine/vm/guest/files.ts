/**
 * The files of one guest on the host: how it looks, its `/etc`, and a script for each program.
 *
 * They lie in a folder that only the engine's user may enter. The guest reads them; it cannot write
 * them, nor see anything else of that folder.
 *
 * @module
 */
import type { Network } from "../../ports/launcher.ts";
import { writeGuestEtc } from "./guest_etc.ts";
import type { SharedFolder } from "../machine/qemu.ts";
import { bootScript, type GuestScript, guestUser, programScript } from "./shell_text.ts";

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
