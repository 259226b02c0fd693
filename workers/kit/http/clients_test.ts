/**
 * Clients by address.
 *
 * @module
 */
import assert from "node:assert/strict";
import { clientOf, Clients } from "./clients.ts";

for (
  const [address, client] of [
    ["127.0.0.1", "127.0.0.1"],
    ["::ffff:10.0.0.7", "10.0.0.7"],
    ["::1", "0:0:0:0"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
    ["2001:db8:1:2::9", "2001:db8:1:2"],
    ["2001:db8::9", "2001:db8:0:0"],
    ["2001:0db8:0:0::1", "2001:db8:0:0"],
    ["fe80::1%eth0", "fe80:0:0:0"],
  ] as const
) {
  Deno.test(`${address} belongs to the client ${client}`, () => {
    assert.equal(clientOf(address), client);
  });
}

Deno.test("Clients counts the sockets of each client and forgets one that has none", () => {
  const clients = new Clients();

  const a = clients.enter("10.0.0.1");
  const b = clients.enter("2001:db8:1:2::1");
  assert.equal(clients.enter("2001:db8:1:2::2"), b);
  assert.equal(clients.enter("10.0.0.1"), a);

  assert.deepEqual([a.sockets, b.sockets, clients.size], [2, 2, 2]);
  for (const client of [a, a, b, b]) clients.leave(client);
  assert.equal(clients.size, 0);
});
