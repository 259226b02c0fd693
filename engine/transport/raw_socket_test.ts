import assert from "node:assert/strict";
import { RawSocket } from "./raw_socket.ts";

Deno.test("finish() lets the peer read everything, and waits for the peer's end", async () => {
  const { socket, peer } = await connect();
  let isFinished = false;
  await peer.write(new Uint8Array(100_000)); // Unread: closing at once would take back "bye".

  await socket.write(new TextEncoder().encode("bye"));
  const finished = socket.finish().then(() => isFinished = true);
  const heard = new Uint8Array(10);

  assert.equal(await peer.read(heard), 3);
  assert.equal(await peer.read(heard), null);
  assert.equal(isFinished, false);
  peer.close();
  await finished;
});

Deno.test("destroy() ends what is under way, and may come twice", async () => {
  const { socket, peer } = await connect();
  const reading = socket.read(new Uint8Array(10)).catch(() => "broken off");
  const finishing = socket.finish();

  socket.destroy();
  socket.destroy();
  await finishing;

  assert.ok([null, "broken off"].includes(await reading as null));
  peer.close();
});

Deno.test("what was read and given back is read first, in parts that fit, and then the rest", async () => {
  const { socket, peer } = await connect();
  await peer.write(Uint8Array.of(4));

  socket.unread(Uint8Array.of(1, 2, 3));
  const read = async () => {
    const into = new Uint8Array(2);
    return [...into.subarray(0, await socket.read(into) ?? 0)];
  };

  assert.deepEqual([await read(), await read(), await read()], [[1, 2], [3], [4]]);
  socket.destroy();
  peer.close();
});

async function connect(): Promise<{ socket: RawSocket; peer: Deno.TcpConn }> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const peer = await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port });
  return { socket: new RawSocket(await listener.accept()), peer };
}
