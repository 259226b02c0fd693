import assert from "node:assert/strict";
import { InputFeeder } from "./input.ts";

/** A port that records what is written, in pieces of at most 5 bytes, `done` after so many `end`s. */
function setup(ends: number) {
  const decoder = new TextDecoder();
  let written = "";
  const done = Promise.withResolvers<void>();
  const port = {
    write: (bytes: Uint8Array): Promise<number> => {
      const count = Math.min(5, bytes.length);
      written += decoder.decode(bytes.subarray(0, count), { stream: true });
      if (written.split("end\n").length > ends) done.resolve();
      return Promise.resolve(count);
    },
  };
  return { feeder: new InputFeeder(port), written: () => written, done: done.promise };
}

function inputOf(...pieces: string[]): ReadableStream<Uint8Array<ArrayBuffer>> {
  return ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
}

Deno.test("InputFeeder frames the inputs of two programs, one after the other", async () => {
  const { feeder, written, done } = setup(3);

  feeder.feed(7, inputOf("hello\n", "end\n"));
  feeder.feed(8, inputOf());
  await done;

  assert.equal(written(), "open 7\ndata 6\nhello\ndata 4\nend\nend\nopen 8\nend\n");
});

Deno.test("InputFeeder ends the input of a program that has ended, and cancels the rest", async () => {
  const { feeder, written, done } = setup(2);
  const cancelled = Promise.withResolvers<void>();
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("x")),
    cancel: () => cancelled.resolve(),
  });

  feeder.feed(1, endless);
  feeder.end();
  await cancelled.promise;
  feeder.feed(2, inputOf());
  await done;

  assert.match(written(), /^open 1\n(data 1\nx)?end\nopen 2\nend\n$/);
});

Deno.test("InputFeeder cancels the input when the machine is gone", async () => {
  const feeder = new InputFeeder({ write: () => Promise.reject(new Error("gone")) });
  const cancelled = Promise.withResolvers<void>();

  feeder.feed(1, new ReadableStream({ cancel: () => cancelled.resolve() }));

  await cancelled.promise;
});
