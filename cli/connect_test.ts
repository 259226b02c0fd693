/**
 * The connections of commands, against servers of this process.
 *
 * @module
 */
import assert from "node:assert/strict";
import { openControlKey, readControlKey } from "../engine/auth/control_key.ts";
import type { Dial, Json, TransportEvents } from "../mod.ts";
import { localDial } from "../engine/transport/local_connection.ts";
import { LocalEngine } from "../tests/fakes/local_engine.ts";
import { pubsub } from "../workers/pubsub/mod.ts";
import { recordingLog } from "../tests/fakes/fake_http.ts";
import { connectToEngine, shortDial } from "./connect.ts";
import {
  CommandError,
  ConnectionLost,
  describeFailure,
  EXIT_NOT_UNDERSTOOD,
  UsageError,
} from "./failure.ts";

/** A dial that reports `closed` at once with this reason; without one it reports nothing. */
function refusing(reason?: string): Dial {
  return (_url, events) => {
    if (reason !== undefined) queueMicrotask(() => events.closed(1006, reason));
    return { send: () => {}, close: () => queueMicrotask(() => events.closed(1000, "")) };
  };
}

/** A dial to a peer that answers every call with its own payload. */
const echoing: Dial = (_url, events: TransportEvents) => {
  queueMicrotask(() => events.opened());
  return {
    send(message) {
      const { invocation_id, function_id, data } = JSON.parse(message as string);
      if (invocation_id === undefined) return;
      const result = { type: "invocationresult", invocation_id, function_id, result: data };
      queueMicrotask(() => events.text(JSON.stringify(result)));
    },
    close: () => queueMicrotask(() => events.closed(1000, "")),
  };
};

/** A dial to an engine in this process. */
function dialTo({ router }: LocalEngine): Dial {
  const peer = { address: "127.0.0.1", launch_id: null, builtin: null };
  return localDial({ open: (line) => router.open(line, peer) }, "cli");
}

async function messageOf(promise: Promise<unknown>): Promise<string> {
  const thrown = await promise.then(() => assert.fail("it connected"), (reason) => reason);
  assert.ok(thrown instanceof CommandError, String(thrown));
  return thrown.message;
}

Deno.test("a connection to an engine carries calls", async () => {
  await using engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial: echoing });

  assert.deepEqual(await engine.call("a::b", { c: 1 }, { timeout_ms: 1_000 }), { c: 1 });
});

Deno.test("a connection carries the messages of a topic, until it is lost", async () => {
  await using local = new LocalEngine();
  await using none = await connectToEngine({ url: "ws://127.0.0.1:1", dial: dialTo(local) });
  await assert.rejects(none.subscribe("a.*", () => {}), { code: "function_not_found" });
  await local.start(pubsub);
  const publisher = await local.connect("publisher");
  const heard: Json[] = [];
  const first = Promise.withResolvers<void>();
  const engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial: dialTo(local) });

  const { lost } = await engine.subscribe("a.*", (data) => {
    heard.push(data);
    first.resolve();
  });
  await publisher.trigger({ function_id: "publish", payload: { topic: "a.b", data: { n: 1 } } });
  await first.promise;

  assert.deepEqual(heard, [{ n: 1 }]);
  await assert.rejects(engine.subscribe("a.>.b", () => {}), {
    code: "trigger_registration_failed",
  });
  await engine[Symbol.asyncDispose]();
  await assert.rejects(lost, { name: "CommandError", message: /connection .* was lost/ });
});

Deno.test("a call reports whether its worker ended or the connection was lost", async () => {
  const answering =
    (answer: (id: string, events: TransportEvents) => void): Dial => (url, events) => {
      const transport = echoing(url, events, {});
      return {
        ...transport,
        send(message) {
          const { function_id, invocation_id } = JSON.parse(message as string);
          if (function_id === "a::b") queueMicrotask(() => answer(invocation_id, events));
          else transport.send(message);
        },
      };
    };
  const error = { code: "invocation_stopped", message: "Invocation stopped" };
  const result = { type: "invocationresult", function_id: "a::b", error };
  const ofWorker = answering((invocation_id, events) => {
    events.text(JSON.stringify({ ...result, invocation_id }));
  });
  const ofLine = answering((_id, events) => events.closed(1006, "gone"));
  const options = { url: "ws://127.0.0.1:1" };

  await using one = await connectToEngine({ ...options, dial: ofWorker });
  await assert.rejects(one.call("a::b", {}), { code: "invocation_stopped" });
  await using other = await connectToEngine({ ...options, dial: ofLine });
  await assert.rejects(other.call("a::b", {}), ConnectionLost);
});

