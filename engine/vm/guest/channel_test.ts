import assert from "node:assert/strict";
import { ChannelPool, EndMarks, GuestChannel } from "./channel.ts";
import type { HostMessage } from "./control.ts";

/** A channel and the guest's ends of its streams. */
async function setup() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const pair = () =>
    Promise.all([Deno.connect({ hostname: "127.0.0.1", port }), listener.accept()]);
  const [stdout, guestOut] = await pair();
  const [stderr, guestErr] = await pair();
  listener.close();
  const sent: HostMessage[] = [];
  const control = { send: (message: HostMessage) => void sent.push(message) };
  const channel = new GuestChannel({ number: 2, stdout, stderr, control, memoryMb: 300 });
  let printed = "";
  const start = (script = 1) => {
    printed = "";
    const decoder = new TextDecoder();
    return channel.start(script, ({ stream, bytes }) => {
      printed += `${stream}:${decoder.decode(bytes)};`;
    });
  };
  const mark = (): string => {
    const run = sent.findLast((message) => message.type === "run");
    return run?.type === "run" ? `\0${run.endMark}` : "";
  };
  const write = (to: Deno.Conn, text: string) => to.write(new TextEncoder().encode(text));
  const exit = (how: { code?: number; signal?: number; outOfMemory?: boolean }) => {
    const none = { code: null, signal: null, outOfMemory: false };
    channel.receive({ type: "exit", channel: 2, ...none, ...how });
  };
  const close = async (): Promise<void> => {
    for (const end of [guestOut, guestErr]) end.close();
    await channel.close();
    for (const end of [stdout, stderr]) end.close();
  };
  return {
    ...{ channel, guestOut, guestErr, sent, start, mark, write, exit },
    printed: () => printed,
    [Symbol.asyncDispose]: close,
  };
}

Deno.test("GuestChannel: a program has ended when all its output has arrived", async () => {
  await using at = await setup();
  const program = at.start(7);
  const [run] = at.sent;
  assert.ok(run?.type === "run" && run.script === 7);
  let hasEnded = false;
  void program.ended.then(() => hasEnded = true);

  at.channel.receive({ type: "started", channel: 2 });
  await program.started;
  at.exit({ code: 3 });
  await at.write(at.guestErr, `late${at.mark()}`);
  await at.write(at.guestOut, "later");
  assert.equal(hasEnded, false);
  assert.equal(at.channel.isFree, false);
  await at.write(at.guestOut, at.mark());

  assert.deepEqual(await program.ended, { code: 3, signal: null });
  assert.deepEqual(at.printed().split(";").toSorted(), ["", "stderr:late", "stdout:later"]);
  assert.equal(at.channel.isFree, true);
});

Deno.test("GuestChannel names the signal and reports that memory ran out", async () => {
  await using at = await setup();
  const program = at.start();

  at.exit({ signal: 9, outOfMemory: true });
  for (const end of [at.guestOut, at.guestErr]) await at.write(end, at.mark());

  assert.deepEqual(await program.ended, {
    code: null,
    signal: "SIGKILL",
    reason: "out of memory (300 MiB)",
  });
});

Deno.test("GuestChannel.signal() waits for the program's process and reaches no other program", async () => {
  await using at = await setup();
  await at.channel.signal("KILL");
  assert.deepEqual(at.sent, []);

  const program = at.start();
  const signalled = at.channel.signal("TERM");
  assert.equal(at.sent.length, 1);
  at.channel.receive({ type: "started", channel: 2 });
  await signalled;

  assert.deepEqual(at.sent.at(-1), { type: "signal", channel: 2, name: "TERM" });
  at.exit({ code: 0 });
  for (const end of [at.guestOut, at.guestErr]) await at.write(end, at.mark());
  await program.ended;
  await at.channel.signal("KILL");
  assert.equal(at.sent.length, 2);
});

Deno.test("GuestChannel runs programs in sequence and keeps their output apart", async () => {
  await using at = await setup();
  const marks = new Set<string>();
  for (const name of ["first", "second", "third"]) {
    const program = at.start();
    marks.add(at.mark());
    await at.write(at.guestOut, `${name}${at.mark()}`);
    await at.write(at.guestErr, at.mark());
    at.exit({ code: 0 });
    await program.ended;
    assert.equal(at.printed(), `stdout:${name};`);
  }
  assert.equal(marks.size, 3);
});

Deno.test("GuestChannel.close() passes on remaining output and ends the program", async () => {
  const at = await setup();
  const program = at.start();
  await at.write(at.guestOut, "last words \0");

  await at[Symbol.asyncDispose]();

  await program.started;
  assert.equal(await program.ended, undefined);
  assert.equal(at.printed(), "stdout:last words ;stdout:\0;");
});

