import assert from "node:assert/strict";
import { serveSilence, serveSockets } from "../../tests/fakes/socket_server.ts";
import { testTransport } from "../../tests/transport_contract.ts";
import { makeWsDial, wsDial, type WsTimes } from "./ws_transport.ts";

testTransport("wsDial", wsDial);

const TIMES: WsTimes = { openMs: 10_000, pingMs: 20_000, silenceMs: 60_000, closeMs: 1_000 };

/** How a line ends that nobody closes. */
function endOf(url: string, times: Partial<WsTimes>): Promise<string> {
  return new Promise((resolve) => {
    makeWsDial({ ...TIMES, ...times })(url, {
      opened() {},
      text() {},
      binary() {},
      closed: (code, reason) => resolve(`${code} ${reason}`),
    }, {});
  });
}

Deno.test("wsDial gives up an upgrade that is not answered", async () => {
  await using server = serveSilence("before");

  assert.equal(await endOf(server.url, { openMs: 20 }), "1006 no answer within 20 ms");
});

Deno.test("wsDial ends a line from which nothing comes any more", async () => {
  await using server = serveSilence("after");

  const end = await endOf(server.url, { pingMs: 10, silenceMs: 50 });

  assert.equal(end, "1006 nothing heard for 50 ms");
});

Deno.test("wsDial does not wait long for a peer that does not answer a close", async () => {
  await using server = serveSilence("after");

  const end = await new Promise<number>((resolve) => {
    const line = makeWsDial({ ...TIMES, closeMs: 20 })(server.url, {
      opened: () => line.close(),
      text() {},
      binary() {},
      closed: (code) => resolve(code),
    }, {});
  });

  assert.equal(end, 1006);
});

Deno.test("wsDial keeps a quiet line whose peer answers pings", async () => {
  await using server = serveSockets();
  const ended: string[] = [];
  let isOpen = false;
  const line = makeWsDial({ ...TIMES, pingMs: 10, silenceMs: 200 })(server.url, {
    opened: () => isOpen = true,
    text() {},
    binary() {},
    closed: (code, reason) => ended.push(`${code} ${reason}`),
  }, {});

  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(isOpen);
  assert.deepEqual(ended, []);

  line.close();
  while (ended.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

Deno.test("wsDial reports an address it cannot use, and never throws", async () => {
  assert.match(await endOf("ws://127.0.0.1:1/ space", {}), /^1006 ./);
  assert.match(await endOf("no address", {}), /^1006 ./);
});
