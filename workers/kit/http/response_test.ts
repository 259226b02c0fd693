/**
 * Short responses as one piece, and the memory they are written into.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeClock } from "../../../tests/fakes/fake_clock.ts";
import { settle } from "../../../tests/fakes/fake_http.ts";
import { HttpConnection } from "./connection.ts";
import { BodyReadTurns, type ByteStream } from "./input.ts";
import { piecesOf, type ServedResponse, wholeOf, WriteMemory } from "./response.ts";

const ENDING = { isHead: false, date: "now", connection: undefined };

/** A response of 200 with this body and header. */
function responseOf(body: string, value = "b"): ServedResponse {
  return { status: 200, headers: [["a", value]], body };
}

for (
  const [name, body] of [
    ["ASCII", "text"],
    ["no text", ""],
    ["other characters", "caf\xe9 \u20ac \u{1f600} \ud800"],
    ["more than the memory", "x".repeat(5_000)],
    ["more bytes than characters fit", "\u20ac".repeat(100)],
  ] as const
) {
  Deno.test(`wholeOf() of ${name} are the bytes of piecesOf()`, () => {
    const expected = [...piecesOf(responseOf(body), ENDING)].flatMap((piece) => [...piece]);

    const whole = wholeOf(responseOf(body), ENDING, new Uint8Array(200));

    assert.deepEqual([...whole!], expected);
    const bytes = new TextEncoder().encode(body).length;
    assert.match(new TextDecoder().decode(whole), new RegExp(`\r\ncontent-length: ${bytes}\r\n`));
  });
}

Deno.test("wholeOf() leaves what is not one text to piecesOf()", () => {
  const memory = new Uint8Array(200);

  assert.equal(wholeOf(responseOf("text", "caf\xe9"), ENDING, memory), undefined);
  assert.equal(wholeOf(responseOf("text"), { ...ENDING, isHead: true }, memory), undefined);
  assert.equal(wholeOf({ ...responseOf(""), body: null }, ENDING, memory), undefined);
  assert.equal(wholeOf({ ...responseOf(""), body: memory }, ENDING, memory), undefined);
});

/** A connection that gets one request, and takes no response before {@linkcode take} is called. */
function openConnection(name: string, writeMemory: WriteMemory) {
  const requests = [`GET /${name} HTTP/1.1\r\nhost: a\r\n\r\n`];
  let written = new Uint8Array();
  let resolve = (_count: number): void => {};
  let reject = (_error: Error): void => {};
  const stream: ByteStream = {
    read(into) {
      const text = requests.shift();
      return Promise.resolve(text ? new TextEncoder().encodeInto(text, into).written : null);
    },
    write(bytes) {
      written = bytes as Uint8Array<ArrayBuffer>; // No copy: the kernel does not have it yet.
      return new Promise<number>((...both) => [resolve, reject] = both);
    },
    closeWrite: () => Promise.resolve(),
    close() {},
  };
  const clock = new FakeClock();
  const connection = new HttpConnection(stream, { name, sockets: 1, running: 0 }, {
    clock,
    turns: new BodyReadTurns(clock),
    writeMemory,
    handle: ({ target }) => responseOf(`body of ${target}`),
    holdResponse: (response) => Promise.resolve({ response, release() {} }),
    responded() {},
    date: () => "now",
    isDraining: false,
    isMemoryTight: false,
  });
  return {
    done: connection.run(),
    text: () => new TextDecoder().decode(written),
    take: (bytes = written.length) => resolve(bytes),
    destroy: () => connection.destroy(),
    fail: () => reject(new Error("broken")),
  };
}

Deno.test("responses that are not taken yet have memory of their own", async () => {
  const memory = new WriteMemory();
  const names = ["one", "two", "three", "part", "closed"];

  const all = names.map((name) => openConnection(name, memory));
  await settle();
  all[0]!.fail(); // A write that failed may still read its memory.
  await all[0]!.done;
  all[1]!.take();
  await all[1]!.done;
  all[3]!.take(3);
  all[4]!.destroy(); // A closed socket does not end its write.
  const late = ["late", "later", "last"].map((name) => openConnection(name, memory));
  await settle();

  assert.match(all[0]!.text(), /body of \/one$/);
  assert.match(all[2]!.text(), /body of \/three$/);
  assert.match(all[3]!.text(), /^P\/1\.1 200 OK[^]*body of \/part$/);
  assert.match(all[4]!.text(), /body of \/closed$/);
  assert.match(late[0]!.text(), /body of \/late$/);
  const open = [...all.slice(2), ...late];
  for (const each of open) each.take();
  await Promise.all(open.map(({ done }) => done));
});

Deno.test("WriteMemory keeps a bounded number of what was released", () => {
  const memory = new WriteMemory();
  const taken = Array.from({ length: 200 }, () => memory.take());

  for (const each of taken) memory.release(each);
  const again = Array.from({ length: 200 }, () => memory.take());

  assert.equal(again.filter((each) => taken.includes(each)).length, 64);
});
