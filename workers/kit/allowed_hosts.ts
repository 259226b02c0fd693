/**
 * The names at which a port is meant to be reached.
 *
 * A web page may point a name of its own at any address, that of this machine included, and its
 * browser then takes the engine's answers for that page's own (DNS rebinding). Only the header
 * `Host` shows that. An address proves nothing and needs none, since it cannot be pointed anywhere.
 *
 * @module
 */
import { isLoopback } from "../../sdk/typescript/wire/loopback.ts";

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** Decides by the header `Host`. */
export class AllowedHosts {
  readonly #names = new Set<string>();
  /** Ends of names, such as `.example.com`. */
  readonly #ends: readonly string[];
  readonly #isOpen: boolean;
  /** The header that was allowed last; most clients send the same one. */
  #known: string | undefined;

  /** `names`: exact ones, `*.example.com` for all below, `*` for all. */
  constructor(names: readonly string[]) {
    const plain = names.map((name) => name.toLowerCase());
    this.#isOpen = plain.includes("*");
    this.#ends = plain.filter((name) => name.startsWith("*.")).map((name) => name.slice(1));
    for (const name of plain) this.#names.add(nameOf(name) ?? nameOf(`[${name}]`) ?? name);
  }

  /** Whether a request with this `Host` is meant for this port. */
  allows(host: string): boolean {
    if (host === this.#known) return true;
    const name = nameOf(host);
    if (name === undefined || !this.#allowsName(name)) return false;
    this.#known = host;
    return true;
  }

  /** Whether this name, from {@linkcode nameOf}, is one of those that were given. */
  names(name: string): boolean {
    return this.#isOpen || this.#names.has(name) ||
      this.#ends.some((end) => name.endsWith(end) && name.length > end.length);
  }

  #allowsName(name: string): boolean {
    return isAddress(name) || isLoopback(name) || name.endsWith(".localhost") || this.names(name);
  }
}

/** The name or address in a `Host`, without the port, in lower case; `undefined`: not one. */
export function nameOf(host: string): string | undefined {
  const url = `http://${host}/`;
  if (!URL.canParse(url)) return undefined;
  const { hostname, username, password, pathname } = new URL(url);
  if (username !== "" || password !== "" || pathname !== "/") return undefined;
  return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
}

function isAddress(name: string): boolean {
  return IPV4.test(name) || name.startsWith("[");
}