Deno.test("a connection that access rules refuse is reported with the engine's reason", async () => {
  const dial: Dial = (_url, events) => {
    queueMicrotask(() => events.opened());
    const error = { code: "AUTH_ERROR", message: "Token ci was revoked" };
    return {
      send(message) {
        if (!String(message).includes("a::b")) return;
        events.text(JSON.stringify({ type: "error", error }));
        queueMicrotask(() => events.closed(1008, error.message));
      },
      close: () => queueMicrotask(() => events.closed(1000, "")),
    };
  };
  await using engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial });

  await assert.rejects(engine.call("a::b", {}), {
    name: "CommandError",
    message: "The engine closed the connection: Token ci was revoked",
  });
});

/** The headers that a dial to this address sends. */
async function headersTo(url: string, key: string | undefined): Promise<Record<string, string>> {
  const asked: string[] = [];
  const sent: Record<string, string>[] = [];
  const dial: Dial = (dialled, events, options) => {
    sent.push({ ...options.headers });
    return echoing(dialled, events, options);
  };
  const findKey = (wanted: string) => (asked.push(wanted), Promise.resolve(key));
  await using _engine = await connectToEngine({ url, dial, findKey });
  assert.deepEqual(asked, [url]);
  return sent[0]!;
}

Deno.test("the key of an engine is sent to it when there is one, and nothing else", async () => {
  const url = "ws://127.0.0.1:1";

  assert.equal((await headersTo(url, "0123"))["x-engine-control"], "0123");
  assert.ok(!("x-engine-control" in await headersTo(url, undefined)));
});

Deno.test("the key of a local engine is sent to its address, and to no other machine", async () => {
  const folder = await Deno.makeTempDir();
  const log = recordingLog([]);
  const sent: (string | undefined)[] = [];
  const dial: Dial = (url, events, options) => {
    sent.push(options.headers?.["x-engine-control"]);
    return echoing(url, events, options);
  };
  {
    await using key = await openControlKey("ws://127.0.0.1:7", log, { folder });
    const findKey = (url: string) => readControlKey(url, folder);
    for (const host of ["127.0.0.1", "localhost", "192.0.2.1", "example.org"]) {
      await using _engine = await connectToEngine({ url: `ws://${host}:7`, dial, findKey });
    }
    assert.deepEqual(sent.map((header) => key.matches(header ?? null)), [true, true, false, false]);
    assert.deepEqual(sent.slice(2), [undefined, undefined]);
  }
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a call can be cancelled, and receives progress", async () => {
  const telling: Dial = (_url, events) => {
    queueMicrotask(() => events.opened());
    return {
      send(message) {
        const { type, invocation_id } = JSON.parse(message as string);
        if (type !== "invokefunction" || invocation_id === undefined) return;
        const progress = { type: "invocationprogress", invocation_id, data: { done: 1 } };
        queueMicrotask(() => events.text(JSON.stringify(progress)));
      },
      close: () => queueMicrotask(() => events.closed(1000, "")),
    };
  };
  await using engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial: telling });
  const giveUp = new AbortController();
  const heard = Promise.withResolvers<Json>();

  const call = engine.call("a::b", null, { signal: giveUp.signal, onProgress: heard.resolve });

  assert.deepEqual(await heard.promise, { done: 1 });
  giveUp.abort();
  await assert.rejects(call);
});

Deno.test("an engine that is not there is reported with how to start one", async () => {
  const url = "ws://127.0.0.1:49134";

  const message = await messageOf(connectToEngine({ url, dial: refusing("ECONNREFUSED") }));

  assert.equal(
    message,
    "The engine is not running at ws://127.0.0.1:49134; start it with: engine --config config.yaml",
  );
});

Deno.test("a dead engine is reported through a real socket as well", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  const began = performance.now();

  const message = await messageOf(connectToEngine({
    url: `ws://127.0.0.1:${port}`,
    patienceMs: 120_000,
  }));

  assert.match(message, /^The engine is not running at ws:\/\/127\.0\.0\.1:\d+; start it with:/);
  assert.ok(performance.now() - began < 60_000, "it does not wait for an answer");
});

Deno.test("a port that accepts connections and stays silent is not reported as free", async () => {
  const message = await messageOf(
    connectToEngine({ url: "ws://127.0.0.1:1", dial: refusing(), patienceMs: 20 }),
  );

  assert.match(
    message,
    /^Nothing at ws:\/\/127\.0\.0\.1:1 has answered for 20 ms; the engine there/,
  );
});

Deno.test("a token that is wrong is reported as such, and not shown", async () => {
  const url = "ws://127.0.0.1:1/?token=secret";

  const message = await messageOf(connectToEngine({ url, dial: refusing("HTTP 401") }));

  assert.match(message, /rejected the token; give one with --token or ENGINE_TOKEN/);
  assert.ok(!message.includes("secret"));
});

