/**
 * Which IP addresses a request of the engine may go to.
 *
 * Only addresses of the public internet, and with `allow_private` those of private networks and of
 * this machine. All others are refused in any case: link-local ones, which hold the metadata of
 * cloud machines, multicast, documentation, tunnels and what is reserved. An IPv6 address that
 * stands for an IPv4 one (mapped, NAT64) is judged by that.
 *
 * @module
 */
import ipaddr from "ipaddr.js";

/** What an address belongs to. */
export type AddressKind = "public" | "private" | "refused";

/** How problems of private addresses begin. */
export const PRIVATE = "a private address";

/** Ranges of private networks and of this machine. */
const PRIVATE_RANGES: ReadonlySet<string> = new Set([
  "private",
  "loopback",
  "uniqueLocal",
  "carrierGradeNat",
]);
/** Services of clouds for their own machines, outside of the link-local range. */
const METADATA: ReadonlySet<string> = new Set([
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2:0:0:0:0:0:254",
]);
/** Four decimal numbers: of other forms, such as 0x7f.1, systems have opinions of their own. */
const V4 = /^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$/;
/** First parts of 64:ff9b::/96, the NAT64 prefix that every network may use. */
const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0];
/** First parts of ::ffff:0:0/96. */
const MAPPED = [0, 0, 0, 0, 0, 0xffff];
/** Global unicast IPv6 addresses are in 2000::/3. */
const GLOBAL_FIRST = 0x2000;
const GLOBAL_LAST = 0x3fff;

/** The kind of an address; of a text that is none, `refused`. */
export function kindOfAddress(text: string): AddressKind {
  if (!text.includes(":")) {
    return V4.test(text) && ipaddr.IPv4.isValid(text)
      ? kindOfV4(ipaddr.IPv4.parse(text))
      : "refused";
  }
  const plain = plainV6(text);
  if (plain === undefined || !ipaddr.IPv6.isValid(plain)) return "refused";
  return kindOfV6(ipaddr.IPv6.parse(plain));
}

/** Without an IPv4 address at its end, from which the package would make a mapped one. */
function plainV6(text: string): string | undefined {
  const url = `http://[${text}]/`;
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : undefined;
}

/** Why a request may not go to an address; `undefined`: it may. */
export function addressProblem(text: string, allowPrivate: boolean): string | undefined {
  switch (kindOfAddress(text)) {
    case "public":
      return undefined;
    case "private":
      if (allowPrivate) return undefined;
      return `${PRIVATE}; engine.http_functions.allow_private: true allows these`;
    case "refused":
      return "an address that is never requested (link-local, metadata of a cloud, reserved)";
  }
}

function kindOfV4(address: ipaddr.IPv4): AddressKind {
  if (METADATA.has(address.toString())) return "refused";
  const range = address.range();
  if (PRIVATE_RANGES.has(range)) return "private";
  return range === "unicast" ? "public" : "refused";
}

function kindOfV6(address: ipaddr.IPv6): AddressKind {
  if (METADATA.has(address.toNormalizedString())) return "refused";
  const { parts } = address;
  if (beginsWith(parts, MAPPED) || beginsWith(parts, NAT64)) return kindOfV4(lastV4(parts));
  const range = address.range();
  if (PRIVATE_RANGES.has(range)) return "private";
  const isGlobal = parts[0]! >= GLOBAL_FIRST && parts[0]! <= GLOBAL_LAST;
  return range === "unicast" && isGlobal ? "public" : "refused";
}

function beginsWith(parts: readonly number[], prefix: readonly number[]): boolean {
  return prefix.every((part, at) => parts[at] === part);
}

/** The IPv4 address in the last 32 bits. */
function lastV4(parts: readonly number[]): ipaddr.IPv4 {
  const [high, low] = [parts[6]!, parts[7]!];
  return new ipaddr.IPv4([high >> 8, high & 0xff, low >> 8, low & 0xff]);
}
