/**
 * Bodies as streams: `engine-http` on a real port, a function of a real router, and the ends of
 * its channels as recorded connections.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { LocalEngine } from "../../tests/fakes/local_engine.ts";
import { until } from "../../tests/fakes/until.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { ConnectionEvents } from "../../engine/ports/connection.ts";
import type { CallContext } from "../../sdk/typescript/options.ts";
import type { ChannelRef } from "../../sdk/typescript/wire/channels.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";
import { RESPONSE_AHEAD_BYTES } from "./exchange.ts";
import { http } from "./mod.ts";

/** One end, claimed by the function. */
interface End {
  readonly connection: FakeConnection;
  readonly events: ConnectionEvents;
}

/** A payload with its streams. */
interface Streams {
  readonly payload: JsonObject;
  readonly context: CallContext;
  /** Connects to the response. */
  write(): Promise<End>;
  /** Connects to the body. */
  read(): Promise<End>;
}

/** `engine-http` with the route `/f`, whose function a test plays. */
async function setup(run: (streams: Streams) => unknown, config: JsonObject = {}) {
  const local = new LocalEngine({ clock: systemClock });
  await local.start(http, { port: 0, ...config });
  const worker = await local.connect("shop");
  const claim = async (ref: unknown): Promise<End> => {
    const { channel_id, access_key, direction } = ref as ChannelRef;
    const query = new URLSearchParams({ key: access_key, dir: direction });
    const path = `/ws/channels/${channel_id}`;
    const accept = local.channels.claim({
      path,
      query,
      headers: new Headers(),
      address: "127.0.0.1",
    });
    assert.ok(typeof accept === "function", JSON.stringify(accept));
    const connection = new FakeConnection(direction);
    const events = accept(connection);
    await Promise.resolve();
    return { connection, events };
  };
  worker.registerFunction("f", (payload: JsonObject, _metadata, context) => {
    const write = () => claim(payload.response);
    const read = () => claim(payload.request_body);
    return run({ payload, context, write, read });
  });
  for (const http_method of ["GET", "POST"]) {
    const config = { api_path: "/f", http_method };
    worker.registerTrigger({ type: "http", function_id: "f", config });
  }
  await local.settle();
  const url = `${local.endpoints[0]!.url}/f`;
  return { local, url, [Symbol.asyncDispose]: () => local[Symbol.asyncDispose]() };
}

function say({ events }: End, message: JsonObject): void {
  events.text(JSON.stringify(message));
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

const OCTETS = { "content-type": "application/octet-stream" };

Deno.test("a function writes status, headers and body, which arrive while it writes", async () => {
  const more = Promise.withResolvers<void>();
  await using it = await setup(async ({ write }) => {
    const end = await write();
    say(end, { type: "set_status", status_code: 201 });
    say(end, { type: "set_headers", headers: { "content-type": "text/plain", "x-a": ["1", "2"] } });
    end.events.binary(bytes("first "));
    await more.promise;
    end.events.binary(bytes("second"));
    end.events.closed(1000, "stream_complete");
    return null;
  });

  const response = await fetch(it.url);
  assert.equal(response.status, 201);
  assert.equal(response.headers.get("content-type"), "text/plain");
  assert.equal(response.headers.get("x-a"), "1, 2");
  const reader = response.body!.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "first ");

  more.resolve();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "second");
  assert.equal((await reader.read()).done, true);
  await until(() => it.local.channels.stats.open === 0);
});

Deno.test("a result without a value may come before the writer connects", async () => {
  await using it = await setup(({ write }) => {
    setTimeout(async () => {
      const end = await write();
      say(end, { type: "set_status", status_code: 204 });
      end.events.closed(1000, "");
    }, 50);
    return null;
  });

  const response = await fetch(it.url);

  assert.equal(response.status, 204);
  assert.equal(await response.text(), "");
});

Deno.test("a value before the first byte is the response, and the writer is closed", async () => {
  let end: End | undefined;
  await using it = await setup(async ({ write }) => {
    end = await write();
    say(end, { type: "set_status", status_code: 500 });
    return { body: "value" };
  });

  const response = await fetch(it.url);

  assert.deepEqual([response.status, await response.json()], [200, "value"]);
  assert.equal(end!.connection.closing?.reason, "reader_closed");
});

Deno.test("a value after the first byte is ignored, an error then cuts the stream", async () => {
  for (const fails of [false, true]) {
    await using it = await setup(async ({ write }) => {
      const end = await write();
      end.events.binary(bytes("part"));
      if (fails) throw new Error("broken");
      setTimeout(() => end.events.closed(1000, ""), 20);
      return { status_code: 500 };
    });

    const response = await fetch(it.url);

    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/octet-stream");
    if (fails) await assert.rejects(response.text());
    else assert.equal(await response.text(), "part");
  }
});