/** A pool of channels whose `isFree` the tests set. */
function setupPool(count: number) {
  const channels = Array.from({ length: count }, (_, number) => ({ number, isFree: true }));
  const pool = new ChannelPool(channels as unknown as GuestChannel[]);
  const never = new AbortController().signal;
  const take = (signal = never) =>
    pool.start((channel) => {
      const taken = channels.find((one) => one === channel as unknown)!;
      taken.isFree = false;
      return taken.number;
    }, signal);
  const free = (number: number): void => {
    channels[number]!.isFree = true;
    pool.wake();
  };
  return { pool, take, free };
}

Deno.test("ChannelPool uses each channel once", async () => {
  const { take } = setupPool(3);

  assert.deepEqual(await Promise.all([take(), take(), take()]), [0, 1, 2]);
});

Deno.test("ChannelPool queues callers until a channel is free", async () => {
  const { take, free } = setupPool(1);
  await take();
  const order: string[] = [];
  const second = take().then(() => order.push("second"));
  const third = take().then(() => order.push("third"));

  free(0);
  await Promise.race([second, third]);
  assert.equal(order.length, 1);
  free(0);
  await Promise.all([second, third]);

  assert.equal(order.length, 2);
});

Deno.test("ChannelPool.start() returns when its signal aborts, before or during the wait", async () => {
  const { take } = setupPool(1);
  await take();
  const aborted = new AbortController();
  const waiting = take(aborted.signal);

  aborted.abort();

  assert.equal(await waiting, undefined);
  assert.equal(await take(aborted.signal), undefined);
});

Deno.test("ChannelPool.close() ends all waits", async () => {
  const { pool, take } = setupPool(1);
  await take();
  const waiting = take();

  pool.close();

  assert.equal(await waiting, undefined);
  assert.equal(await take(), undefined);
});

const encode = (text: string) => new TextEncoder().encode(text);

function setupMarks() {
  const pieces: string[] = [];
  const marks = new EndMarks((bytes) => void pieces.push(new TextDecoder().decode(bytes)));
  let ends = 0;
  const next = (mark: string) => void marks.next(mark).then(() => ends++);
  /** What was found so far; ends resolve in a later microtask. */
  const seen = async () => {
    await Promise.resolve();
    await Promise.resolve();
    return { text: pieces.join(""), ends };
  };
  return { marks, pieces, next, seen };
}

Deno.test("EndMarks passes on immediately what cannot be the mark", async () => {
  const { marks, next, pieces, seen } = setupMarks();
  next("mark");

  marks.add(encode("a line\nhalf a li"));
  marks.add(encode("zero \0 ma"));
  marks.add(encode("\0mar\0"));

  assert.deepEqual(pieces, ["a line\nhalf a li", "zero \0 ma", "\0mar"]);
  assert.equal((await seen()).ends, 0);
});

Deno.test("EndMarks finds the mark wherever the stream is split", async () => {
  const stream = encode("out\0put \0mark\0mar!\0mark");
  for (let cut = 0; cut <= stream.length; cut++) {
    for (
      const second of [cut, Math.min(cut + 1, stream.length), Math.min(cut + 3, stream.length)]
    ) {
      const { marks, next, seen } = setupMarks();
      next("mark!");
      marks.add(stream.slice(0, cut));
      marks.add(stream.slice(cut, second));
      marks.add(stream.slice(second));
      assert.deepEqual(await seen(), { text: "out\0put \0mark\0mar!", ends: 0 }, `cut at ${cut}`);

      marks.add(encode("!"));

      assert.deepEqual(await seen(), { text: "out\0put \0mark\0mar!", ends: 1 }, `cut at ${cut}`);
    }
  }
});

Deno.test("EndMarks drops bytes between two programs", async () => {
  const { marks, next, seen } = setupMarks();
  marks.add(encode("before"));
  next("one");
  marks.add(encode("first\0one and rest"));
  marks.add(encode("between"));
  next("two");
  marks.add(encode("second\0one\0two"));

  assert.deepEqual(await seen(), { text: "firstsecond\0one", ends: 2 });
});

Deno.test("EndMarks passes on held bytes when the stream ends", async () => {
  const { marks, next, seen } = setupMarks();
  next("mark");
  marks.add(encode("end\0ma"));
  assert.equal((await seen()).text, "end");

  marks.end();

  assert.deepEqual(await seen(), { text: "end\0ma", ends: 1 });
});
