/**
 * What finding the way of a frame costs, compared with parsing it.
 *
 * Expected: about a tenth of a parse, which is what the search for trailing fields takes; linear in
 * the size of the payload, and flat for what stands before it.
 *
 * @module
 */
import { Envelope } from "../../engine/core/wire/envelope.ts";

/** A payload of many small objects, of about this many characters. */
function payload(length: number): string {
  const items: string[] = [];
  for (let i = 0, size = 0; size < length; i++) {
    items.push(JSON.stringify({ id: i, name: `item-${i}`, ok: true, v: i + 0.5 }));
    size += items.at(-1)!.length + 1;
  }
  return `[${items.join(",")}]`;
}

for (const length of [100, 10_000, 1_000_000]) {
  const text = '{"type":"invokefunction","invocation_id":"0f6f2d0a-7d0e-4b1e-9f0a-2f1b6f4f9c01",' +
    `"function_id":"math::add","data":${payload(length)}}`;
  const bytes = new TextEncoder().encode(text);
  const envelope = new Envelope();
  const group = `find the way of a call of ${length} characters`;
  const decoder = new TextDecoder();

  Deno.bench({
    group,
    name: "envelope",
    fn: () => void envelope.read(bytes, 0, bytes.length, true),
  });
  Deno.bench({
    group,
    name: "parse",
    baseline: true,
    fn: () => void JSON.parse(decoder.decode(bytes)),
  });
}
