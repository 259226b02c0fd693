/**
 * The ways between the engine and one guest: unix sockets on which the engine listens and to which
 * QEMU connects, once each.
 *
 * A socket's path may have 107 bytes only, so those of a guest lie in a folder of their own with a
 * short name, which is removed as soon as QEMU has connected.
 *
 * @module
 */
import type { GuestPort } from "../machine/qemu.ts";

/** Listens on the sockets of one guest. */
export class GuestPorts implements AsyncDisposable {
  /** For QEMU's command line. */
  readonly ports: readonly GuestPort[];
  readonly #directory: string;
  readonly #listeners: ReadonlyMap<string, Deno.UnixListener>;

  private constructor(directory: string, names: readonly string[]) {
    this.#directory = directory;
    this.ports = names.map((name) => ({ name, socket: `${directory}/${name}` }));
    this.#listeners = new Map(
      this.ports.map(({ name, socket: path }) => [name, Deno.listen({ transport: "unix", path })]),
    );
  }

  /** Listens for each of the names. Only this user can connect. */
  static async open(names: readonly string[]): Promise<GuestPorts> {
    // Not where TMPDIR says, which may be long. The folder's mode is 0700.
    const directory = await Deno.makeTempDir({ dir: "/tmp", prefix: "engine-vm-" });
    return new GuestPorts(directory, names);
  }

  /** The connections of all ports, by name. Rejects when it is closed before. */
  async accept(): Promise<Map<string, Deno.UnixConn>> {
    const found = new Map<string, Deno.UnixConn>();
    const accepted = await Promise.allSettled(
      [...this.#listeners].map(async ([name, listener]) => {
        found.set(name, await listener.accept());
      }),
    );
    const failed = accepted.find((result) => result.status === "rejected");
    if (failed) {
      for (const connection of found.values()) connection.close();
      throw failed.reason;
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const listener of this.#listeners.values()) listener.close();
    await Deno.remove(this.#directory, { recursive: true }).catch(() => {}); // Gone is fine.
  }
}
