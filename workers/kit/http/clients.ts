/**
 * The clients of a port, told apart by address, and what each of them holds.
 *
 * One IPv6 network of 64 bits is one client: a single host may use all of its addresses.
 *
 * @module
 */

/** Groups of an IPv6 address that name the network. */
const NETWORK_GROUPS = 4;

/** One client that has sockets open. */
export interface Client {
  /** An IPv4 address, or an IPv6 network. */
  readonly name: string;
  /** Sockets that it has open. */
  sockets: number;
  /** Requests of it that run; the handler counts them. */
  running: number;
}

/** All clients that have sockets open. */
export class Clients {
  readonly #byName = new Map<string, Client>();

  /** How many there are. */
  get size(): number {
    return this.#byName.size;
  }

  /** Counts a socket of the client with this address. */
  enter(address: string): Client {
    const name = clientOf(address);
    let client = this.#byName.get(name);
    if (!client) this.#byName.set(name, client = { name, sockets: 0, running: 0 });
    client.sockets++;
    return client;
  }

  /** A socket of the client was closed. */
  leave(client: Client): void {
    if (--client.sockets === 0) this.#byName.delete(client.name);
  }
}

/** The client behind an address: an IPv4 address, or an IPv6 network. */
export function clientOf(address: string): string {
  if (!address.includes(":")) return address;
  const [text = ""] = address.split("%"); // Without the interface.
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text);
  if (mapped) return mapped[1]!;
  const [before = "", after] = text.split("::");
  const head = before === "" ? [] : before.split(":");
  const tail = after === undefined || after === "" ? [] : after.split(":");
  const zeros = after === undefined ? 0 : Math.max(0, 8 - head.length - tail.length);
  const groups = [...head, ...Array<string>(zeros).fill("0"), ...tail];
  return groups.slice(0, NETWORK_GROUPS).map((group) => parseInt(group, 16).toString(16)).join(":");
}
