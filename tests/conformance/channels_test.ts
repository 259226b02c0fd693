/**
 * PROTOCOL 5.5 and 7 from the other end of the wire: channels over raw sockets, used as they should
 * be and otherwise.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { ChannelRef, ChannelRefs } from "../../sdk/typescript/wire/channels.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import { encodeFrame, OP, type RawWsClient } from "../fakes/raw_ws_client.ts";
import { PATIENCE_MS } from "../fakes/until.ts";
import { proveOnWire, type Wire, type WireClient } from "../fakes/wire_engine.ts";

const CREATE = "engine::channels::create";
const KIB = 1024;

function pathOf({ channel_id, access_key, direction }: ChannelRef): string {
  return `/ws/channels/${channel_id}?key=${access_key}&dir=${direction}`;
}

/** A channel, and a client for each end that answers pings and fails when it waits for too long. */
async function setup({ open, ask }: Wire, payload: Json = {}) {
  const client = await open();
  const refs = await client.value<ChannelRefs & Json>(CREATE, payload);
  const connect = async (ref: ChannelRef): Promise<RawWsClient> => {
    const end = await ask({ path: pathOf(ref) });
    assert.equal(end.status, 101, end.head);
    return end;
  };
  return { client, refs, connect };
}

/** The next frame that is not a ping. */
async function next(end: RawWsClient) {
  const limit = setTimeout(() => end.destroy(), PATIENCE_MS);
  try {
    for (;;) {
      const frame = await end.next();
      if (frame?.opcode !== OP.ping) return frame;
    }
  } finally {
    clearTimeout(limit);
  }
}

/** How the connection ends; data that comes before is counted. */
async function endOf(end: RawWsClient): Promise<{ code: number; bytes: number; reason: string }> {
  for (let bytes = 0;;) {
    const frame = await next(end);
    if (!frame) return { code: 1006, bytes, reason: "" };
    const { opcode, payload } = frame;
    if (opcode !== OP.close) bytes += payload.length;
    else {
      const reason = new TextDecoder().decode(payload.subarray(2));
      return { code: payload[0]! << 8 | payload[1]!, bytes, reason };
    }
  }
}

/** Calls another function until the task is over; each call has to be answered. */
async function besides<T>(client: WireClient, task: Promise<T>): Promise<T> {
  let isOver = false;
  const done = task.finally(() => isOver = true);
  do await client.value("state::get", { scope: "canary", key: "k" }); while (!isOver);
  return await done;
}

