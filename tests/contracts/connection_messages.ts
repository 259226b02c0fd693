/**
 * Claims about messages: they arrive whole, in order, as what they were.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { AnswerPage, Connection } from "../../engine/ports/connection.ts";
import { encodeFrame, OP } from "../fakes/raw_ws_client.ts";
import { bytes, type Carrier, type Claim, Port } from "./connection_setup.ts";
import { until } from "../fakes/until.ts";

const MIB = 1024 * 1024;
/** Around every border of the framing, and text beyond ASCII. */
const TEXTS = [
  ...[0, 1, 125, 126, 127, 4_096, 65_535, 65_536, MIB].map((size) => "x".repeat(size)),
  "grüße 東京 😀",
  "\u0000\n\r\u2028",
];

export const MESSAGE_CLAIMS: readonly Claim[] = [
  {
    name: "texts of the peer arrive in order and unchanged",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      for (const text of TEXTS) await client.text(text);

      await until(() => recorded.texts.length === TEXTS.length, "all texts are there");
      assert.deepEqual(recorded.texts, TEXTS);
    },
  },
  {
    name: "texts of the engine arrive in order and unchanged, in one part or two",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded: { connection } } = await port.open();

      for (const text of TEXTS) connection.send(text);
      for (const text of TEXTS) forward(connection, "head ", text);

      for (const text of TEXTS) assert.equal(await client.nextText(), text);
      for (const text of TEXTS) assert.equal(await client.nextText(), "head " + text);
    },
  },
  {
    name: "forward() copies its bytes before it returns, and only those that were given",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded: { connection } } = await port.open();
      const head = bytes("grüLEFTOVER");
      const memory = bytes("BEFOREßeBEHIND");

      connection.forward(head, 4, memory, 6, 9);
      connection.forward(head, 0, memory, 6, 9);
      connection.forward(head, 4, memory, 6, 6);
      head.fill(0);
      memory.fill(0);

      assert.equal(await client.nextText(), "grüße");
      assert.equal(await client.nextText(), "ße");
      assert.equal(await client.nextText(), "grü");
    },
  },
  {
    name: "binary messages pass both ways, and are copied before sendBinary returns",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const message = Uint8Array.from({ length: 70_000 }, (_, i) => i * 7);
      const kept = message.slice();

      recorded.connection.sendBinary(message);
      recorded.connection.sendBinary(new Uint8Array());
      message.fill(0);
      await client.frame(OP.binary, kept);

      assert.deepEqual(await client.next(), { opcode: OP.binary, fin: true, payload: kept });
      assert.equal((await client.next())?.payload.length, 0);
      await until(() => recorded.binaries.length === 1, "the binary message is there");
      assert.deepEqual(recorded.binaries[0], kept);
    },
  },
  {
    name: "bytes directly behind the upgrade are the first message",
    async run(carrier) {
      await using port = new Port(carrier);
      const behind = Uint8Array.of(0x81, 0x85, 0, 0, 0, 0, ...bytes("first"));

      const { client, recorded } = await port.open({ behind });
      await client.text("second");

      await until(() => recorded.texts.length === 2, "both are there");
      assert.deepEqual(recorded.texts, ["first", "second"]);
    },
  },
  {
    name: "a reply can be sent from within a message event",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      recorded.onText = (message) => recorded.connection.send(message + "!");

      await client.text("a");
      await client.text("b");

      assert.equal(await client.nextText(), "a!");
      assert.equal(await client.nextText(), "b!");
    },
  },
  {
    name: "a message in fragments is one message, also with a ping in between",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const ue = bytes("ü");

      await client.frame(OP.text, bytes("gr"), { fin: false });
      await client.frame(OP.more, ue.subarray(0, 1), { fin: false });
      await client.frame(OP.ping, bytes("still there?"));
      await client.frame(OP.more, ue.subarray(1), { fin: false });
      await client.frame(OP.more, new Uint8Array(), { fin: false });
      await client.frame(OP.more, bytes("n"));

      assert.deepEqual(await client.next(), {
        opcode: OP.pong,
        fin: true,
        payload: bytes("still there?"),
      });
      await until(() => recorded.texts.length === 1, "the message is whole");
      assert.deepEqual(recorded.texts, ["grün"]);
    },
  },
  {
    name: "a message of 63 MiB passes both ways in one frame",
    run: (carrier) => passLarge(carrier, 63 * MIB, 1),
  },
  {
    name: "a message of 64 MiB passes in one frame",
    run: (carrier) => passLarge(carrier, 64 * MIB, 1),
  },
  {
    name: "a message of 64 MiB passes both ways in fragments",
    run: (carrier) => passLarge(carrier, 64 * MIB, 64),
  },
  {
    name: "a ping is answered with its own payload",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client } = await port.open();

      for (const payload of [new Uint8Array(), bytes("x".repeat(125))]) {
        await client.frame(OP.ping, payload);

        assert.deepEqual(await client.next(), { opcode: OP.pong, fin: true, payload });
      }
    },
  },
  {
    name: "an unsolicited pong is no message",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();

      await client.frame(OP.pong, bytes("hello"));
      await client.text("after");

      await until(() => recorded.texts.length > 0, "the text is there");
      assert.deepEqual(recorded.texts, ["after"]);
      assert.deepEqual(recorded.binaries, []);
    },
  },
  {
    name:
      "a header without its payload gets an empty pong: Nagle's delay waits for an acknowledgement",
    async run(carrier) {
      await using port = new Port(carrier);
      const { client, recorded } = await port.open();
      const message = encodeFrame(OP.text, bytes("x".repeat(200)));

      await client.write(message.subarray(0, 8));
      assert.deepEqual(await client.next(), {
        opcode: OP.pong,
        fin: true,
        payload: new Uint8Array(),
      });
      await client.write(message.subarray(8));

      await until(() => recorded.texts.length === 1, "the message is whole");
    },
  },
  {
    name: "the gate sees path, query, headers and address, and every connection has its own id",
    async run(carrier) {
      const seen: string[] = [];
      const ids = new Set<string>();
      await using port = new Port(carrier, {}, ({ path, query, headers, address }) => {
        seen.push(`${path} ${query.get("a")} ${headers.get("x-launch")} ${address}`);
        return (connection) => {
          ids.add(connection.id);
          return {
            text() {},
            textBytes() {},
            binary() {},
            drained() {},
            suspected() {},
            closed() {},
          };
        };
      });
      const shape = { path: "/otel?a=b%20c", headers: { "X-Launch": "7" } };

      await port.ask(shape);
      await port.ask(shape);
      await until(() => ids.size === 2, "both connections are open");

      assert.deepEqual(seen, Array(2).fill("/otel b c 7 127.0.0.1"));
    },
  },
];

