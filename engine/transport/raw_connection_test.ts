import assert from "node:assert/strict";
import { SEND_AHEAD_BYTES, STREAM_AHEAD_BYTES } from "../ports/connection.ts";
import { createMemoryBudget } from "../platform/memory_budget.ts";
import { Port } from "../../tests/contracts/connection_setup.ts";
import { PATIENCE_MS } from "../../tests/fakes/until.ts";
import { OP } from "../../tests/fakes/raw_ws_client.ts";
import { RawConnection, type RawConnectionOptions } from "./raw_connection.ts";
import { listenRaw } from "./raw_listener.ts";
import type { RawSocket } from "./socket.ts";
import type { Work } from "../ports/turns.ts";
import { TickBudget } from "./tick_budget.ts";
import { BlockPool } from "./write_queue.ts";

Deno.test("messages of one tick leave in one write, unless they are large", async () => {
  const { socket, recorded, run } = setup();

  const head = new TextEncoder().encode('{"n":1,');
  const data = new TextEncoder().encode(`"data":"${"x".repeat(100)}"}`);
  for (let i = 0; i < 16; i++) {
    recorded.send(`{"n":${i}}`);
    recorded.forward(head, head.length, data, 0, data.length);
  }
  recorded.sendBinary(new Uint8Array(10));
  await turn();

  assert.equal(socket.writes.length, 1);
  recorded.destroy();
  await run;
});

Deno.test("of a tick that sends much, the first part leaves before its end", async () => {
  const { socket, recorded, run } = setup();
  await turn();
  socket.writes[0]!.take();
  await turn();

  for (let i = 0; i < 20; i++) recorded.send("x".repeat(500));
  assert.equal(socket.writes.length, 2, "now, not at the end");
  await turn();
  assert.equal(socket.writes.length, 2, "and once");
  socket.writes[1]!.take();
  await turn();

  const [early, rest] = socket.writes.slice(1).map(({ bytes }) => bytes.length / 504);
  assert.deepEqual([early, rest], [9, 11]);
  recorded.destroy();
  await run;
});

Deno.test("when ticks send very much, each leaves in one write again", async () => {
  const { socket, recorded, run } = setup();
  const send = (messages: number) => {
    for (let i = 0; i < messages; i++) recorded.send("x".repeat(500));
  };
  const takeAll = async () => {
    for (let i = 0; i < 3; i++) {
      await turn();
      socket.writes.at(-1)!.take();
    }
    await turn();
    return socket.writes.splice(0).map(({ bytes }) => bytes.length);
  };
  await takeAll();

  send(200);
  assert.deepEqual(await takeAll(), [9 * 504, 191 * 504]);
  send(200);
  assert.deepEqual(await takeAll(), [200 * 504]);
  send(20);
  assert.deepEqual(await takeAll(), [20 * 504]);
  send(20);
  assert.deepEqual(await takeAll(), [9 * 504, 11 * 504]);

  recorded.destroy();
  await run;
});

Deno.test("only one write is pending, and messages sent meanwhile leave in the next", async () => {
  const { socket, recorded, run } = setup();
  recorded.send("a");
  await turn();

  recorded.send("b");
  recorded.send("c");
  await turn();
  assert.equal(socket.writes.length, 1);
  socket.writes[0]!.take();
  await turn();

  assert.equal(socket.writes.length, 2);
  assert.deepEqual(socket.writes[1]!.bytes, Uint8Array.of(0x81, 1, 98, 0x81, 1, 99));
  recorded.destroy();
  await run;
});

Deno.test("a partial write is followed by the rest before anything else", async () => {
  const { socket, recorded, run } = setup();
  recorded.send("abc");
  await turn();
  recorded.send("d");
  await turn();

  socket.writes[0]!.take("upgrade".length + 3);
  await turn();
  socket.writes[1]!.take();
  await turn();

  assert.deepEqual(socket.writes.slice(1).map(({ bytes }) => [...bytes]), [[98, 99], [
    0x81,
    1,
    100,
  ]]);
  recorded.destroy();
  await run;
});

