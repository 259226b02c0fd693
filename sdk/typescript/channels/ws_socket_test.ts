import assert from "node:assert/strict";
import { serveSilence, SocketEngine } from "../../../tests/fakes/socket_server.ts";
import { until } from "../../../tests/fakes/until.ts";
import { openDenoSocket } from "./deno_socket.ts";
import { channelUrl, type SocketTimes } from "./socket.ts";
import { openWsSocket } from "./ws_socket.ts";

const TIMES: SocketTimes = { openMs: 10_000, pingMs: 20_000, silenceMs: 60_000 };

const OPENERS = { openWsSocket, openDenoSocket };
type Open = typeof openWsSocket;

/** The code and reason with which a socket ends; `paused`: this side does not read. */
function endOf(
  open: Open,
  url: string,
  times: Partial<SocketTimes>,
  paused = false,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = open(url, {
      opened: () => paused && socket.pause(),
      message() {},
      closed: (code, reason) => resolve(`${code} ${reason}`),
    }, { ...TIMES, ...times });
    if (paused) setTimeout(() => socket.terminate(), 200);
  });
}

for (const [name, open] of Object.entries(OPENERS)) {
  Deno.test(`${name}(): an upgrade without an answer ends`, async () => {
    await using server = serveSilence("before");

    assert.equal(await endOf(open, server.url, { openMs: 300 }), "1006 no answer within 300 ms");
  });

  Deno.test(`${name}(): a connection on which nothing arrives is lost, unless it is not read`, async () => {
    await using server = serveSilence("after");
    const times = { pingMs: 10, silenceMs: 50 };

    assert.equal(await endOf(open, server.url, times), "1006 nothing received for 50 ms");
    assert.equal(await endOf(open, server.url, times, true), "1006 ended");
  });

  Deno.test({
    name: `${name}(): the reason of a refusal is its status`,
    sanitizeOps: false, // The socket's last read may end after its refusal was reported.
    fn: async () => {
      await using engine = new SocketEngine();
      const { reader } = engine.channels.create("w", 64);
      const wrong = channelUrl(engine.url, { ...reader, access_key: "wrong" });

      assert.equal(await endOf(open, wrong, {}), "1006 HTTP 404");
    },
  });

  Deno.test(`${name}(): an end that does not read holds the writer back`, async () => {
    await using engine = new SocketEngine();
    const refs = engine.channels.create("w", 64);
    let [opened, received, sent] = [0, 0, 0];
    const events = { opened: () => opened++, message: () => received++, closed() {} };
    const writer = open(channelUrl(engine.url, refs.writer), events);
    const reader = open(channelUrl(engine.url, refs.reader), events);
    await until(() => opened === 2);
    reader.pause();

    const part = new Uint8Array(64 * 1024);
    const total = 4_096;
    const writing = (async () => {
      for (; sent < total; sent++) await writer.send(part);
    })();
    let last = -1;
    await until(async () => {
      const before = last;
      last = sent;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return before === sent;
    });

    assert.ok(sent < total, `${sent} of ${total} parts were taken`);
    reader.resume();
    await writing;
    writer.finish(1000, "stream_complete");
    await until(() => received >= total);
    reader.terminate();
    await until(() => engine.channels.stats.open === 0);
  });
}
