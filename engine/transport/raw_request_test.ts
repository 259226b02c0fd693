import assert from "node:assert/strict";
import { UPGRADE_HEAD_BYTES_MAX, UPGRADE_HEAD_MS } from "../../sdk/typescript/wire/limits.ts";
import { RawRequest } from "./raw_request.ts";
import { RawSocket } from "./raw_socket.ts";

Deno.test("a head in pieces is one, and what came with its end is kept", async () => {
  await using pair = await Pair.open();
  const asked = new RawRequest(pair.socket).read();

  for (const part of ["GET / HT", "TP/1.1\r\nhost: a\r\n", "\r", "\nbehind"]) {
    await pair.write(part);
  }

  const { head, rest } = (await asked)!;
  assert.equal(head.headers.get("host"), "a");
  assert.ok("behind".startsWith(new TextDecoder().decode(rest)));
});

Deno.test("a head that is too long is answered before it ends", async () => {
  await using pair = await Pair.open();
  const asked = new RawRequest(pair.socket).read();

  await pair.write("GET / HTTP/1.1\r\nx: " + "a".repeat(UPGRADE_HEAD_BYTES_MAX));

  assert.match(await pair.answer(), /^HTTP\/1\.1 431 /);
  pair.peer.close();
  assert.equal(await asked, undefined);
});

Deno.test("a head that does not come in time is answered with 408", async () => {
  await using pair = await Pair.open();
  const request = new RawRequest(pair.socket);
  const asked = request.read();
  await pair.write("GET / HT");

  request.look(performance.now());
  request.look(performance.now() + UPGRADE_HEAD_MS + 1);

  assert.match(await pair.answer(), /^HTTP\/1\.1 408 .*\r\n\r\nThe head/s);
  pair.peer.close();
  assert.equal(await asked, undefined);
});

Deno.test("a peer that leaves or is sent away in the middle of its head asks nothing", async () => {
  await using left = await Pair.open();
  await using sent = await Pair.open();
  const [first, second] = [new RawRequest(left.socket), new RawRequest(sent.socket)];
  const asked = [first.read(), second.read()];

  left.peer.close();
  second.close();

  assert.deepEqual(await Promise.all(asked), [undefined, undefined]);
});

/** A connection and its other end. */
class Pair implements AsyncDisposable {
  readonly socket: RawSocket;
  readonly peer: Deno.TcpConn;

  private constructor(socket: RawSocket, peer: Deno.TcpConn) {
    this.socket = socket;
    this.peer = peer;
  }

  static async open(): Promise<Pair> {
    using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const peer = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
    peer.setNoDelay();
    return new Pair(new RawSocket(await listener.accept()), peer);
  }

  async write(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    for (let at = 0; at < bytes.length;) at += await this.peer.write(bytes.subarray(at));
  }

  /** What came, up to the end of the other half. */
  async answer(): Promise<string> {
    const bytes = new Uint8Array(10_000);
    let end = 0;
    for (let count = await this.peer.read(bytes); count !== null;) {
      end += count;
      count = await this.peer.read(bytes.subarray(end));
    }
    return new TextDecoder().decode(bytes.subarray(0, end));
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    try {
      this.peer.close();
    } catch {
      // The test closed it.
    }
    return Promise.resolve();
  }
}
