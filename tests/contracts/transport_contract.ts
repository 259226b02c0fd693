/**
 * The contract of every {@linkcode Dial} of the SDK.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Dial, DialOptions, Transport } from "../../sdk/typescript/wire/transport.ts";
import { serveSockets } from "../fakes/socket_server.ts";

/** Claims that an implementation cannot meet, with the reason. */
export interface Exceptions {
  /** It cannot send headers, so a bearer token is sent as the query parameter `token`. */
  readonly tokenInQuery?: boolean;
  /** The platform does not report why a connection failed. */
  readonly silentRefusals?: boolean;
}

/** The events of one transport. */
interface Report {
  readonly texts: string[];
  readonly binaries: Uint8Array[];
  /** Number of `opened` events. */
  openings: number;
  /** Each `closed` event, as `code reason`. */
  readonly ends: string[];
}

/** A transport and its events. */
class Recorded implements AsyncDisposable {
  readonly report: Report = { texts: [], binaries: [], openings: 0, ends: [] };
  readonly opened: Promise<void>;
  readonly closed: Promise<void>;
  readonly transport: Transport;
  #changed: () => void = () => {};

  constructor(dial: Dial, url: string, options: DialOptions = {}) {
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    this.opened = opened.promise;
    this.closed = closed.promise;
    this.transport = dial(url, {
      opened: () => {
        this.report.openings++;
        opened.resolve();
      },
      text: (message) => {
        this.report.texts.push(message);
        this.#changed();
      },
      binary: (bytes) => {
        this.report.binaries.push(bytes);
        this.#changed();
      },
      closed: (code, reason) => {
        this.report.ends.push(`${code} ${reason}`);
        closed.resolve();
      },
    }, options);
  }

  /** Waits until a condition on the events holds. */
  async until(holds: (report: Report) => boolean): Promise<void> {
    while (!holds(this.report)) await new Promise<void>((resolve) => this.#changed = resolve);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.transport.close();
    await this.closed;
  }
}

/** Registers the tests of an implementation. */
export function testTransport(name: string, dial: Dial, exceptions: Exceptions = {}): void {
  testMessages(name, dial);
  testEnds(name, dial, exceptions);
  testHeaders(name, dial, exceptions);
}

function testMessages(name: string, dial: Dial): void {
  Deno.test(`${name}: text arrives whole and in order, both ways`, async () => {
    await using server = serveSockets();
    await using recorded = new Recorded(dial, server.url);
    const sent = Array.from({ length: 200 }, (_, i) => `${i} ä€😀 ${"x".repeat(i * 10)}`);
    await recorded.opened;

    for (const text of sent) recorded.transport.send(text);
    await recorded.until(({ texts }) => texts.length === sent.length);

    assert.deepEqual(recorded.report.texts, sent);
    assert.equal(recorded.report.openings, 1);
  });

  Deno.test(`${name}: bytes arrive as bytes`, async () => {
    await using server = serveSockets();
    await using recorded = new Recorded(dial, server.url);
    await recorded.opened;

    recorded.transport.send(new Uint8Array([0, 255, 128]));
    await recorded.until(({ binaries }) => binaries.length === 1);

    assert.deepEqual([...recorded.report.binaries[0]!], [0, 255, 128]);
  });

  Deno.test(`${name}: a message of 48 MiB arrives`, async () => {
    const big = "x".repeat(48 * 1024 * 1024);
    await using server = serveSockets({ message: (socket) => socket.send(big) });
    await using recorded = new Recorded(dial, server.url);
    await recorded.opened;

    recorded.transport.send("go");
    await recorded.until(({ texts }) => texts.length === 1);

    assert.equal(recorded.report.texts[0]!.length, big.length);
  });

  Deno.test(`${name}: messages right after the upgrade are not lost`, async () => {
    await using server = serveSockets({
      opened: (socket) => ["one", "two"].forEach((text) => socket.send(text)),
    });
    await using recorded = new Recorded(dial, server.url);

    await recorded.until(({ texts }) => texts.length === 2);

    assert.deepEqual(recorded.report.texts, ["one", "two"]);
  });
}

function testEnds(name: string, dial: Dial, exceptions: Exceptions): void {
  Deno.test(`${name}: close() closes the transport once, also when called twice`, async () => {
    await using server = serveSockets();
    await using recorded = new Recorded(dial, server.url);
    await recorded.opened;

    recorded.transport.close(1000, "");
    recorded.transport.close(1000, "");
    recorded.transport.send("late");
    await recorded.closed;

    assert.deepEqual(recorded.report.ends.map((end) => end.slice(0, 4)), ["1000"]);
    assert.deepEqual(recorded.report.texts, []);
    assert.deepEqual(server.closeCodes, [1000]);
  });

  Deno.test(`${name}: a close of the peer is reported with code and reason`, async () => {
    await using server = serveSockets({ opened: (socket) => socket.close(4001, "enough") });
    await using recorded = new Recorded(dial, server.url);

    await recorded.closed;

    assert.deepEqual(recorded.report.ends, ["4001 enough"]);
  });

  Deno.test(`${name}: a rejected upgrade closes once and does not open`, async () => {
    await using server = serveSockets({ refuse: 401 });
    await using recorded = new Recorded(dial, server.url);

    await recorded.closed;

    const { ends, openings } = recorded.report;
    assert.equal(openings, 0);
    if (exceptions.silentRefusals) assert.deepEqual(ends.map((end) => end.slice(0, 4)), ["1006"]);
    else assert.deepEqual(ends, ["1006 HTTP 401"]);
  });

  Deno.test(`${name}: a port without a listener closes once and does not open`, async () => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr as Deno.NetAddr;
    listener.close();
    await using recorded = new Recorded(dial, `ws://127.0.0.1:${port}`);

    await recorded.closed;

    const { ends, openings } = recorded.report;
    assert.deepEqual([openings, ends.length], [0, 1]);
    assert.match(ends[0]!, exceptions.silentRefusals ? /^1006/ : /^1006 .*ECONNREFUSED/);
  });

