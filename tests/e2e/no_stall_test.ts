/**
 * No message waits for the peer's delayed acknowledgement, whatever its size.
 *
 * A socket that leaves Nagle's algorithm on holds messages of 1 to 64 KiB back for 40 ms. The bound
 * is far above what a round trip takes (below 1 ms, some on a busy machine) and far below that.
 *
 * @module
 */
import assert from "node:assert/strict";
import { listenRaw } from "../../engine/transport/raw_listener.ts";
import { registerWorker } from "../../mod.ts";
import { Port } from "../contracts/connection_setup.ts";
import { findNode, NodeProgram } from "../fakes/programs.ts";
import { encodeFrame, OP, RawWsClient } from "../fakes/raw_ws_client.ts";
import { serveSockets, type SocketServer } from "../fakes/socket_server.ts";

const SIZES = [100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 65_536, 100_000];
const MEDIAN_MS_MAX = 20;
/** A machine that is busy with something else gets another chance; a stall is there every time. */
const ATTEMPTS = 10;
const hasNode = await findNode("half of tests/e2e/no_stall_test.ts");

/** Measures with the worker at hand; the same text runs in Deno and in Node. */
const MEASURE = `
  const rest = new Set(${JSON.stringify(SIZES)});
  const medians = {};
  for (let attempt = 0; attempt < ${ATTEMPTS} && rest.size > 0; attempt++) {
    for (const size of rest) {
      const payload = "x".repeat(size);
      const times = [];
      for (let i = 0; i < 25; i++) {
        const start = performance.now();
        await worker.trigger({ function_id: "test::echo", payload });
        times.push(performance.now() - start);
      }
      medians[size] = times.sort((a, b) => a - b)[12];
      if (medians[size] <= ${MEDIAN_MS_MAX}) rest.delete(size);
    }
  }
  return medians;`;

/** An engine whose every function gives its payload back. */
function serveEcho(): SocketServer {
  return serveSockets({
    message(socket, data) {
      if (typeof data !== "string") return; // Telemetry, which comes to those who take long.
      const { invocation_id, function_id, data: result } = JSON.parse(data);
      if (!invocation_id) return;
      socket.send(JSON.stringify({ type: "invocationresult", invocation_id, function_id, result }));
    },
  });
}

function check(medians: Record<string, number>): void {
  const slow = Object.entries(medians).filter(([, median]) => median > MEDIAN_MS_MAX);

  assert.equal(Object.keys(medians).length, SIZES.length);
  assert.deepEqual(slow, []);
}

Deno.test("messages of 100 B to 100 KB do not stall between Deno and an engine", async () => {
  await using server = serveEcho();
  await using worker = registerWorker(server.url, { workerName: "stall" });
  const AsyncFunction = check.constructor.constructor("return (async () => {}).constructor")();

  check(await new AsyncFunction("worker", MEASURE)(worker));
});

Deno.test({
  name: "messages of 100 B to 100 KB do not stall between Node and an engine",
  ignore: !hasNode,
  async fn(): Promise<void> {
    await using server = serveEcho();
    await using node = new NodeProgram(
      server.url,
      `const worker = registerWorker();
      say(await (async () => { ${MEASURE} })());
      await worker.shutdown();`,
    );

    check(await node.said() as Record<string, number>);
  },
});

Deno.test("messages to the raw listener do not stall, though Deno's own client keeps Nagle on", async () => {
  await using port = echoPort();
  const socket = new WebSocket(`ws://127.0.0.1:${port.listener.port}`);
  await new Promise((resolve) => socket.onopen = resolve);

  const medians = await mediansOf(async (size) => {
    const back = new Promise((resolve) => socket.onmessage = resolve);
    socket.send("x".repeat(size));
    await back;
  });

  check(medians);
  const closed = new Promise((resolve) => socket.onclose = resolve);
  socket.close();
  await closed;
});

Deno.test("a client with Nagle on that writes headers and payloads apart does not stall", async () => {
  await using port = echoPort();
  using client = await RawWsClient.connect({ port: port.listener.port, delays: true });

  const medians = await mediansOf(async (size) => {
    const frame = encodeFrame(OP.text, new Uint8Array(size).fill(120));
    const header = frame.length - size;
    await client.write(frame.subarray(0, header));
    await client.write(frame.subarray(header));
    while ((await client.next())!.opcode !== OP.text);
  });

  check(medians);
});

/** The raw listener, sending back what comes. */
function echoPort(): Port {
  return new Port({ listen: listenRaw }, {}, () => (connection) => ({
    text() {},
    textBytes: (memory, start, end) => connection.forward(memory, 0, memory, start, end),
    binary() {},
    drained() {},
    suspected() {},
    closed() {},
  }));
}

/** Medians of round trips by size, as {@linkcode MEASURE} takes them. */
async function mediansOf(trip: (size: number) => Promise<void>): Promise<Record<string, number>> {
  const rest = new Set(SIZES);
  const medians: Record<string, number> = {};
  for (let attempt = 0; attempt < ATTEMPTS && rest.size > 0; attempt++) {
    for (const size of rest) {
      const times: number[] = [];
      for (let i = 0; i < 25; i++) {
        const start = performance.now();
        await trip(size);
        times.push(performance.now() - start);
      }
      medians[size] = times.sort((a, b) => a - b)[12]!;
      if (medians[size] <= MEDIAN_MS_MAX) rest.delete(size);
    }
  }
  return medians;
}
