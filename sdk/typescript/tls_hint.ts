/**
 * What to do when a line does not open because of TLS, from what the platform says about it.
 *
 * Deno, Node and browsers have other words for the same; those they are known to use stand here.
 *
 * @module
 */

/** What is said, and what it means. The first that fits. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /wrong version number|InvalidContentType|EPROTO|packet length too long/i,
    "no TLS is spoken there; dial ws:// instead of wss://",
  ],
  [
    /\b426\b|Expected HTTP\/|invalid HTTP version/i,
    "TLS may be spoken there; dial wss:// instead of ws://",
  ],
  [
    /altname|not valid for name|NotValidForName/i,
    "the certificate there is for another name; dial one that it has",
  ],
  [/expired|NotValidYet|not yet valid/i, "the certificate there does not hold at this time"],
  [
    /verify the first certificate|self[- ]signed|local issuer|UnknownIssuer|unknown ca\b/i,
    "the certificate there is not trusted here; name the PEM file of its CA in " +
    "NODE_EXTRA_CA_CERTS (Node) or DENO_CERT (Deno)",
  ],
];

/** A failure, and behind it what to do if it has to do with TLS. */
export function withTlsHint(failure: string): string {
  const hint = HINTS.find(([pattern]) => pattern.test(failure))?.[1];
  return hint === undefined ? failure : `${failure}; ${hint}`;
}