proveOnWire("channels", {
  "text and bytes arrive unchanged and in order, then the end": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await writer.text('not JSON: "é\n');
    await writer.frame(OP.binary, Uint8Array.of(0, 255));
    await writer.text("");
    await writer.close(1000, "stream_complete");

    const frames = [await next(reader), await next(reader), await next(reader)];
    assert.deepEqual(frames.map((frame) => frame?.opcode), [OP.text, OP.binary, OP.text]);
    assert.equal(new TextDecoder().decode(frames[0]!.payload), 'not JSON: "é\n');
    assert.deepEqual(frames[1]!.payload, Uint8Array.of(0, 255));
    assert.deepEqual(await endOf(reader), { code: 1000, bytes: 0, reason: "stream_complete" });
    assert.equal((await endOf(writer)).code, 1000);
  },

  "a writer may be done before the reader connects": async (wire) => {
    const { refs, connect } = await setup(wire);
    const writer = await connect(refs.writer);
    await writer.frame(OP.binary, new Uint8Array(1_000));
    await writer.close(1000);
    assert.equal((await endOf(writer)).code, 1000);

    const reader = await connect(refs.reader);

    assert.deepEqual(await endOf(reader), { code: 1000, bytes: 1_000, reason: "stream_complete" });
  },

  "a channel outlives the connection that created it": async (wire) => {
    const { client, refs, connect } = await setup(wire);
    client.destroy();
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await writer.text("still here");

    assert.equal(await reader.nextText(), "still here");
  },

  "a message in fragments is one message, and pings between them are answered": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await writer.frame(OP.text, new TextEncoder().encode("a"), { fin: false });
    await writer.frame(OP.ping, Uint8Array.of(1));
    await writer.frame(OP.more, new TextEncoder().encode("b"));

    assert.equal(await reader.nextText(), "ab");
    assert.equal((await writer.next())?.opcode, OP.pong);
  },

  "when the reader leaves, the writer is closed": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await reader.close(1000);

    assert.deepEqual(await endOf(writer), { code: 1000, bytes: 0, reason: "reader_closed" });
  },

  "when the reader is lost, the writer is closed as well": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    reader.destroy();

    assert.deepEqual(await endOf(writer), { code: 1000, bytes: 0, reason: "reader_closed" });
  },

  "references pass through a call and its result unchanged": async (wire) => {
    const { client, refs, connect } = await setup(wire);
    const callee = await wire.open();
    await callee.offer("channels::pass");
    const data = { list: [{ reader: { ...refs.reader }, note: 1 }] };

    const returned = client.value("channels::pass", data);
    const { invocation_id, function_id, data: received } = await callee.receive();
    const result = { writer: { ...refs.writer } };
    await callee.send({
      type: "invocationresult",
      invocation_id: invocation_id!,
      function_id: function_id!,
      result,
    });

    assert.deepEqual(received, data);
    assert.deepEqual(await returned, result);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];
    await writer.text("through both");
    assert.equal(await reader.nextText(), "through both");
  },

  "when the writer is lost, the reader learns that the stream is not whole": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];
    await writer.frame(OP.binary, new Uint8Array(10));

    writer.destroy();

    const { code, bytes, reason } = await endOf(reader);
    assert.deepEqual([code, bytes], [4001, 10]);
    assert.match(reason, /the writer was lost/);
  },

  "a reason to give up reaches the reader": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await writer.close(4001, "the disk is full");

    assert.deepEqual(await endOf(reader), { code: 4001, bytes: 0, reason: "the disk is full" });
  },

  "a second claim of an end is closed, and the first one goes on": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    for (const ref of [refs.writer, refs.reader]) {
      const second = await connect(ref);
      await second.text("of no use");
      assert.equal((await endOf(second)).code, 1008);
    }

    await writer.text("first");
    assert.equal(await reader.nextText(), "first");
  },

  "a reference that was used cannot be used again": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];
    await writer.close(1000);
    await endOf(reader);
    await reader.close(1000);
    await reader.rest(); // The engine has ended the connection, and so the channel.

    const again = await wire.ask({ path: pathOf(refs.reader) });

    assert.equal(again.status, 404);
  },

  "wrong ids, keys and queries are refused before the upgrade": async (wire) => {
    const { refs: { reader, writer }, connect } = await setup(wire);
    const path = `/ws/channels/${reader.channel_id}`;
    const key = reader.access_key;
    for (
      const [target, status] of [
        [`/ws/channels/?key=${key}&dir=read`, 404],
        [`/ws/channels/${crypto.randomUUID()}?key=${key}&dir=read`, 404],
        [`${path}/?key=${key}&dir=read`, 404],
        [`${path}?key=${key.slice(0, -1)}&dir=read`, 404],
        [`${path}?key=${key}x&dir=read`, 404],
        [`${path}?key=${key.toUpperCase()}&dir=read`, 404],
        [`${path}?key=${key}&dir=write`, 404],
        [`${path}?key=${writer.access_key}&dir=read`, 404],
        [`${path}?key=&dir=read`, 400],
        [`${path}?dir=read`, 400],
        [`${path}?key=${key}`, 400],
        [`${path}?key=${key}&dir=READ`, 400],
        [path, 400],
      ] as const
    ) {
      assert.equal((await wire.ask({ path: target })).status, status, target);
    }

    await connect(reader);
  },

  "invalid frames end only their own connection": async (wire) => {
    const { client, refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await writer.frame(OP.text, Uint8Array.of(0xff));

    assert.equal((await endOf(writer)).code, 1007);
    assert.equal((await endOf(reader)).code, 4001);
    await client.receivesNothing();
  },

  "what a reader sends is ignored": async (wire) => {
    const { refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];

    await reader.text("{}");
    await reader.frame(OP.binary, new Uint8Array(1_000));
    await writer.text("still");

    assert.equal(await reader.nextText(), "still");
  },

  "a writer that floods a reader that never reads is held back, and slows no call": async (
    wire,
  ) => {
    const { client, refs, connect } = await setup(wire);
    const [writer] = [await connect(refs.writer), await connect(refs.reader)];
    const frame = encodeFrame(OP.binary, new Uint8Array(256 * KIB));
    let sent = 0;
    let isHeldBack = false;
    const flooding = (async () => {
      for (; sent < 1_024; sent++) {
        const limit = Promise.withResolvers<void>();
        const timer = setTimeout(() => limit.resolve(), 2_000);
        const write = writer.write(frame);
        const first = await Promise.race([write.then(() => "sent"), limit.promise]);
        clearTimeout(timer);
        isHeldBack = first === undefined;
        if (isHeldBack) return void write.catch(() => {});
      }
    })();

    await besides(client, flooding);

    assert.ok(isHeldBack, `${sent} frames were taken`);
    writer.destroy();
  },

  "a stream of 64 MiB to a slow reader is whole": async (wire) => {
    const { client, refs, connect } = await setup(wire);
    const [writer, reader] = [await connect(refs.writer), await connect(refs.reader)];
    const frame = encodeFrame(OP.binary, new Uint8Array(64 * KIB));
    const sending = (async () => {
      for (let i = 0; i < KIB; i++) await writer.write(frame);
      await writer.close(1000, "stream_complete");
    })();

    const { code, bytes } = await besides(client, endOf(reader));

    assert.deepEqual([code, bytes], [1000, 64 * KIB * KIB]);
    await sending;
  },
});
