import assert from "node:assert/strict";
import { fakeEnds, settle } from "../../../tests/fakes/fake_channel_socket.ts";
import type { Json } from "../wire/protocol.ts";
import { eventOf, sendStream, streamedResponse } from "./http_stream.ts";
import { ChannelWriter } from "./writer.ts";

const REF = { channel_id: "c", access_key: "k", direction: "write" } as const;

/** A payload with a response, and what was written to it. */
function setup() {
  const { setup, sockets } = fakeEnds();
  const payload = { response: new ChannelWriter(REF, setup) } as unknown as Json;
  const start = (result: unknown) => {
    let isGone = false;
    const streamed = streamedResponse(payload, result);
    assert.ok(streamed);
    const sent = sendStream(streamed, () => isGone = true);
    return { sent, isGone: () => isGone };
  };
  /** Sends a result to its end; the messages as texts. */
  const send = async (result: unknown): Promise<string[]> => {
    const { sent } = start(result);
    for (let i = 0; i < 20 && !sockets[0]?.finished; i++) await settle();
    sockets[0]!.events.closed(sockets[0]!.finished!.code, "");
    await sent;
    return sockets[0]!.sent.map((data) => {
      return typeof data === "string" ? data : `> ${new TextDecoder().decode(data)}`;
    });
  };
  return { payload, send, start, sockets };
}

Deno.test("a generator of texts is a text, sent as it comes", async () => {
  const { send, sockets } = setup();

  const sent = await send((async function* () {
    yield "a";
    await Promise.resolve();
    yield new TextEncoder().encode("b");
  })());

  assert.deepEqual(sent, [
    '{"type":"set_headers","headers":{"content-type":"text/plain; charset=utf-8"}}',
    "> a",
    "> b",
  ]);
  assert.equal(sockets[0]!.finished?.code, 1000);
});

Deno.test("a body that is a stream has the status and headers beside it", async () => {
  const { send } = setup();

  const body = new Blob(["bytes"]).stream();
  const sent = await send({ status_code: 201, headers: { "Content-Type": "image/png" }, body });

  assert.deepEqual(sent, [
    '{"type":"set_status","status_code":201}',
    '{"type":"set_headers","headers":{"Content-Type":"image/png"}}',
    "> bytes",
  ]);
});

Deno.test("a response whose head is known connects while its first item is made", async () => {
  const { start, sockets } = setup();
  const first = Promise.withResolvers<string>();

  const { sent } = start({
    headers: { "content-type": "text/csv" },
    body: (async function* () {
      yield await first.promise;
    })(),
  });
  await settle();
  const head = '{"type":"set_headers","headers":{"content-type":"text/csv"}}';
  assert.deepEqual(sockets[0]?.sent, [head]);

  first.resolve("a,b");
  for (let i = 0; i < 20 && !sockets[0]!.finished; i++) await settle();
  assert.deepEqual(sockets[0]!.sent.slice(1), [new TextEncoder().encode("a,b")]);
  sockets[0]!.events.closed(1000, "");
  await sent;
});

Deno.test("a response whose first item fails after its head is cut", async () => {
  const { start, sockets } = setup();

  const { sent, isGone } = start({
    status_code: 201,
    // deno-lint-ignore require-yield
    body: (async function* () {
      await settle();
      throw new Error("no data");
    })(),
  });
  for (let i = 0; i < 20 && !sockets[0]?.finished; i++) await settle();
  sockets[0]!.events.closed(4001, "");
  await sent;

  assert.deepEqual(sockets[0]!.finished, { code: 4001, reason: "no data" });
  assert.equal(isGone(), false);
});

Deno.test("objects are server-sent events where the content type says so", async () => {
  const { send } = setup();

  function* events() {
    yield { event: "tick", data: { n: 1 }, id: "7" };
    yield { n: 2 };
    yield ": comment\n\n";
  }
  const sent = await send({ headers: ["content-type: text/event-stream"], body: events() });

  assert.deepEqual(sent.slice(1), [
    '> event: tick\ndata: {"n":1}\nid: 7\n\n',
    '> data: {"n":2}\n\n',
    "> : comment\n\n",
  ]);
});

Deno.test("an event cannot break out of its fields", () => {
  assert.equal(
    eventOf({ event: "a\nb", data: "x\r\ny\nz" }),
    "event: a b\ndata: x\ndata: y\ndata: z\n\n",
  );
  assert.equal(eventOf([1]), "data: [1]\n\n");
  assert.equal(eventOf({}), "data: {}\n\n");
});

for (const [what, item] of [["an object", { a: 1 }], ["a number", 5]] as const) {
  Deno.test(`${what} in a stream of another type aborts it`, async () => {
    const { send, sockets } = setup();
    let isEnded = false;

    await send((function* () {
      try {
        yield item;
      } finally {
        isEnded = true;
      }
    })());

    assert.equal(sockets[0]!.finished?.code, 4001);
    assert.match(sockets[0]!.finished!.reason, /carries strings and Uint8Array/);
    assert.ok(isEnded);
  });
}

Deno.test("a generator that throws aborts with its message", async () => {
  const { send, sockets } = setup();

  await send((function* () {
    yield "part";
    throw new Error("the disk is gone");
  })());

  assert.deepEqual(sockets[0]!.finished, { code: 4001, reason: "the disk is gone" });
});

Deno.test("a client that leaves ends the iteration and tells the handler", async () => {
  const { start, sockets } = setup();
  let isEnded = false;
  const { sent, isGone } = start((async function* () {
    try {
      for (;;) {
        yield "tick";
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    } finally {
      isEnded = true;
    }
  })());
  while ((sockets[0]?.sent.length ?? 0) < 2) await new Promise((done) => setTimeout(done, 1));

  sockets[0]!.events.closed(1000, "reader_closed");
  await sent;

  assert.ok(isGone());
  assert.ok(isEnded);
});

for (const result of [null, undefined, "text", [1, 2], { body: "x" }, { body: [1] }, new Map()]) {
  Deno.test(`${Deno.inspect(result)} is no stream`, () => {
    assert.equal(streamedResponse(setup().payload, result), undefined);
  });
}

Deno.test("a generator without a response to write to is no stream", () => {
  assert.equal(streamedResponse({ a: 1 }, (function* () {})()), undefined);
  assert.equal(streamedResponse(undefined, (function* () {})()), undefined);
});
