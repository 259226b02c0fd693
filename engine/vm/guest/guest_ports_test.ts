import assert from "node:assert/strict";
import { GuestPorts } from "./guest_ports.ts";

const folderOf = (ports: GuestPorts): string =>
  ports.ports[0]!.socket.slice(0, ports.ports[0]!.socket.lastIndexOf("/"));

Deno.test("GuestPorts has a connection for each name, whoever connects first", async () => {
  await using ports = await GuestPorts.open(["out0", "err0", "control"]);
  const accepting = ports.accept();
  const clients = await Promise.all(
    ports.ports.toReversed().map(async ({ name, socket: path }) => {
      const client = await Deno.connect({ transport: "unix", path });
      await client.write(new TextEncoder().encode(name));
      return client;
    }),
  );

  const connections = await accepting;

  assert.deepEqual([...connections.keys()].toSorted(), ["control", "err0", "out0"]);
  for (const [name, connection] of connections) {
    const buffer = new Uint8Array(16);
    const count = await connection.read(buffer);
    assert.equal(new TextDecoder().decode(buffer.subarray(0, count!)), name);
  }
  for (const end of [...clients, ...connections.values()]) end.close();
});

Deno.test("the sockets of GuestPorts have short paths that only this user may enter", async () => {
  await using ports = await GuestPorts.open(["control"]);

  assert.ok(ports.ports[0]!.socket.length < 60, ports.ports[0]!.socket);
  assert.equal((await Deno.stat(folderOf(ports))).mode! & 0o777, 0o700);
});

Deno.test("GuestPorts that is closed stops waiting and leaves nothing", async () => {
  const ports = await GuestPorts.open(["one", "two"]);
  const accepting = assert.rejects(ports.accept());
  using _client = await Deno.connect({ transport: "unix", path: ports.ports[0]!.socket });

  await ports[Symbol.asyncDispose]();

  await accepting;
  await assert.rejects(Deno.stat(folderOf(ports)));
});