Deno.test("a writer that is lost cuts the response, or is an error before it", async () => {
  let part = "part";
  await using it = await setup(async ({ write }) => {
    const end = await write();
    if (part) end.events.binary(bytes(part));
    await new Promise((resolve) => setTimeout(resolve, 20));
    end.events.closed(1006, "connection lost");
    return null;
  });

  const cut = await fetch(it.url);
  assert.equal(cut.status, 200);
  await assert.rejects(cut.text());

  part = "";
  const failed = await fetch(it.url);
  assert.equal(failed.status, 500);
  assert.equal((await failed.json()).error.code, "channel_closed");
});

Deno.test("a client that leaves closes the writer and cancels the function", async () => {
  const cancelled = Promise.withResolvers<string>();
  let end: End | undefined;
  await using it = await setup(async ({ write, context }) => {
    context.signal.addEventListener("abort", () => cancelled.resolve("cancelled"));
    end = await write();
    end.events.binary(bytes("part"));
    return await new Promise(() => {});
  });
  const leaving = new AbortController();
  const response = await fetch(it.url, { signal: leaving.signal });
  assert.equal(new TextDecoder().decode((await response.body!.getReader().read()).value), "part");

  leaving.abort();

  await until(() => end!.connection.closing !== undefined);
  assert.equal(end!.connection.closing?.reason, "reader_closed");
  assert.equal(await cancelled.promise, "cancelled");
});