Deno.test("a peer that takes all at once gets 1 MiB, and the rest when the others had their turn", async () => {
  const MIB = 1024 * 1024;
  const ticks = new TickBudget();
  const queued: Work[] = [];
  ticks.queue = (work) => void queued.push(work);
  const { socket, recorded, run } = setup({ ticks });
  await turn();
  for (let i = 0; i < 40; i++) recorded.send("x".repeat(100_000));
  const writeAll = async (): Promise<number> => {
    let bytes = 0;
    for (let write = socket.writes.shift(); write; write = socket.writes.shift()) {
      bytes += write.bytes.length;
      write.take();
      await turn();
    }
    return bytes;
  };

  const turns: number[] = [];
  for (let left = 4_000_000; left > 0; left -= turns.at(-1)!) {
    turns.push(await writeAll());
    assert.ok(turns.at(-1)! > 0, "its turn writes something");
    for (const work of queued.splice(0)) assert.equal(work.work(), false);
  }

  assert.deepEqual(turns.length, 4, `${turns}`);
  for (const bytes of turns.slice(0, -1)) assert.ok(bytes >= MIB && bytes < 1.2 * MIB, `${turns}`);
  recorded.destroy();
  await run;
});

Deno.test("a write that fails ends the connection with 1006 and releases the queue", async () => {
  const { socket, recorded, run, closings } = setup();
  recorded.send("a");
  await turn();
  recorded.send("b");

  socket.writes[0]!.fail();
  await run;

  assert.deepEqual(closings, [{ code: 1006, reason: "connection lost" }]);
  assert.equal(recorded.queuedBytes, 0);
  assert.equal(socket.isDestroyed, true);
});

Deno.test("a cut is not reported while the core still sends", async () => {
  const { recorded, run, closings, cuts } = setup({
    memory: createMemoryBudget(SEND_AHEAD_BYTES * 2),
  });

  for (let i = 0; i < 3; i++) recorded.send("x".repeat(SEND_AHEAD_BYTES));
  assert.equal(cuts.length, 1);
  assert.equal(closings.length, 0);
  await turn();

  assert.deepEqual(closings.map(({ code }) => code), [1008]);
  recorded.destroy();
  await run;
  assert.equal(closings.length, 1);
});

Deno.test("a handler that throws in closed() causes only a warning", async () => {
  const over: RawConnection[] = [];
  const { recorded, run, socket, cuts } = setup(
    { ended: (recorded) => void over.push(recorded) },
    () => {
      throw new Error("not thought of");
    },
  );

  recorded.destroy();
  await run;

  assert.deepEqual(cuts, ["the end of a connection could not be handled: Error: not thought of"]);
  assert.deepEqual(over, [recorded]);
  assert.equal(socket.isDestroyed, true);
});

Deno.test("an exception of the event handler closes the connection, not the engine", async () => {
  await using port = new Port({ listen: listenRaw });
  const { client, recorded } = await port.open();
  const { client: other, recorded: healthy } = await port.open();
  recorded.onText = () => {
    throw new Error("not thought of");
  };
  healthy.onText = (text) => healthy.connection.send(text);

  await client.text("boom");
  assert.equal((await client.nextClose())?.code, 1011);
  client.destroy();
  await other.text("still here");

  assert.equal(await other.nextText(), "still here");
  assert.equal((await recorded.end()).code, 1011);
  assert.deepEqual(port.cuts, ["a message could not be handled: Error: not thought of"]);
});

Deno.test("the pongs for a peer that does not read are bounded", async () => {
  await using port = new Port({ listen: listenRaw });
  const { client, recorded } = await port.open();
  const { connection } = recorded;
  connection.send("x".repeat(SEND_AHEAD_BYTES * 16));
  await client.text("what the system takes it has taken by now");
  while (recorded.texts.length < 1) await turn();
  const before = connection.queuedBytes;

  for (let i = 0; i < 100; i++) await client.frame(OP.ping, new Uint8Array(125));
  await client.text("behind them");
  while (recorded.texts.length < 2) await turn();

  assert.ok(connection.queuedBytes <= before, `${connection.queuedBytes} after ${before}`);
});

Deno.test("a connection that is paused and closed still receives the peer's close frame", async () => {
  await using port = new Port({ listen: listenRaw }, { closeMs: 10 * PATIENCE_MS });
  const { client, recorded } = await port.open();
  recorded.connection.pause();
  await turn();

  recorded.connection.close(1000, "enough");
  assert.equal((await client.nextClose())?.code, 1000);
  await client.close(1000);

  await recorded.end(); // Which is sooner than when the time for it is over.
});

