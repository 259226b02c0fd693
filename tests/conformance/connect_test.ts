/**
 * PROTOCOL 1 from the other end of the wire: upgrade, first frames, announcement,
 * liveness and framing.
 *
 * @module
 */
import assert from "node:assert/strict";
import { OP } from "../fakes/raw_ws_client.ts";
import { proveOnWire } from "../fakes/wire_engine.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
interface WorkerList {
  readonly workers: readonly { id: string; name: string; runtime: string }[];
}

const bytes = (text: string) => new TextEncoder().encode(text);

proveOnWire("upgrade", {
  "an upgrade needs no headers, and no subprotocol is selected that was not offered": async (
    { ask },
  ) => {
    const plain = await ask();
    const other = await ask({ path: "/?tenant=a", headers: { "Sec-WebSocket-Protocol": "other" } });
    const deflate = await ask({
      headers: { "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits" },
    });

    assert.deepEqual([plain.status, other.status, deflate.status], [101, 101, 101]);
    assert.doesNotMatch(plain.head, /sec-websocket-protocol/i);
    assert.doesNotMatch(other.head, /sec-websocket-protocol/i);
  },

  "`engine.batch.v1` is announced if and only if it is selected": async ({ ask }) => {
    const client = await ask({ headers: { "Sec-WebSocket-Protocol": "engine.batch.v1" } });

    const { capabilities } = JSON.parse(await client.nextText() ?? "");

    const isSelected = /sec-websocket-protocol: engine\.batch\.v1/i.test(client.head);
    assert.equal(capabilities.includes("batch"), isSelected);
  },

  "on a batching connection each message counts by itself, blank lines and invalid ones do no harm":
    async ({
      ask,
    }) => {
      const client = await ask({ headers: { "Sec-WebSocket-Protocol": "engine.batch.v1" } });
      if (!/sec-websocket-protocol: engine\.batch\.v1/i.test(client.head)) return;
      await client.nextText();

      const register = { type: "registerfunction", id: "batch::echo" };
      const call = { type: "invokefunction", invocation_id: "1", function_id: "batch::echo" };
      await client.text(
        ["", JSON.stringify(register), "no json", "", JSON.stringify(call), '{"type":"ping"}', ""]
          .join("\n"),
      );

      const texts: string[] = [];
      while (texts.length < 3) texts.push(...(await client.nextText() ?? "").split("\n"));
      const [bad, handed, pong] = texts.map((text) => JSON.parse(text));
      assert.equal(bad.error.code, "bad_message");
      assert.equal(handed.function_id, "batch::echo");
      assert.equal(pong.type, "pong");
      await client.text(
        `{"type":"invocationresult","invocation_id":"${handed.invocation_id}",` +
          `"function_id":"batch::echo","result":[1]}`,
      );
      assert.deepEqual(JSON.parse(await client.nextText() ?? "").result, [1]);
    },

  "/otel is accepted, takes everything and sends nothing": async ({ ask }) => {
    const client = await ask({ path: "/otel" });
    assert.equal(client.status, 101);

    for (const mark of ["OTLP", "MTRC", "LOGS", "????"]) {
      await client.frame(OP.binary, bytes(`${mark}{"resourceSpans":[]}`));
    }
    await client.text("not even binary");
    await client.frame(OP.ping, bytes("still there?"));

    const next = await client.next();
    assert.deepEqual([next?.opcode, next?.payload], [OP.pong, bytes("still there?")]);
  },

  "an unknown channel is 404, any other path 404": async ({ ask }) => {
    const channel = await ask({ path: "/ws/channels/x?key=y&dir=read" });
    const other = await ask({ path: "/elsewhere" });

    assert.deepEqual([channel.status, other.status], [404, 404]);
  },

  "a request that is no upgrade is 426, with a sentence": async ({ port }) => {
    const response = await fetch(`http://127.0.0.1:${port}/`);

    assert.equal(response.status, 426);
    assert.match(await response.text(), /WebSocket/);
  },

  "a page of a foreign origin is 403, one of this machine is accepted": async ({ ask }) => {
    const foreign = await ask({ headers: { Origin: "https://evil.example" } });
    const own = await ask({ headers: { Origin: "http://localhost:5173" } });

    assert.deepEqual([foreign.status, own.status], [403, 101]);
  },

  "a single frame of 16 MiB is accepted": async ({ open }) => {
    const client = await open();
    const value = "x".repeat(16 * 1024 * 1024);

    const failure = await client.failure("missing::f", value);

    assert.equal(failure.code, "function_not_found");
  },
});

proveOnWire("the token", {
  "without it, or with a wrong one, the answer is 401 before any upgrade": async ({ ask }) => {
    const statuses = [];
    for (const path of ["/", "/otel", "/?token=wrong", "/?token=secre", "/?token=secret2"]) {
      statuses.push((await ask({ path })).status);
    }
    const wrong = await ask({ headers: { Authorization: "Bearer wrong" } });

    assert.deepEqual([...statuses, wrong.status], [401, 401, 401, 401, 401, 401]);
  },

  "it is read from the header and from the query": async ({ ask }) => {
    const header = await ask({ headers: { Authorization: "Bearer secret" } });
    const query = await ask({ path: "/?token=secret" });
    const otel = await ask({ path: "/otel", headers: { Authorization: "Bearer secret" } });

    assert.deepEqual([header.status, query.status, otel.status], [101, 101, 101]);
  },

  "channel sockets need none": async ({ ask }) => {
    assert.equal((await ask({ path: "/ws/channels/x?key=y&dir=read" })).status, 404);
  },
}, { engine: ["auth_token: secret"] });