Deno.test("another HTTP error is reported with its status", async () => {
  const message = await messageOf(
    connectToEngine({ url: "ws://127.0.0.1:1", dial: refusing("HTTP 403") }),
  );

  assert.match(message, /refused the connection with HTTP 403/);
});

for (const url of ["ftp://127.0.0.1:1", "two words", "localhost:port", ""]) {
  Deno.test(`the address ${JSON.stringify(url)} is not understood`, async () => {
    const thrown = await connectToEngine({ url }).then(() => undefined, (reason) => reason);

    assert.ok(thrown instanceof UsageError);
    const { lines, exitCode } = describeFailure(thrown);
    assert.equal(exitCode, EXIT_NOT_UNDERSTOOD);
    assert.match(lines.join(), /must look like ws:.*received /);
  });
}

Deno.test("a token that no header can hold is refused without being shown", async () => {
  for (const token of ["sec\nret", "sec\x01ret", "sec日ret"]) {
    const options = { url: "ws://127.0.0.1:1", findKey: () => Promise.resolve(undefined), token };
    for (const isShort of [true, false]) {
      const thrown = await connectToEngine({ ...options, isShort }).catch((error) => error);
      assert.ok(thrown instanceof UsageError, String(thrown));
      assert.match(thrown.message, /^The token .* ENGINE_TOKEN$/);
      assert.doesNotMatch(thrown.message, /sec|ret/);
    }
  }
});

Deno.test("a line break at the end of a token is not part of it", async () => {
  const sent: (string | undefined)[] = [];
  const dial: Dial = (url, events, options) => {
    sent.push(options.headers?.["Authorization"]);
    return echoing(url, events, options);
  };
  await using _engine = await connectToEngine({ url: "ws://127.0.0.1:1", dial, token: "secret\n" });

  assert.deepEqual(sent, ["Bearer secret"]);
});

/** The events of a transport, in order. */
interface Recorded {
  readonly events: TransportEvents;
  readonly texts: string[];
  readonly opened: Promise<void>;
  readonly closed: Promise<[number, string]>;
  /** Resolves when this number of texts has arrived. */
  arrive(count: number): Promise<void>;
}

function record(): Recorded {
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
  const arrive = (count: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    look = () => texts.length >= count && resolve();
    look();
    return promise;
  };
  return { events, texts, opened: opened.promise, closed: closed.promise, arrive };
}

/** A server that returns every frame with its number; it selects `protocol` if it is offered. */
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
  const recorded = record();

  const transport = shortDial(server.url, recorded.events, { headers: { "x-key": "one" } });
  await recorded.opened;
  transport.send("a");
  transport.send("b");
  transport.send(new Uint8Array(3));
  await recorded.arrive(3);
  transport.close();

  assert.equal(server.headers[0], "one");
  assert.deepEqual(recorded.texts, ["1:a", "2:b", "bytes 3"]);
  assert.equal((await recorded.closed)[0], 1000);
});

Deno.test("shortDial sends the messages of one tick in one frame if the server accepts batches", async () => {
  await using server = serve("engine.batch.v1");
  const recorded = record();

  const transport = shortDial(server.url, recorded.events, {});
  await recorded.opened;
  transport.send("a");
  transport.send("b");
  await recorded.arrive(2);
  transport.send("c");
  transport.close(); // Flushes first.
  await recorded.closed;

  assert.deepEqual(recorded.texts.slice(0, 2), ["1:a", "1:b"]);
});

Deno.test("shortDial sends a long message alone, in its place", async () => {
  await using server = serve("engine.batch.v1");
  const recorded = record();
  const long = "x".repeat(70_000);

  const transport = shortDial(server.url, recorded.events, {});
  await recorded.opened;
  for (const text of ["a", "b", long, "c", "d"]) transport.send(text);
  await recorded.arrive(5);
  transport.close();
  await recorded.closed;

  assert.deepEqual(recorded.texts, ["1:a", "1:b", `2:${long}`, "3:c", "3:d"]);
});

Deno.test("shortDial reports why a connection was closed", async () => {
  await using server = serve();
  const recorded = record();

  const transport = shortDial(server.url, recorded.events, {});
  await recorded.opened;
  transport.send("bye");

  assert.deepEqual(await recorded.closed, [4001, "gone"]);
});

Deno.test("shortDial reports why a connection was not opened", async () => {
  const refusing = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    () => new Response("who?", { status: 401 }),
  );
  const [refused, unheard] = [record(), record()];

  shortDial(`ws://127.0.0.1:${refusing.addr.port}`, refused.events, {});
  const [code, reason] = await refused.closed;
  await refusing.shutdown();
  shortDial(`ws://127.0.0.1:${refusing.addr.port}`, unheard.events, {});

  assert.equal(code, 1006);
  assert.match(reason, /401/);
  assert.match((await unheard.closed)[1], /connect/);
});
