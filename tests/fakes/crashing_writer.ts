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
import { systemClock } from "../../engine/platform/system_clock.ts";
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

/** Keys that the writes of {@linkcode inOrder} go around. */
export const ORDERED_KEYS = 7;

/**
 * Writes the numbers from the last one on, one after another, acknowledged before they are on disk;
 * says of each when it was.
 */
async function inOrder(path: string, flushMs: number): Promise<void> {
  const store = await openKvStore(path, { clock: systemClock });
  const found = await store.list(["ordered"], ORDERED_KEYS);
  const encoder = new TextEncoder();
  for (let number = Math.max(0, ...found.map(({ value }) => value as number));;) {
    number++;
    const key = ["ordered", `${number % ORDERED_KEYS}`];
    const [changed] = await store.write([[key, () => number]], { flushMs });
    const line = `${Date.now()} ${number} ${changed!.new!.version}\n`;
    Deno.stdout.writeSync(encoder.encode(line));
    // The write itself waits for nothing, and the disk has to have its turn.
    if (number % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

if (import.meta.main) {
  const [path, flushMs] = Deno.args;
  await (flushMs === undefined ? main(path!) : inOrder(path!, Number(flushMs)));
}
