/**
 * Streams by chance against the raw listener and its frame reader: every verdict has to be the
 * model's.
 *
 * Seeds count up from `FUZZ_SEED` (default 1) for `FUZZ_SECONDS` (default 4) in each test; a
 * failure names its seed, and `FUZZ_SEED=<seed> FUZZ_SECONDS=0` repeats that one alone.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type FrameEvents, FrameReader } from "../../engine/transport/frames.ts";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { Port } from "../contracts/connection_setup.ts";
import { OP, type RawWsClient } from "../fakes/raw_ws_client.ts";
import { Random } from "../fakes/random.ts";
import { close, echoOn, joined, listenToEnd } from "./case.ts";
import { judge, type Verdict } from "./model.ts";
import { randomCuts, randomStream } from "./random_stream.ts";

const SEED_FIRST = Number(Deno.env.get("FUZZ_SEED") ?? 1);
const SECONDS = Number(Deno.env.get("FUZZ_SECONDS") ?? 4);
/** Connections that send at the same time. */
const LINES = 8;
const KINDS: Readonly<Record<number, string>> = {
  [OP.text]: "text",
  [OP.binary]: "binary",
  [OP.pong]: "pong",
};

Deno.test("random streams over sockets are answered as the model of RFC 6455 says", async () => {
  const count = await forSeeds(async (seed) => {
    await using port = new Port({ listen: listenRaw }, {
      maxMessageBytes: limitOf(seed),
      silenceMs: 20_000,
    });
    const seeds = Array.from({ length: SECONDS > 0 ? LINES : 1 }, (_, i) => seed + i);
    const talks = await Promise.all(seeds.map(async (own) => {
      const client = await port.ask();
      return () => talk(client, own, limitOf(seed));
    }));
    port.connections.forEach(echoOn);

    await Promise.all(talks.map((start) => start()));
    await Promise.all(port.connections.map((recorded) => recorded.end()));

    const mistakes = port.cuts.filter((cut) => cut.includes("could not be handled"));
    assert.deepEqual(mistakes, []);
    return seeds.length;
  });
  console.log(`${count} streams over sockets from seed ${SEED_FIRST}`);
});

Deno.test("random streams come out of the frame reader as the model of RFC 6455 says", async () => {
  const count = await forSeeds((seed) => {
    const random = new Random(seed);
    const { stream, verdict } = scriptOf(random, limitOf(seed));
    const heard: string[] = [];
    let end: number | null | undefined;
    const over = (code: number): void => {
      assert.equal(end, undefined, "the end comes once");
      end = code === 1005 ? null : code;
    };
    const events: FrameEvents = {
      text(memory, start, end, isPlain) {
        const payload = memory.slice(start, end);
        assert.equal(isPlain, !payload.includes(0x5c));
        heard.push(shown("text", payload));
      },
      binary: (bytes) => void heard.push(shown("binary", bytes)),
      ping: (payload) => void heard.push(shown("pong", payload)),
      closeFrame: over,
      violation: over,
    };
    const reader = new FrameReader(events, limitOf(seed));

    for (const piece of randomCuts(stream, random)) feed(reader, piece);

    check(seed, verdict, heard, end);
    return Promise.resolve(1);
  });
  console.log(`${count} streams into the frame reader from seed ${SEED_FIRST}`);
});

/** Runs seeds until the time is over; `run` says how many it took. */
async function forSeeds(run: (seed: number) => Promise<number>): Promise<number> {
  const end = performance.now() + SECONDS * 1_000;
  let count = 0;
  do count += await run(SEED_FIRST + count); while (performance.now() < end);
  return count;
}

/** Of both sizes, so that lengths in 64 bits may be whole messages. */
function limitOf(seed: number): number {
  return seed % 128 < 112 ? 4_000 : 70_000;
}

/** A stream that ends with a close frame, and the expected outcome. */
function scriptOf(random: Random, limit: number): { stream: Uint8Array; verdict: Verdict } {
  let stream = randomStream(random);
  for (;;) {
    const verdict = judge(stream, limit);
    if (verdict.ends) return { stream, verdict };
    const rest = Uint8Array.from({ length: verdict.missing }, () => random.below(256));
    stream = joined([stream, verdict.missing > 0 ? rest : close(4321, "enough")]);
  }
}

async function talk(client: RawWsClient, seed: number, limit: number): Promise<void> {
  const random = new Random(seed);
  const { stream, verdict } = scriptOf(random, limit);
  const sending = (async () => {
    for (const piece of randomCuts(stream, random)) {
      await client.write(piece);
      // Some pieces come in a read of their own.
      if (random.once(30)) await new Promise((resolve) => setTimeout(resolve));
    }
  })();

  const heard = await listenToEnd(client);
  await sending;

  const closeFrame = heard.findIndex(({ opcode }) => opcode === OP.close);
  assert.equal(closeFrame, heard.length - 1, `seed ${seed}: a close frame, and it is the last`);
  const { payload } = heard.pop()!;
  const code = payload.length === 0 ? null : payload[0]! << 8 | payload[1]!;
  check(seed, verdict, heard.map(({ opcode, payload }) => shown(KINDS[opcode]!, payload)), code);
}

function check(
  seed: number,
  { replies, ends }: Verdict,
  heard: readonly string[],
  end: number | null | undefined,
): void {
  const expected = replies.map(({ kind, payload }) => shown(kind, payload));
  // A server may send an unsolicited pong.
  const isSaid = (text: string): boolean => text !== shown("pong", new Uint8Array());
  assert.deepEqual(heard.filter(isSaid), expected.filter(isSaid), `seed ${seed}`);
  assert.ok(end !== undefined && ends!.includes(end), `seed ${seed}: ended ${end}, not ${ends}`);
}

function shown(kind: string, payload: Uint8Array): string {
  let sum = 0;
  for (const byte of payload) sum = Math.imul(sum, 31) + byte | 0;
  return `${kind} of ${payload.length}: ${sum}`;
}

function feed(reader: FrameReader, bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0;) {
    const room = reader.room();
    assert.ok(room.length > 0, "there is always room");
    const part = rest.subarray(0, room.length);
    room.set(part);
    reader.added(part.length);
    reader.read();
    rest = rest.subarray(part.length);
  }
}
