/**
 * A program that writes to a store until it is killed, and says on its standard output what was
 * acknowledged: one line `<client> <number> <version>` for each.
 *
 * Every write of a client puts its next number at two keys, with a text whose length follows from
 * the number, so that small values, values in parts and values that take several commits occur.
 *
 * @module
 */
import { openKvStore } from "../../engine/store/kv_store.ts";
import { counting, textOf } from "./fake_store.ts";

const CLIENTS = 8;

/** Lengths in the order in which a client's writes have them. */
const LENGTHS = [10, 100, 70_000, 1_000, 10, 300_000, 10, 1_500_000];

/** The text that a number comes with. */
export function textFor(client: number, number: number): string {
  return textOf(LENGTHS[(client + number) % LENGTHS.length]!, client * 1_000_003 + number);
}

async function main(path: string): Promise<void> {
  const store = await openKvStore(path);
  const encoder = new TextEncoder();
  await Promise.all(
    counting(CLIENTS).map(async (client) => {
      let number = (await store.get(["left", `${client}`]))?.value as number ?? 0;
      for (;;) {
        number++;
        const text = textFor(client, number);
        const [, changed] = await store.write([
          [["left", `${client}`], () => number],
          [["right", `${client}`], () => ({ number, text })],
        ]);
        const line = `${client} ${number} ${changed!.new!.version}\n`;
        Deno.stdout.writeSync(encoder.encode(line));
      }
    }),
  );
}

if (import.meta.main) await main(Deno.args[0]!);
