import assert from "node:assert/strict";
import { findPortHolder, parseListeners } from "./port_holder.ts";

Deno.test("A port at which nobody listens is free", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();

  assert.deepEqual(await findPortHolder(port), {
    isTaken: false,
    program: null,
    pid: null,
    isConsole: false,
  });
});

Deno.test("A port is held by the program that listens", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("hello"),
  );

  const holder = await findPortHolder(server.addr.port);

  assert.equal(holder.isTaken, true);
  assert.equal(holder.isConsole, false);
  if (Deno.build.os === "linux") assert.equal(holder.pid, Deno.pid);
});

Deno.test("The engine's console is known by its page", async () => {
  const page = '<meta name="engine-console-token" content="x">';
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(page),
  );

  assert.equal((await findPortHolder(server.addr.port)).isConsole, true);
});

Deno.test("parseListeners() finds the sockets that listen on the port, and no others", () => {
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    "   0: 0100007F:0C27 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1",
    "   1: 0100007F:0C27 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1",
    "   2: 00000000:0C28 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1",
    "   3: broken",
    "",
  ].join("\n");

  assert.deepEqual(parseListeners(table, 3111), ["111"]);
  assert.deepEqual(parseListeners(table, 3112), ["333"]);
  assert.deepEqual(parseListeners("", 3111), []);
});
