/**
 * Claims about bounds: no peer, however large, slow or silent, exceeds its limits.
 *
 * @module
 */
import assert from "node:assert/strict";
import { DRAINED_BYTES, SEND_AHEAD_BYTES } from "../../engine/ports/connection.ts";
import { createMemoryBudget } from "../../engine/platform/memory_budget.ts";
import { bytes, type Claim, Port } from "./connection_setup.ts";
import { OP, type RawWsClient } from "../fakes/raw_ws_client.ts";
import { until } from "../fakes/until.ts";

const MIB = 1024 * 1024;

export const BOUND_CLAIMS: readonly Claim[] = [
  {
    name: "a message of exactly the largest size passes, one byte more is closed with 1009",
    async run(carrier) {
      await using port = new Port(carrier, { maxMessageBytes: 1_000 });
      const { client, recorded } = await port.open();

      await client.text("x".repeat(1_000));
      await client.text("ü".repeat(500));
      await client.text("x".repeat(1_001));

      assert.equal((await client.nextClose())?.code, 1009);
      await client.close(1009);
      const reason = "message larger than 1000 bytes";
      assert.deepEqual(await recorded.end(), { code: 1009, reason });
      assert.equal(recorded.texts.length, 2);
      assert.deepEqual(port.cuts, [reason]);
    },
  },
  ...(["text", "binary"] as const).map((kind): Claim => ({
    name: `the size of a ${kind} message counts in bytes and as a whole`,
    async run(carrier) {
      await using port = new Port(carrier, { maxMessageBytes: 1_000 });
      const { client, recorded } = await port.open();

      await client.frame(OP[kind], bytes("ü".repeat(300)), { fin: false });
      await client.frame(OP.more, bytes("ü".repeat(300)));

      assert.equal((await client.nextClose())?.code, 1009);
      assert.deepEqual([recorded.texts, recorded.binaries], [[], []]);
    },
  })),
  {
    name: "a frame that claims to be huge closes the connection and takes no memory",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const before = Deno.memoryUsage().rss;

      await client.frame(OP.text, bytes("x"), { claims: 1n << 40n });

      await recorded.end();
      assert.ok(Deno.memoryUsage().rss - before < 50 * MIB);
    },
  },
  {
    name: "a frame that claims to be huge is closed with 1009",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client } = await port.open();

      await client.frame(OP.text, bytes("x"), { claims: 1n << 40n });

      assert.equal((await client.nextClose())?.code, 1009);
    },
  },
  {
    name: "queuedBytes counts unsent bytes, and drained is reported once they are sent",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const { connection } = recorded;
      assert.equal(connection.queuedBytes, 0);

      const count = 100;
      for (let i = 0; i < count; i++) connection.send("ü".repeat(MIB / 2));
      const queued = connection.queuedBytes;
      assert.ok(queued > 80 * MIB && queued <= count * (MIB + 10), `${queued} bytes queued`);
      assert.equal(recorded.drains, 0);
      for (let i = 0; i < count; i++) assert.equal((await client.next())?.payload.length, MIB);

      await until(() => connection.queuedBytes === 0, "all has left");
      await until(() => recorded.drains > 0, "drained is reported");
      assert.equal(recorded.drains, 1);
    },
  },
  {
    name: "drained is not reported for a connection that was never behind",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      recorded.onText = (message) => recorded.connection.send(message);

      for (let i = 0; i < 200; i++) {
        await client.text("x".repeat(10_000));
        await client.next();
      }

      assert.equal(recorded.drains, 0);
    },
  },
  {
    name: "a peer that falls behind gets everything in order once it reads again",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const count = 3_000;
      const padding = "x".repeat(10_000);

      for (let i = 0; i < count; i++) {
        if (i % 2) recorded.connection.send(`${i} ${padding}`);
        else recorded.connection.sendBinary(bytes(`${i} ${padding}`));
      }

      for (let i = 0; i < count; i++) {
        const { opcode, payload } = (await client.next())!;
        assert.equal(opcode, i % 2 ? OP.text : OP.binary);
        assert.equal(parseInt(new TextDecoder().decode(payload.subarray(0, 8))), i);
      }
    },
  },
  {
    name: "a peer that stops reading is cut when memory is used up, and its queue is released",
    async run(carrier) {
      const memory = createMemoryBudget(16 * MIB);
      await using port = new Port(carrier, { memory });
      const { client, recorded } = await port.open();
      const { client: healthy, recorded: other } = await port.open();
      const before = Deno.memoryUsage().rss;
      let peak = 0;

      for (let sent = 0; sent < 400; sent++) {
        // Made anew each time: equal strings share their memory.
        recorded.connection.send(sent + "x".repeat(MIB));
        peak = Math.max(peak, recorded.connection.queuedBytes);
      }
      const { code, reason } = await recorded.end();

      assert.equal(code, 1008);
      assert.match(reason, /^peer reads too slowly, and engine.memory_mb is used up: \d+ bytes/);
      assert.deepEqual(port.cuts, [reason]);
      assert.ok(peak <= 17 * MIB, `${peak} bytes queued`);
      assert.ok(Deno.memoryUsage().rss - before < 150 * MIB);
      assert.equal(recorded.connection.queuedBytes, 0);
      other.connection.send("unharmed");
      assert.equal(await healthy.nextText(), "unharmed");
      assert.equal((await closeFrameOf(client))?.code, 1008);
    },
  },
  {
    name: "a peer that stops reading is cut after 5 s when more than its bound is unsent",
    async run(carrier) {
      await using port = new Port(carrier, { maxQueuedBytes: 8 * MIB, silenceMs: 1_500 });
      const { client, recorded } = await port.open();

      for (let i = 0; i < 32; i++) recorded.connection.send(i + "x".repeat(MIB));
      while (recorded.closings.length === 0) {
        await client.frame(OP.pong).catch(() => {}); // Neither silent nor reading.
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      const { code, reason } = await recorded.end();

      assert.equal(code, 1008);
      assert.match(reason, /^peer has (stopped reading|read nothing): \d+ bytes unsent$/);
    },
  },
  {
    name: "a peer that reads gets more than the bound of unsent bytes: progress counts",
    async run(carrier) {
      await using port = new Port(carrier, { maxQueuedBytes: 4 * MIB });
      const { client, recorded } = await port.open();

      for (let i = 0; i < 8; i++) recorded.connection.send(i + "x".repeat(5 * MIB));
      for (let i = 0; i < 8; i++) {
        const { payload } = (await client.next())!;
        assert.deepEqual([payload[0], payload.length], [48 + i, 5 * MIB + 1]);
      }

      assert.deepEqual(recorded.closings, []);
    },
  },
  {
    name: "what connections hold of the memory budget is returned with them",
    async run(carrier) {
      const memory = createMemoryBudget(256 * MIB);
      {
        await using port = new Port(carrier, { memory });
        const { client, recorded } = await port.open();
        const { client: other, recorded: unread } = await port.open();

        for (let i = 0; i < 32; i++) unread.connection.send(i + "x".repeat(MIB));
        await client.frame(OP.text, bytes("x".repeat(3 * MIB)), { fin: false });
        await until(() => memory.usedBytes > 3 * MIB, "buffers are taken from the budget");
        recorded.connection.close(1000, "");
        other.destroy();
        client.destroy();
      }

      assert.equal(memory.usedBytes, 0);
    },
  },
  {
    name: "a slow reader does not hold up others",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client: slow, recorded: behind } = await port.open();
      const { client, recorded } = await port.open();
      recorded.onText = (message) => recorded.connection.send(message);

      for (let i = 0; i < 50; i++) behind.connection.send("x".repeat(MIB));
      for (let i = 0; i < 50; i++) {
        await client.text(`${i}`);
        assert.equal(await client.nextText(), `${i}`);
      }

      assert.ok(behind.connection.queuedBytes > DRAINED_BYTES);
      slow.destroy();
    },
  },
  {
    name: "a peer that reads nothing of a short queue is cut after the longest silence",
    async run(carrier) {
      await using port = new Port(carrier, { silenceMs: 600 });
      const { client, recorded } = await port.open();

      await fillToRefusal(recorded.connection, client);

      const { code, reason } = await recorded.end();
      assert.equal(code, 1008);
      assert.match(reason, /^peer has read nothing: \d+ bytes unsent$/);
    },
  },
  {
    name: "a peer that sends nothing and answers no ping is cut",
    async run(carrier) {
      await using port = new Port(carrier, { silenceMs: 400 });
      const { client, recorded } = await port.open();

      const end = await recorded.end();

      assert.deepEqual(end, { code: 1006, reason: "peer silent for 400 ms" });
      assert.deepEqual(port.cuts, [end.reason]);
      assert.equal((await client.next())?.opcode, OP.ping);
    },
  },
  {
    name: "a peer that answers pings may be silent for long",
    async run(carrier) {
      await using port = new Port(carrier, { silenceMs: 2_000 });
      const { client, recorded } = await port.open();

      for (let i = 0; i < 4; i++) {
        const ping = await client.next();
        assert.equal(ping?.opcode, OP.ping);
        await client.frame(OP.pong, ping.payload);
      }

      assert.deepEqual(recorded.closings, []);
    },
  },
  {
    name: "pause() holds the peer back until resume()",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      assert.equal(recorded.connection.pause(), true);
      await client.text("later");
      await new Promise((resolve) => setTimeout(resolve, 200));
      assert.deepEqual(recorded.texts, []);
      recorded.connection.resume();

      await until(() => recorded.texts.length === 1, "the message is there");
    },
  },
];

/** Sends until the system's buffers are full and something, but not much, is left over. */
async function fillToRefusal(
  connection: { send(text: string): void; readonly queuedBytes: number },
  client: RawWsClient,
): Promise<void> {
  for (let quiet = 0; quiet < 5;) {
    if (connection.queuedBytes === 0) {
      connection.send("x".repeat(SEND_AHEAD_BYTES / 4));
      quiet = 0;
    } else quiet++;
    await client.frame(OP.pong); // Neither silent nor reading.
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Reads up to the close frame. */
async function closeFrameOf(client: RawWsClient): Promise<{ code: number } | undefined> {
  let frame = await client.next();
  while (frame && frame.opcode !== OP.close) frame = await client.next();
  return frame && { code: frame.payload[0]! << 8 | frame.payload[1]! };
}