  Deno.test(`${name}: send() before the transport is open sends nothing and does not throw`, async () => {
    await using server = serveSockets();
    await using recorded = new Recorded(dial, server.url);
    const timer = setInterval(() => {
      if (recorded.report.openings === 0) recorded.transport.send("too early");
    }, 0);
    await recorded.opened;
    clearInterval(timer);

    recorded.transport.send("in time");
    await recorded.until(({ texts }) => texts.length > 0);

    assert.deepEqual(recorded.report.texts, ["in time"]);
  });

  Deno.test(`${name}: a transport that is closed before it is open does not open`, async () => {
    await using server = serveSockets();
    await using recorded = new Recorded(dial, server.url);

    recorded.transport.send("too early");
    recorded.transport.close();
    await recorded.closed;

    assert.deepEqual([recorded.report.openings, recorded.report.ends.length], [0, 1]);
  });
}

function testHeaders(name: string, dial: Dial, { tokenInQuery }: Exceptions): void {
  Deno.test(`${name}: the token is sent and the query is kept`, async () => {
    await using server = serveSockets();
    const headers = { "Authorization": "Bearer s3cret", "x-engine-launch-id": "l-1" };
    await using recorded = new Recorded(dial, `${server.url}/?room=1`, { headers });

    await recorded.opened;

    const [request] = server.requests;
    const { searchParams } = request!.url;
    assert.equal(searchParams.get("room"), "1");
    if (tokenInQuery) {
      assert.equal(searchParams.get("token"), "s3cret");
    } else {
      assert.equal(request!.headers.get("authorization"), "Bearer s3cret");
      assert.equal(request!.headers.get("x-engine-launch-id"), "l-1");
      assert.equal(searchParams.has("token"), false);
    }
  });
}