proveOnWire("first frames and announcement", {
  "the engine sends the first frame, with fresh ids, tokens and its capabilities": async (
    { open },
  ) => {
    const [a, b] = [await open(), await open()];

    const keys = ["type", "worker_id", "reattach_token", "capabilities"];
    assert.deepEqual(Object.keys(a.hello), keys);
    const secrets = [a, b].flatMap(({ hello }) => [hello.worker_id, hello.reattach_token]);
    for (const secret of secrets) assert.match(secret as string, UUID);
    assert.equal(new Set(secrets).size, 4);
    const capabilities = a.hello.capabilities as string[];
    for (const name of ["cancel", "timeout", "progress"]) assert.ok(capabilities.includes(name));
  },

  "frames that come with the upgrade are handled after `workerregistered`": async ({ ask }) => {
    const first = bytes('{"type":"ping"}');
    const behind = new Uint8Array([0x81, 0x80 | first.length, 0, 0, 0, 0, ...first]);

    const client = await ask({ behind });

    assert.match(await client.nextText() ?? "", /^\{"type":"workerregistered",/);
    assert.equal(await client.nextText(), '{"type":"pong"}');
  },

  "registrations need no announcement, and the next frame sees them": async ({ open }) => {
    const client = await open();
    const invocation_id = crypto.randomUUID();

    await client.send(
      { type: "registerfunction", id: "first::own" },
      { type: "invokefunction", invocation_id, function_id: "first::own", data: 1 },
    );

    const call = await client.run({ result: 2 });
    assert.equal(call.data, 1);
    assert.equal((await client.receive()).result, 2);
  },

  "an announcement with an id is answered, without one not": async ({ open }) => {
    const client = await open();
    const data = { runtime: "go", version: "1", name: "announcing", os: "linux", pid: 7 };
    const function_id = "engine::workers::register";

    const result = await client.value(function_id, { ...data, isolation: null, telemetry: {} });
    await client.send({ type: "invokefunction", function_id, action: { type: "void" }, data });
    await client.send({ type: "invokefunction", function_id, data });

    assert.deepEqual(result, { success: true });
    await client.receivesNothing();
  },

  "an announcement may come last, and a later one replaces it": async ({ open }) => {
    const [client, other] = [await open(), await open()];
    const names = async (id: string) => {
      const { workers } = await other.value<WorkerList>("engine::workers::list");
      return workers.filter((each) => each.id === id).map(({ name, runtime }) =>
        `${name} ${runtime}`
      );
    };

    const before = await names(client.id);
    await client.offer("late::a");
    await client.announce("late", "cancel", "a capability of tomorrow");
    const after = await names(client.id);
    await client.announce("later");
    const replaced = await names(client.id);

    assert.deepEqual([before, after, replaced], [[], ["late other"], ["later other"]]);
  },

  "two workers may have one name": async ({ open }) => {
    const [a, b] = [await open(), await open()];

    await a.announce("twin");
    await b.announce("twin");

    const { workers } = await a.value<WorkerList>("engine::workers::list", { search: "twin" });
    assert.equal(workers.length, 2);
  },
});

proveOnWire("framing and liveness", {
  "`ping` is answered with `pong`, `pong` with nothing": async ({ open }) => {
    const client = await open();

    await client.send({ type: "pong" }, { type: "ping" });

    assert.equal((await client.receiveRaw()).text, '{"type":"pong"}');
    await client.receivesNothing();
  },

  "a WebSocket ping is answered with its payload": async ({ open }) => {
    const client = await open();

    await client.raw.frame(OP.ping, bytes("42"));

    const pong = await client.raw.next();
    assert.deepEqual([pong?.opcode, pong?.payload], [OP.pong, bytes("42")]);
  },

  "empty frames, unknown fields and `registerservice` are ignored": async ({ open }) => {
    const client = await open();

    await client.send("", {
      type: "registerservice",
      id: "group",
      name: "x",
      parent_service_id: "y",
    });
    await client.send({ type: "ping", colour: "blue" });

    assert.deepEqual(await client.receive(), { type: "pong" });
    await client.receivesNothing();
  },

  "a binary frame is text, unless it is telemetry": async ({ open }) => {
    const client = await open();

    for (const mark of ["OTLP", "MTRC", "LOGS"]) {
      await client.raw.frame(OP.binary, bytes(`${mark}{"broken`));
    }
    await client.raw.frame(OP.binary, bytes('{"type":"ping"}'));

    assert.deepEqual(await client.receive(), { type: "pong" });
    await client.raw.frame(OP.binary, bytes("OTLX"));
    assert.equal((await client.receive()).type, "error");
  },

  "any key order and any white space are accepted": async ({ open }) => {
    const client = await open();

    await client.send('\n {"id" :\t"order::a" ,\r\n "type": "registerfunction"} ');
    await client.send(
      '{ "data":[1, 2],"function_id":"order::a","invocation_id":"i","type":"invokefunction"}',
    );

    const { text } = await client.receiveRaw();
    assert.match(
      text,
      /^\{"type":"invokefunction","invocation_id":"[^"]+","function_id":"order::a","data":\[1, 2\]\}$/,
    );
  },

  "without the subprotocol two messages in one frame are one that is malformed": async (
    { open },
  ) => {
    const client = await open();

    await client.send('{"type":"ping"}\n{"type":"ping"}');

    assert.equal((await client.receive()).type, "error");
    await client.receivesNothing();
  },
}, { traces: false });
