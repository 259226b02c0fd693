/**
 * The console's one page as it leaves: with a token in it, packed, and under a policy that lets
 * nothing run but what was built into it.
 *
 * @module
 */

/** Where the token goes. */
const TOKEN_META = /<meta\s+name="engine-console-token"\s+content="">/;

/** A page, ready to be sent. */
export interface ServedPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/**
 * Makes a page ready.
 *
 * @param html The built file.
 * @param token For its `<meta name="engine-console-token">`; letters and digits only, or empty.
 */
export async function preparePage(html: string, token: string): Promise<ServedPage> {
  const text = html.replace(TOKEN_META, `<meta name="engine-console-token" content="${token}">`);
  const plain = new TextEncoder().encode(text);
  return {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": await policyFor(html),
      // The token is in it.
      "cache-control": "no-store",
      ...SAFE_HEADERS,
    },
    plain,
    packed: await gzip(plain),
    etag: `"${(await sha256(plain)).replaceAll(/\W/g, "").slice(0, 22)}"`,
  };
}

/** Headers of every answer. */
export const SAFE_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

/** Answers a request for the page. */
export function answerWith(page: ServedPage, request: Request): Response {
  const headers = { ...page.headers, etag: page.etag, vary: "accept-encoding" };
  if (request.headers.get("if-none-match") === page.etag) {
    return new Response(null, { status: 304, headers });
  }
  const packed = /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  return new Response(packed ? page.packed : page.plain, {
    headers: packed ? { ...headers, "content-encoding": "gzip" } : headers,
  });
}

/** Only the scripts and styles that stand in the page, known by their hashes. */
async function policyFor(html: string): Promise<string> {
  const [scripts, styles] = await Promise.all([
    hashesOf(html, /<script\b[^>]*>([\s\S]*?)<\/script>/gi),
    hashesOf(html, /<style\b[^>]*>([\s\S]*?)<\/style>/gi),
  ]);
  return [
    "default-src 'none'",
    `script-src ${scripts}`,
    `style-src ${styles}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

async function hashesOf(html: string, element: RegExp): Promise<string> {
  const hashes = new Set<string>();
  for (const [, body] of html.matchAll(element)) {
    if (body) hashes.add(`'sha256-${await sha256(new TextEncoder().encode(body))}'`);
  }
  return hashes.size > 0 ? [...hashes].join(" ") : "'none'";
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toBase64();
}

async function gzip(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
