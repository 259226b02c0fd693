/**
 * Filling memory by jobs, items, subscriptions, channels and WebSockets.
 *
 * @module
 */
import { type Filling, MB, sendOften, type Setting, STUCK_MS } from "../filling.ts";
import { honestJson } from "../heavy.ts";
import { Batch, FRESH, Peer } from "../peer.ts";
import { pause, within } from "../waiting.ts";

const QUEUE = ["  - name: engine-queue"];
const STREAM = ["  - name: engine-stream", "    config: { port: 0 }"];
const PUBSUB = ["  - name: engine-pubsub"];

/** Text of a list, as JSON has it, of about so many bytes. */
function text(bytes: number): Uint8Array {
  return honestJson(bytes);
}

/** Several workers that each register many triggers. */
async function registerTriggers(
  { campaign, open }: Setting,
  type: string,
  config: string,
): Promise<string> {
  const count = campaign.choose(200, 4_000);
  const sent = await Promise.all(Array.from({ length: 16 }, async (_, worker) => {
    const peer = await open();
    const messages = Array.from({ length: count / 100 }, () => {
      return `{"type":"registertrigger","id":"m${FRESH}","trigger_type":"${type}",` +
        `"function_id":"memory::f","config":${config},"metadata":{"n":"${FRESH}"}}`;
    });
    const batch = new Batch(messages, worker * 1e9);
    for (let i = 0; i < 100 && !peer.isOver; i++) await peer.write(batch.renew());
    await peer.settled(STUCK_MS);
    return 100 * messages.length;
  }));
  return `${sent.reduce((sum, each) => sum + each, 0)} triggers of type ${type}`;
}

/** See the top of this file. */
export const BUILTIN_FILLINGS: readonly Filling[] = [
  {
    name: "jobs of 1 MB",
    workers: QUEUE,
    async act({ campaign, open }) {
      const head = (i: number) =>
        `{"type":"invokefunction","invocation_id":"j${i}","function_id":"memory::none",` +
        `"action":{"type":"enqueue","queue":"default"},"data":`;
      const peer = await open();
      const sent = await sendOften(peer, campaign.choose(20, 400), head, text(MB));
      const { size, overloaded } = peer.sample;
      return `${sent} jobs of 1 MB, ${overloaded} of ${size} answers overloaded`;
    },
  },
  {
    name: "stream items of 1 MB, lists",
    workers: STREAM,
    async act({ campaign, subject, open }) {
      using writer = await Peer.connect(subject.engine.port);
      for (let i = 0; i < campaign.choose(5, 40); i++) {
        const item = { stream_name: "m", group_id: "g", item_id: `i${i}`, data: "t".repeat(MB) };
        await writer.call("stream::set", item, STUCK_MS);
      }
      const readers = campaign.choose(4, 40);
      const call = '{"type":"invokefunction","invocation_id":"l","function_id":"stream::list",' +
        '"data":{"stream_name":"m","group_id":"g"}}';
      for (let i = 0; i < readers; i++) await (await open(i % 2 === 0)).send(call);
      await pause(campaign.choose(1_000, 8_000));
      return `${readers} lists, half of them not read`;
    },
  },
  {
    name: "subscriptions",
    workers: PUBSUB,
    act: (setting) => registerTriggers(setting, "subscribe", `{"topic":"${"t".repeat(900)}.*"}`),
  },
  {
    name: "messages to subscribers that do not read",
    workers: PUBSUB,
    async act({ campaign, open }) {
      const subscribers = campaign.choose(4, 40);
      for (let i = 0; i < subscribers; i++) {
        const frozen = await open(true);
        await frozen.send({ type: "registerfunction", id: `memory::s${i}` });
        await frozen.send(
          `{"type":"registertrigger","id":"s${i}","trigger_type":"subscribe",` +
            `"function_id":"memory::s${i}","config":{"topic":"memory"}}`,
        );
      }
      await pause(500);
      const publisher = await open();
      const head = (i: number) =>
        `{"type":"invokefunction","invocation_id":"p${i}","function_id":"publish","data":` +
        `{"topic":"memory","data":"${"m".repeat(MB)}"}`;
      const count = campaign.choose(20, 200);
      for (let i = 0; i < count && !publisher.isOver; i++) await publisher.send(`${head(i)}}`);
      await publisher.settled(STUCK_MS);
      return `${count} messages of 1 MB to ${subscribers} subscribers`;
    },
  },
  {
    name: "channels",
    workers: [],
    async act({ campaign, open }) {
      const call = '{"type":"invokefunction","invocation_id":"c' + FRESH +
        '","function_id":"engine::channels::create","data":{"buffer_size":1000000}}';
      const count = campaign.choose(1_000, 20_000);
      const peers = await Promise.all(Array.from({ length: 16 }, () => open()));
      await Promise.all(peers.map(async (peer, i) => {
        const batch = new Batch(Array.from({ length: 100 }, () => call), i * 1e9);
        for (let sent = 0; sent < count && !peer.isOver; sent += 100) {
          await peer.write(batch.renew());
        }
        await peer.settled(STUCK_MS);
      }));
      return `16 × ${count} channels`;
    },
  },
  {
    name: "WebSockets that do not read",
    workers: [],
    async act({ campaign, subject: { engine }, open, held }) {
      const owner = await open();
      await owner.send({ type: "registerfunction", id: "memory::socket" });
      await owner.send(
        '{"type":"registertrigger","id":"socket","trigger_type":"websocket",' +
          '"function_id":"memory::socket","config":{"api_path":"/memory"}}',
      );
      await owner.settled(STUCK_MS);
      const count = campaign.choose(20, 400);
      const sockets = await Promise.all(Array.from({ length: count }, async () => {
        const options = { path: "/memory", isFrozen: true };
        return held.use(await Peer.connect(engine.httpPort, options));
      }));
      const sends = campaign.choose(10, 100);
      const sender = await open();
      for (let i = 0; i < sends; i++) {
        void sender.send(
          `{"type":"invokefunction","invocation_id":"w${i}","function_id":"websocket::send",` +
            `"data":{"api_path":"/memory","data":"${"w".repeat(MB / 2)}"}}`,
        );
      }
      await sender.settled(STUCK_MS);
      // Each sends messages that its function does not answer.
      const message = new Batch(Array.from({ length: 10 }, () => `"${"x".repeat(MB / 20)}"`));
      await within(
        Promise.all(sockets.map((socket) => socket.write(message.renew()))),
        campaign.choose(1_000, 5_000),
      );
      return `${sends} messages of 0.5 MB to ${count} WebSockets, 0.5 MB of each`;
    },
  },
];
