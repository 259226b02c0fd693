/**
 * Whether a request carries the listener's token.
 *
 * @module
 */

/**
 * Compares in a time that says nothing about where two texts differ; an empty `expected` lets
 * everybody in.
 */
export function hasToken(
  expected: string,
  authorization: string | undefined,
  query: string,
): boolean {
  if (expected === "") return true;
  const bearer = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1];
  const offered = bearer ?? new URLSearchParams(query).get("token") ?? "";
  return equalInConstantTime(offered, expected);
}

function equalInConstantTime(offered: string, expected: string): boolean {
  const encoder = new TextEncoder();
  const a = encoder.encode(offered);
  const b = encoder.encode(expected);
  let difference = a.length ^ b.length;
  for (let i = 0; i < b.length; i++) difference |= (a[i] ?? 0) ^ b[i]!;
  return difference === 0;
}