Deno.test("a connection that floods does not hold up timers and other connections", async () => {
  await using port = new Port({ listen: listenRaw });
  const { client: flooding } = await port.open();
  const { client, recorded } = await port.open();
  recorded.onText = (text) => recorded.connection.send(text);
  let isFlooding = true;
  const message = new Uint8Array(100_000);
  const flood = (async () => {
    while (isFlooding) await flooding.frame(OP.text, message);
  })();

  for (let i = 0; i < 20; i++) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await client.text(`${i}`);
    assert.equal(await client.nextText(), `${i}`);
  }

  isFlooding = false;
  await flood;
});

Deno.test("a stream is behind earlier, and its closing waits for a reader that goes on reading", async () => {
  let drains = 0;
  const { socket, recorded, run } = setup({ closeMs: 2_000 }, undefined, () => drains++);
  recorded.asStream();
  const takeAll = async () => {
    do {
      socket.writes.splice(0).forEach((write) => write.take());
      await turn();
    } while (socket.writes.length > 0);
  };
  await turn();
  await takeAll();

  recorded.sendBinary(new Uint8Array(STREAM_AHEAD_BYTES));
  await takeAll();
  assert.equal(drains, 1);

  recorded.sendBinary(new Uint8Array(1_000));
  recorded.close(1000, "stream_complete");
  await turn();
  for (let now = 0; now < 200_000; now += 50_000) {
    recorded.checkPeer(now);
    assert.equal(socket.isDestroyed, false, `${now}`);
    socket.writes.at(-1)!.take(10);
    await turn();
  }
  recorded.checkPeer(200_000);
  recorded.checkPeer(259_999);
  assert.equal(socket.isDestroyed, false);
  recorded.checkPeer(260_000);
  assert.equal(socket.isDestroyed, true, "the reader is gone");
  await run;
});

/** A write as the socket was asked for it; it is over when the test says so. */
interface Write {
  readonly bytes: Uint8Array;
  take(count?: number): void;
  fail(): void;
}

/** A socket whose peer says nothing, and takes what the test lets it take. */
class StillSocket {
  readonly writes: Write[] = [];
  /** The last bytes as they were given, which the connection may use again. */
  pending: Uint8Array | undefined;
  isDestroyed = false;
  readonly #ended = Promise.withResolvers<null>();

  read(): Promise<null> {
    return this.#ended.promise;
  }

  write(bytes: Uint8Array): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    this.pending = bytes;
    this.writes.push({
      bytes: bytes.slice(),
      take: (count = bytes.length) => resolve(count),
      fail: () => reject(new Deno.errors.BrokenPipe()),
    });
    return promise;
  }

  async finish(): Promise<void> {
    await this.#ended.promise;
  }

  destroy(): void {
    this.isDestroyed = true;
    this.#ended.resolve(null);
  }
}

function setup(
  options: Partial<RawConnectionOptions> = {},
  onClosed: () => void = () => {},
  drained: () => void = () => {},
): {
  socket: StillSocket;
  recorded: RawConnection;
  run: Promise<void>;
  closings: { code: number; reason: string }[];
  cuts: string[];
} {
  const socket = new StillSocket();
  const closings: { code: number; reason: string }[] = [];
  const cuts: string[] = [];
  const recorded = new RawConnection(
    socket as unknown as RawSocket,
    "127.0.0.1",
    { accepted: new TextEncoder().encode("upgrade"), isBatching: false },
    {
      pool: new BlockPool(),
      ticks: new TickBudget(),
      maxMessageBytes: 1_000_000,
      maxQueuedBytes: 10_000_000,
      silenceMs: 60_000,
      pingMs: 20_000,
      flushDue: (recorded) => queueMicrotask(() => recorded.flush()),
      cut: (_address, reason) => void cuts.push(reason),
      ended() {},
      ...options,
    },
  );
  const closed = (code: number, reason: string) => {
    closings.push({ code, reason });
    onClosed();
  };
  const run = recorded.run(
    { text() {}, textBytes() {}, binary() {}, drained, suspected() {}, closed },
  );
  return { socket, recorded, run, closings, cuts };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}
