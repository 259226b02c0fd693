import assert from "node:assert/strict";
import type { ToGuest } from "./control.ts";
import { GuestChannel } from "./channel.ts";

/** A channel, and its guest's ends of the streams. */
async function setup() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const pair = () =>
    Promise.all([Deno.connect({ hostname: "127.0.0.1", port }), listener.accept()]);
  const [stdout, guestOut] = await pair();
  const [stderr, guestErr] = await pair();
  listener.close();
  const sent: ToGuest[] = [];
  const control = { send: (message: ToGuest) => void sent.push(message) };
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
    channel.take({ type: "exit", channel: 2, ...none, ...how });
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

Deno.test("GuestChannel: a program has ended when all that it printed is there", async () => {
  await using at = await setup();
  const program = at.start(7);
  const [run] = at.sent;
  assert.ok(run?.type === "run" && run.script === 7);
  let hasEnded = false;
  void program.ended.then(() => hasEnded = true);

  at.channel.take({ type: "started", channel: 2 });
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

Deno.test("GuestChannel: signals and lack of memory are told by name", async () => {
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

Deno.test("GuestChannel: a signal waits for the program's process and goes nowhere else", async () => {
  await using at = await setup();
  await at.channel.signal("KILL");
  assert.deepEqual(at.sent, []);

  const program = at.start();
  const asked = at.channel.signal("TERM");
  assert.equal(at.sent.length, 1);
  at.channel.take({ type: "started", channel: 2 });
  await asked;

  assert.deepEqual(at.sent.at(-1), { type: "signal", channel: 2, name: "TERM" });
  at.exit({ code: 0 });
  for (const end of [at.guestOut, at.guestErr]) await at.write(end, at.mark());
  await program.ended;
  await at.channel.signal("KILL");
  assert.equal(at.sent.length, 2);
});

Deno.test("GuestChannel: programs follow each other, each with its own output", async () => {
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

Deno.test("GuestChannel: a machine that goes ends what runs, output included", async () => {
  const at = await setup();
  const program = at.start();
  await at.write(at.guestOut, "last words \0");

  await at[Symbol.asyncDispose]();

  await program.started;
  assert.equal(await program.ended, undefined);
  assert.equal(at.printed(), "stdout:last words ;stdout:\0;");
});
