/**
 * Which hosts functions may request: the patterns of `engine.http_functions.allow`.
 *
 * A pattern is `[scheme://]host[:port]`. Without a scheme it means https; without a port, the
 * scheme's own. The host is a name, an address, `*.` and the end of a name, or `*`; the port may be
 * `*`. Nothing is resolved here: what a name stands for is checked when it is requested.
 *
 * @module
 */

/** A pattern that was read. */
export interface HostPattern {
  readonly protocol: "http:" | "https:";
  /** As a URL spells it; `*` for any, `*.` and the end of names. */
  readonly host: string;
  /** `*` for any. */
  readonly port: string;
}

/** Most patterns of a configuration. */
export const HOST_PATTERNS_MAX = 1_000;

const PATTERN = /^(?:(https?):\/\/)?(\[[\da-f:.]+\]|\*|(?:\*\.)?[\w.-]+)(?::(\d{1,5}|\*))?$/i;
const DEFAULT_PORTS = { "http:": "80", "https:": "443" } as const;

/** Reads a pattern; a text that is none returns what is expected, for messages. */
export function readHostPattern(text: string): HostPattern | string {
  const [, scheme = "https", host, port] = PATTERN.exec(text) ?? [];
  const protocol = scheme.toLowerCase() === "http" ? "http:" : "https:";
  if (host === undefined) return EXPECTED;
  const wildcard = host === "*" ? "*" : host.startsWith("*.") ? "*." : "";
  const name = host.slice(wildcard.length);
  const spelled = name === "" ? "" : spelledHost(name);
  if (spelled === undefined || Number(port) > 65_535) return EXPECTED;
  return { protocol, host: wildcard + spelled, port: port ?? DEFAULT_PORTS[protocol] };
}

/** Whether one of some patterns allows the host of a URL. */
export function isHostAllowed(url: URL, patterns: readonly HostPattern[]): boolean {
  const host = hostOf(url);
  const port = url.port === "" ? DEFAULT_PORTS[url.protocol as "http:"] : url.port;
  return patterns.some((pattern) =>
    pattern.protocol === url.protocol && (pattern.port === "*" || pattern.port === port) &&
    isOf(host, pattern.host)
  );
}

/** The host of a URL, without the dot that ends a complete name. */
export function hostOf({ hostname }: URL): string {
  return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
}

/** The shortest pattern that allows a URL, for messages. */
export function patternFor(url: URL): string {
  const port = url.port === "" ? "" : `:${url.port}`;
  return `${url.protocol === "http:" ? "http://" : ""}${hostOf(url)}${port}`;
}

const EXPECTED = "a host such as api.example.com, *.example.com:8443 or http://127.0.0.1:8080";

function isOf(host: string, pattern: string): boolean {
  if (pattern === "*") return true;
  // `*.example.com` without the star; a name that is no more than that is not below it.
  if (pattern.startsWith("*.")) {
    return host.endsWith(pattern.slice(1)) && host.length > pattern.length - 1;
  }
  return host === pattern;
}

/** A host as the URL parser spells it. */
function spelledHost(text: string): string | undefined {
  const url = `https://${text}/`;
  return URL.canParse(url) ? hostOf(new URL(url)) : undefined;
}