Deno.test("a client that does not read holds the function back", async () => {
  let end: End | undefined;
  await using it = await setup(async ({ write }) => {
    end = await write();
    end.events.binary(bytes("x"));
    return null;
  });
  const { hostname, port } = new URL(it.url);
  const client = await Deno.connect({ hostname, port: Number(port) });
  await client.write(bytes("GET /f HTTP/1.1\r\nhost: localhost\r\n\r\n"));
  await until(() => end !== undefined);

  const part = new Uint8Array(RESPONSE_AHEAD_BYTES / 4);
  let sent = 0;
  await until(async () => {
    for (; !end!.connection.paused && sent < 4_096; sent++) {
      end!.events.binary(part);
      if (sent % 16 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    return end!.connection.paused;
  });
  assert.ok(sent < 4_096);

  client.close();
  await until(() => end!.connection.closing !== undefined);
});

Deno.test("control messages that make no sense are skipped with a warning", async () => {
  await using it = await setup(async ({ write }) => {
    const end = await write();
    end.events.text("{");
    say(end, { type: "set_status", status_code: 99 });
    say(end, { type: "other" });
    say(end, { type: "set_headers", headers: { "x-a": "a\r\nset-cookie: b=1", "x-b": "ok" } });
    end.events.binary(bytes("x"));
    say(end, { type: "set_status", status_code: 404 });
    end.events.closed(1000, "");
    return null;
  });

  const response = await fetch(it.url);

  assert.equal(response.status, 200);
  assert.equal(response.headers.get("set-cookie"), null);
  assert.equal(response.headers.get("x-b"), "ok");
  assert.equal(await response.text(), "x");
  const warnings = it.local.lines.filter(({ level }) => level === "warn").map(({ text }) => text);
  assert.ok(warnings.includes("a control message of a response is not understood"));
  assert.ok(warnings.includes("a control message of a response comes after its first byte"));
});

Deno.test("HTTP/1.0 and HEAD get streams without chunks", async () => {
  await using it = await setup(async ({ write }) => {
    const end = await write();
    end.events.binary(bytes("body"));
    end.events.closed(1000, "");
    return null;
  });
  const ask = async (request: string): Promise<string> => {
    const { hostname, port } = new URL(it.url);
    using client = await Deno.connect({ hostname, port: Number(port) });
    await client.write(bytes(request));
    return await new Response(client.readable).text();
  };

  const old = await ask("GET /f HTTP/1.0\r\nhost: localhost\r\n\r\n");
  assert.match(old, /^HTTP\/1.1 200 OK\r\n(?!.*transfer-encoding)[^]*\r\n\r\nbody$/);
  const head = await ask("HEAD /f HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  assert.match(head, /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/);
});

Deno.test("a body of any type is read as a stream, and the client is held back", async () => {
  let end: End | undefined;
  const received: Uint8Array[] = [];
  const done = Promise.withResolvers<void>();
  await using it = await setup(async ({ read, payload }) => {
    assert.equal(payload.body, null);
    end = await read();
    await done.promise;
    return { body: received.reduce((sum, { length }) => sum + length, 0) };
  });
  const body = new Uint8Array(8 * 1024 * 1024).fill(5);
  const response = fetch(it.url, { method: "POST", headers: OCTETS, body });

  await until(() => end !== undefined);
  end!.connection.queuedBytes = RESPONSE_AHEAD_BYTES + 1;
  let last = -1;
  await until(async () => {
    received.push(...end!.connection.takeBinaries());
    const before = last;
    last = received.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return before === last;
  });
  assert.ok(received.length < 100, "it waits");
  end!.connection.queuedBytes = 0;
  end!.events.drained();
  await until(() => {
    received.push(...end!.connection.takeBinaries());
    return end!.connection.closing !== undefined;
  });
  assert.equal(end!.connection.closing?.code, 1000);
  done.resolve();

  assert.equal(await (await response).json(), body.length);
});

const PARSED = {
  "small": bytes('{"a" : 1}'),
  "beyond ASCII": bytes('{"a" : "é🙂\ufffd"}'),
  "with a byte order mark": Uint8Array.of(0xef, 0xbb, 0xbf, ...bytes("[1]")),
  "not quite UTF-8": Uint8Array.of(...bytes('"'), 0xff, ...bytes('"')),
  "of more than a read": bytes(JSON.stringify("x".repeat(20_000))),
  "large": bytes(JSON.stringify("x".repeat(600_000))),
};

for (const [name, body] of Object.entries(PARSED)) {
  Deno.test(`the bytes of a body that was parsed are there, too: one ${name}`, async () => {
    const received: Uint8Array[] = [];
    await using it = await setup(async ({ read, payload }) => {
      const { connection } = await read();
      await until(() => {
        received.push(...connection.takeBinaries());
        return connection.closing !== undefined;
      });
      return { body: [payload.body!] };
    });

    const headers = { "content-type": "application/json" };
    const response = await fetch(it.url, { method: "POST", headers, body });

    const value = JSON.parse(new TextDecoder().decode(body));
    assert.deepEqual(await response.json(), [value]);
    assert.deepEqual(new Uint8Array(await new Blob(received as BlobPart[]).arrayBuffer()), body);
  });
}

Deno.test("a large JSON body reaches the function as it came, and its bytes as a stream", async () => {
  // Numbers that a parser would change, and a key that must stay a member.
  const text = `{"n":12345678901234567890,"__proto__":[1e2],"text":"${"é".repeat(1_000_000)}"}`;
  await using it = await setup(async ({ read, payload }) => {
    const { connection } = await read();
    await until(() => connection.closing !== undefined);
    const raw = connection.takeBinaries().map((part) => new TextDecoder().decode(part)).join("");
    const { body, path, method } = payload as { body: JsonObject; path: string; method: string };
    return { body: { keys: Object.keys(body), body, raw: raw === text, path, method } };
  });

  const headers = { "content-type": "application/json" };
  const response = await fetch(it.url, { method: "POST", headers, body: text });

  const { body, ...rest } = await response.json();
  assert.deepEqual(body, JSON.parse(text));
  assert.deepEqual(rest, {
    keys: ["n", "__proto__", "text"],
    raw: true,
    path: "/f",
    method: "POST",
  });
});

Deno.test("a text that is too large for the payload is a stream from its start", async () => {
  await using it = await setup(async ({ read, payload }) => {
    const { connection } = await read();
    await until(() => connection.closing !== undefined);
    const raw = connection.takeBinaries().map((part) => new TextDecoder().decode(part)).join("");
    return { body: { parsed: payload.body!, raw } };
  }, { buffered_body_bytes_max: 1_000 });
  const text = "0123456789".repeat(300);
  const chunks = new ReadableStream({
    start(controller) {
      for (let at = 0; at < text.length; at += 700) {
        controller.enqueue(bytes(text.slice(at, at + 700)));
      }
      controller.close();
    },
  });

  for (const body of [text, chunks]) {
    const headers = { "content-type": "text/plain" };
    const response = await fetch(it.url, { method: "POST", headers, body });

    assert.deepEqual(await response.json(), { parsed: null, raw: text });
  }
});

Deno.test("a streamed body has a limit, declared or in chunks", async () => {
  let closing: Json = null;
  await using it = await setup(async ({ read }) => {
    const { connection } = await read();
    await until(() => connection.closing !== undefined);
    closing = connection.closing!.code;
    return null;
  }, { streamed_body_bytes_max: 100_000 });
  const large = new Uint8Array(200_000);
  const chunks = () => new Blob([large]).stream();

  for (const body of [large, chunks()]) {
    const response = await fetch(it.url, { method: "POST", headers: OCTETS, body });

    assert.equal(response.status, 413);
    assert.equal((await response.json()).error.code, "body_too_large");
  }
  await until(() => closing === 4001);
});

Deno.test("references of a request are of no use when it has ended", async () => {
  let late: Streams | undefined;
  await using it = await setup((streams) => {
    late = streams;
    return { body: "done" };
  });

  await (await fetch(it.url)).text();

  await assert.rejects(late!.write(), /Channel not found/);
  await assert.rejects(late!.read(), /Channel not found/);
});