/** Sends a large message to the engine in so many frames, and back. */
async function passLarge(carrier: Carrier, size: number, frames: number): Promise<void> {
  await using port = new Port(carrier);
  const { client, recorded } = await port.open();
  const part = new Uint8Array(size / frames).fill(120);

  for (let i = 0; i < frames; i++) {
    await client.frame(i === 0 ? OP.text : OP.more, part, { fin: i === frames - 1 });
  }
  await until(() => recorded.texts.length === 1, "the message is whole");
  const message = recorded.texts[0]!;
  recorded.connection.send(message);
  const echoed = await client.next();

  assert.equal(message.length, size);
  assert.equal(echoed?.payload.length, size);
  assert.ok(echoed.payload.every((byte) => byte === 120));
}

/** Sends a text in two parts, amid other bytes. */
function forward(connection: Connection, head: string, rest: string): void {
  const [start, end] = [bytes(`${head}..`), bytes(`.${rest}..`)];
  connection.forward(start, start.length - 2, end, 1, end.length - 2);
}

const answerPage: AnswerPage = ({ path, query, headers }) => {
  if (path === "/metrics") {
    const body = `calls ${query.get("n")} ${headers.get("x-who")} ü\n`;
    return Promise.resolve({ status: 200, contentType: "text/plain; version=0.0.4", body });
  }
  if (path === "/secret") return Promise.resolve({ status: 401, message: "No token" });
  if (path === "/large") {
    const body = "x".repeat(8 * 1024 * 1024);
    return Promise.resolve({ status: 503, contentType: "text/plain", body });
  }
  return undefined;
};

export const PAGE_CLAIMS: readonly Claim[] = [
  {
    name: "a page is answered with its status, its type and its text",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/metrics?n=7", { headers: { "x-who": "me" } });

      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4");
      assert.equal(await answer.text(), "calls 7 me ü\n");
    },
  },
  {
    name: "HEAD gets what GET gets, without the text",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/metrics?n=7", { method: "HEAD" });

      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4");
      assert.equal(await answer.text(), "");
    },
  },
  {
    name: "a page of several megabytes arrives whole",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/large");

      assert.equal(answer.status, 503);
      assert.equal((await answer.text()).length, 8 * 1024 * 1024);
    },
  },
  {
    name: "a refused page gives the reason, and how to get access",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const answer = await port.fetch("/secret");

      assert.equal(answer.status, 401);
      assert.equal(answer.headers.get("www-authenticate"), "Bearer");
      assert.equal(await answer.text(), "No token\n");
    },
  },
  {
    name: "any other request gets 426 and a sentence about WebSockets, by any method",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      for (const [path, method] of [["/", "GET"], ["/metrics", "POST"], ["/no", "DELETE"]]) {
        const answer = await port.fetch(path!, { method: method! });

        assert.equal(answer.status, 426);
        await answer.text();
      }
    },
  },
  {
    name: "an upgrade at the path of a page opens a connection",
    async run(carrier) {
      await using port = new Port(carrier, { answerPage });

      const { client, recorded } = await port.open({ path: "/metrics" });
      await client.text("hello");
      await client.close(1000);
      await recorded.end();

      assert.deepEqual(recorded.texts, ["hello"]);
    },
  },
];
