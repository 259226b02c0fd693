/**
 * The commands' own line, against servers of this process.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { TransportEvents } from "../mod.ts";
import { shortDial } from "./short_dial.ts";

/** What a line told, in order, until it was over. */
interface Told {
  readonly events: TransportEvents;
  readonly texts: string[];
  readonly opened: Promise<void>;
  readonly closed: Promise<[number, string]>;
  /** Resolves when so many texts have come. */
  come(count: number): Promise<void>;
}

function listen(): Told {
  const texts: string[] = [];
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<[number, string]>();
  let look = (): void => {};
  const events: TransportEvents = {
    opened: () => opened.resolve(),
    text: (text) => (texts.push(text), look()),
    binary: (bytes) => (texts.push(`bytes ${bytes.length}`), look()),
    closed: (code, reason) => closed.resolve([code, reason]),
  };
  const come = (count: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    look = () => texts.length >= count && resolve();
    look();
    return promise;
  };
  return { events, texts, opened: opened.promise, closed: closed.promise, come };
}

/** A server that sends every frame back with its number; selects `protocol` if it is offered. */
function serve(protocol?: string) {
  const headers: (string | null)[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, (request) => {
    headers.push(request.headers.get("x-key"));
    const chosen = protocol === undefined ? {} : { protocol };
    const { socket, response } = Deno.upgradeWebSocket(request, chosen);
    let frames = 0;
    socket.onmessage = ({ data }) => {
      if (typeof data !== "string") return socket.send(data);
      if (data === "bye") return socket.close(4001, "gone");
      frames++;
      socket.send(data.split("\n").map((line) => `${frames}:${line}`).join("\n"));
    };
    return response;
  });
  const url = `ws://127.0.0.1:${server.addr.port}`;
  return { url, headers, [Symbol.asyncDispose]: () => server.shutdown() };
}

Deno.test("shortDial sends headers and carries messages both ways", async () => {
  await using server = serve();
  const told = listen();

  const line = shortDial(server.url, told.events, { headers: { "x-key": "one" } });
  await told.opened;
  line.send("a");
  line.send("b");
  line.send(new Uint8Array(3));
  await told.come(3);
  line.close();

  assert.equal(server.headers[0], "one");
  assert.deepEqual(told.texts, ["1:a", "2:b", "bytes 3"]);
  assert.equal((await told.closed)[0], 1000);
});

Deno.test("shortDial puts what a turn says into one frame where the server agrees", async () => {
  await using server = serve("engine.batch.v1");
  const told = listen();

  const line = shortDial(server.url, told.events, {});
  await told.opened;
  line.send("a");
  line.send("b");
  await told.come(2);
  line.send("c");
  line.close(); // Says what is left first.
  await told.closed;

  assert.deepEqual(told.texts.slice(0, 2), ["1:a", "1:b"]);
});

Deno.test("shortDial sends alone what is long, in its place", async () => {
  await using server = serve("engine.batch.v1");
  const told = listen();
  const long = "x".repeat(70_000);

  const line = shortDial(server.url, told.events, {});
  await told.opened;
  for (const text of ["a", "b", long, "c", "d"]) line.send(text);
  await told.come(5);
  line.close();
  await told.closed;

  assert.deepEqual(told.texts, ["1:a", "1:b", `2:${long}`, "3:c", "3:d"]);
});

Deno.test("shortDial tells why a line ended", async () => {
  await using server = serve();
  const told = listen();

  const line = shortDial(server.url, told.events, {});
  await told.opened;
  line.send("bye");

  assert.deepEqual(await told.closed, [4001, "gone"]);
});

Deno.test("shortDial tells why a line did not open", async () => {
  const refusing = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response("who?", { status: 401 }),
  );
  const [refused, unheard] = [listen(), listen()];

  shortDial(`ws://127.0.0.1:${refusing.addr.port}`, refused.events, {});
  const [code, reason] = await refused.closed;
  await refusing.shutdown();
  shortDial(`ws://127.0.0.1:${refusing.addr.port}`, unheard.events, {});

  assert.equal(code, 1006);
  assert.match(reason, /401/);
  assert.match((await unheard.closed)[1], /connect/);
});
