import assert from "node:assert/strict";
import { TELEMETRY_BYTES_PER_SECOND } from "../core/guards.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { FakeConnection } from "../../tests/fakes/fake_connection.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import type {
  Accept,
  Connection,
  ConnectionEvents,
  Gate,
  Refusal,
  Upgrade,
} from "../ports/connection.ts";
import {
  type GateOptions,
  makeGate,
  OPERATOR_CONNECTIONS,
  SocketPaths,
  TelemetryConnection,
} from "./gate.ts";

Deno.test("a worker comes in at / without a token where none is set", () => {
  const { gate, opened } = setup();

  open(gate({ ...request("/") }));

  assert.deepEqual(opened, ["/"]);
});

Deno.test("telemetry at /otel goes to who reads it, with its address", () => {
  const { gate, opened, telemetry } = setup();

  open(gate(request("/otel")));

  assert.deepEqual(opened, []);
  assert.deepEqual(telemetry, ["127.0.0.1"]);
});

Deno.test("any other path is refused with 404", () => {
  const { gate } = setup({ authToken: "secret" });

  assert.deepEqual(refusal(gate(request("/ws/channels/abc?key=k&dir=read"))), {
    status: 404,
    message: "Channel not found",
  });
  assert.equal(refusal(gate(request("/nowhere"))).status, 404);
  assert.equal(refusal(gate(request("/otel/"))).status, 404);
});

Deno.test("an end of a channel needs no token, and counts as a connection until it ends", () => {
  const claimed: string[] = [];
  const { gate } = setup({
    authToken: "secret",
    maxConnections: 8,
    closedReason: () => "stopping",
    claimChannel: ({ path, query }) => {
      if (query.get("key") !== "k") return { status: 404, message: "Channel not found" };
      claimed.push(path);
      return () => SILENT;
    },
  });
  const target = "/ws/channels/abc?key=k&dir=read";

  const ends = Array.from({ length: 7 }, () => open(gate(request(target))));

  assert.equal(refusal(gate(request("/ws/channels/abc?key=x&dir=read"))).status, 404);
  assert.equal(refusal(gate(request(target))).status, 503, "one place is an operator's");
  assert.equal(refusal(gate(request(target, { origin: "https://evil.example" }))).status, 403);
  ends[0]!.closed(1000, "");
  open(gate(request(target)));
  assert.equal(new Set(claimed).size, 1);
});

Deno.test("a path that a built-in worker serves leaves places, and asks for the token", () => {
  const sockets = new SocketPaths();
  const { gate } = setup({ authToken: "secret", maxConnections: 16, sockets });
  assert.match(refusal(gate(request("/stream"))).message, /engine worker add engine-stream/);
  const stop = sockets.serve("/stream", () => () => SILENT);
  assert.throws(() => sockets.serve("/stream", () => () => SILENT), /served already/);

  assert.equal(refusal(gate(request("/stream"))).status, 401);
  assert.equal(refusal(gate(request("/stream", { origin: "https://evil.example" }))).status, 403);
  const ends = Array.from({ length: 10 }, () => open(gate(request("/stream?token=secret"))));
  assert.equal(refusal(gate(request("/stream?token=secret"))).status, 503);
  open(gate(request("/?token=secret")));
  ends[0]!.closed(1000, "");
  open(gate(request("/stream?token=secret")));

  stop();
  sockets.serve("/stream", () => () => SILENT, { open: true });
  ends[1]!.closed(1000, "");
  open(gate(request("/stream")));
});

Deno.test("ends of channels that send nothing do not count as connections without a message", () => {
  const { gate } = setup({ maxConnections: 1_000, claimChannel: () => () => SILENT });

  for (let i = 0; i < 900; i++) open(gate(request("/ws/channels/abc?key=k&dir=read")));

  open(gate(request("/")));
});

Deno.test("a token is taken as a bearer or from the query", () => {
  const { gate, opened, telemetry } = setup({ authToken: "s3cret+/=" });

  open(gate(request("/", { authorization: "Bearer s3cret+/=" })));
  open(gate(request("/", { authorization: "bearer   s3cret+/= " })));
  open(gate(request("/?token=s3cret%2B%2F%3D")));
  open(gate(request("/otel?token=s3cret%2B%2F%3D")));

  assert.deepEqual([opened.length, telemetry.length], [3, 1]);
});

Deno.test("a token may hold spaces", () => {
  const { gate, opened } = setup({ authToken: "two words" });

  open(gate(request("/", { authorization: "Bearer two words" })));

  assert.deepEqual(opened, ["/"]);
});

for (
  const [name, path, headers] of [
    ["a missing token", "/", {}],
    ["a wrong token", "/", { authorization: "Bearer secres" }],
    ["the start of the token", "/", { authorization: "Bearer secre" }],
    ["more than the token", "/", { authorization: "Bearer secrett" }],
    ["another scheme", "/", { authorization: "Basic secret" }],
    ["a scheme alone", "/", { authorization: "Bearer " }],
    ["two tokens in one header", "/", { authorization: "Bearer secret, Bearer x" }],
    ["a wrong header beside a right query", "/?token=secret", { authorization: "Bearer no" }],
    ["an empty token in the query", "/?token=", {}],
    ["a missing token on /otel", "/otel", {}],
  ] as const
) {
  Deno.test(`${name} is refused with 401`, () => {
    const { gate, opened } = setup({ authToken: "secret" });

    const { status, message } = refusal(gate(request(path, headers)));

    assert.equal(status, 401);
    assert.doesNotMatch(message, /secret/);
    assert.deepEqual(opened, []);
  });
}

for (
  const origin of [
    "http://localhost",
    "http://localhost:3113",
    "https://app.localhost",
    "http://127.0.0.1:5173",
    "http://127.9.9.9",
    "http://[::1]:80",
    "https://console.example",
    "HTTPS://Console.Example:443",
  ]
) {
  Deno.test(`a page of ${origin} may connect`, () => {
    const { gate, opened } = setup({ allowedOrigins: ["https://console.example/"] });

    open(gate(request("/", { origin })));

    assert.equal(opened.length, 1);
  });
}

for (
  const origin of [
    "https://evil.example",
    "http://console.example",
    "https://console.example:8443",
    "https://console.example.evil.example",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://evil.example/127.0.0.1",
    "http://128.0.0.1",
    "chrome-extension://abcdef",
    "file://",
    "null",
    "",
    "localhost",
  ]
) {
  Deno.test(`a page of "${origin}" is refused with 403, whatever it knows`, () => {
    const { gate } = setup({ allowedOrigins: ["https://console.example"], authToken: "secret" });

    const { status } = refusal(gate(request("/?token=secret", { origin })));

    assert.equal(status, 403);
  });
}

Deno.test("refused origins are reported, and those that may connect are not", () => {
  const reported: string[] = [];
  const { gate } = setup({
    name: "listeners.public",
    originRefused: (origin) => void reported.push(origin),
  });

  open(gate(request("/", { origin: "http://localhost:5173" })));
  const { status, message } = refusal(gate(request("/", { origin: "https://evil.example" })));
  assert.deepEqual([status, message], [
    403,
    'Origin "https://evil.example" is not among listeners.public.allowed_origins',
  ]);

  assert.deepEqual(reported, ["https://evil.example"]);
});

Deno.test("a listed origin with an unusual scheme admits no other", () => {
  const { gate } = setup({ allowedOrigins: ["app://console"] });

  open(gate(request("/", { origin: "app://console" })));

  assert.equal(refusal(gate(request("/", { origin: "app://other" }))).status, 403);
  assert.equal(refusal(gate(request("/", { origin: "null" }))).status, 403);
});

Deno.test("lines beyond the bound are refused with 503 until one ends", () => {
  const { gate } = setup({ maxConnections: 2 });
  const first = open(gate(request("/")));
  open(gate(request("/otel")));

  assert.equal(refusal(gate(request("/"))).status, 503);
  first.closed(1000, "");
  open(gate(request("/")));

  assert.equal(refusal(gate(request("/"))).status, 503);
});

Deno.test("a connection that is not accepted does not count", () => {
  let isBroken = true;
  const { gate } = setup({
    maxConnections: 1,
    accept: () => () => {
      if (isBroken) throw new Error("not thought of");
      return { text() {}, textBytes() {}, binary() {}, drained() {}, suspected() {}, closed() {} };
    },
  });
  assert.throws(() => open(gate(request("/"))), /not thought of/);

  isBroken = false;
  open(gate(request("/")));
  assert.equal(refusal(gate(request("/"))).status, 503);
});

Deno.test("the last 16 places are for operators, and workers get them at no time", () => {
  const places = 128 + OPERATOR_CONNECTIONS;
  const { gate } = setup({ maxConnections: places, isOperator: isOperatorRequest });
  const operator = request("/", { operator: "yes" });
  const heard = Array.from({ length: 128 }, (_, i) => {
    const events = open(gate(from(`10.0.0.${i}`)));
    events.text("hello");
    return events;
  });

  const { status, message } = refusal(gate(request("/")));
  assert.deepEqual([status, message], [
    503,
    "The engine serves 128 connections and accepts no more",
  ]);
  for (let i = 0; i < OPERATOR_CONNECTIONS; i++) open(gate(operator));
  assert.equal(refusal(gate(operator)).status, 503);
  heard[0]!.closed(1000, "");

  assert.equal(refusal(gate(request("/"))).status, 503, "the place is kept for operators");
  open(gate(operator));
});

Deno.test("a small port keeps an eighth of its places for operators", () => {
  const { gate } = setup({ maxConnections: 8, isOperator: isOperatorRequest });

  for (let i = 0; i < 7; i++) open(gate(request("/")));

  assert.equal(refusal(gate(request("/"))).status, 503);
  open(gate(request("/", { operator: "yes" })));
});

Deno.test("connections of one address that have said nothing leave a quarter to the others", () => {
  const { gate } = setup({ maxConnections: 400 + OPERATOR_CONNECTIONS });
  const silent = Array.from({ length: 300 }, () => open(gate(from("10.0.0.1"))));

  const { status, message } = refusal(gate(from("10.0.0.1")));
  assert.deepEqual([status, message], [
    503,
    "300 connections of 10.0.0.1 have not sent anything yet",
  ]);
  open(gate(from("10.0.0.2"))).text("hello");
  silent[0]!.text("hello");
  open(gate(from("10.0.0.1")));
  assert.equal(refusal(gate(from("10.0.0.1"))).status, 503, "one more has spoken, one has come");
  silent[0]!.text("again");
  silent[0]!.closed(1000, "");
  assert.equal(refusal(gate(from("10.0.0.1"))).status, 503, "it counted no more");
  silent[1]!.closed(1006, "");
  open(gate(from("10.0.0.1")));
});

Deno.test("silent connections of one address keep no operator out", () => {
  const { gate } = setup({ maxConnections: 100, isOperator: isOperatorRequest });
  for (let i = 0; i < 66; i++) open(gate(request("/")));
  assert.match(refusal(gate(request("/"))).message, /have not sent anything yet/);

  open(gate(request("/", { operator: "yes" })));
});

Deno.test("a line that is let in reports to who took it, in full", () => {
  const log: string[] = [];
  const { gate } = setup({
    accept: () => () => ({
      text: (text) => void log.push(`text ${text}`),
      textBytes: (memory, start, end, isPlain) =>
        void log.push(`bytes ${memory} ${start} ${end} ${isPlain}`),
      binary: (bytes) => void log.push(`binary ${bytes}`),
      drained: () => void log.push("drained"),
      suspected: (isSuspect) => void log.push(`suspected ${isSuspect}`),
      retire: () => log.push("retire") > 0,
      closed: (code, reason) => void log.push(`closed ${code} ${reason}`),
    }),
  });

  const events = open(gate(request("/")));
  events.text("a");
  events.textBytes(Uint8Array.of(1, 2, 3), 1, 2, true);
  events.textBytes(Uint8Array.of(4), 0, 1, false);
  events.binary(Uint8Array.of(1));
  events.drained();
  events.suspected(true);
  assert.equal(events.retire?.(), true);
  events.closed(1001, "bye");

  assert.deepEqual(log, [
    "text a",
    "bytes 1,2,3 1 2 true",
    "bytes 4 0 1 false",
    "binary 1",
    "drained",
    "suspected true",
    "retire",
    "closed 1001 bye",
  ]);
});

const SILENT: ConnectionEvents = {
  text() {},
  textBytes() {},
  binary() {},
  drained() {},
  suspected() {},
  closed() {},
};

function setup(
  options: Partial<GateOptions> = {},
): { gate: Gate; opened: string[]; telemetry: string[] } {
  const opened: string[] = [];
  const telemetry: string[] = [];
  const accept = (upgrade: Upgrade): Accept => () => {
    opened.push(upgrade.path);
    return SILENT;
  };
  const acceptTelemetry = ({ address }: Upgrade): Accept => () => {
    telemetry.push(address);
    return SILENT;
  };
  const all = { allowedOrigins: [], maxConnections: 10, accept, acceptTelemetry, ...options };
  return { gate: makeGate(all), opened, telemetry };
}

function request(target: string, headers: Record<string, string> = {}): Upgrade {
  const url = new URL(target, "http://127.0.0.1");
  const { pathname: path, searchParams: query } = url;
  return { path, query, headers: new Headers(headers), address: "127.0.0.1" };
}

function from(address: string): Upgrade {
  return { ...request("/"), address };
}

function isOperatorRequest({ headers }: Upgrade): boolean {
  return headers.has("operator");
}

function open(verdict: Refusal | Accept) {
  assert.ok(typeof verdict === "function", `refused: ${JSON.stringify(verdict)}`);
  const connection: Connection = new FakeConnection("line");
  return verdict(connection);
}

function refusal(verdict: Refusal | Accept): Refusal {
  assert.ok(typeof verdict !== "function", "let in");
  return verdict;
}

Deno.test("telemetry is handed on by its kind, without its mark", () => {
  const { line, frames } = setupTelemetry();

  for (const kind of ["OTLP", "MTRC", "LOGS"]) line.binary(bytes(`${kind}{"a":1}`));

  assert.deepEqual(frames, [
    'OTLP {"a":1} 10.0.0.7',
    'MTRC {"a":1} 10.0.0.7',
    'LOGS {"a":1} 10.0.0.7',
  ]);
});

Deno.test("frames that are not telemetry are dropped", () => {
  const { line, frames } = setupTelemetry();

  for (const text of ["", "LO", "otlp{}", "XXXX{}", '{"type":"ping"}']) line.binary(bytes(text));
  line.text();
  line.drained();
  line.closed();

  assert.deepEqual(frames, []);
});

Deno.test("a line gets its share of each second, and one warning for the rest", () => {
  const { line, frames, clock, logged } = setupTelemetry();
  const half = bytes("LOGS" + "x".repeat(TELEMETRY_BYTES_PER_SECOND / 2));

  for (let i = 0; i < 3; i++) line.binary(half);
  assert.equal(frames.length, 1);

  clock.tick(1_000);
  for (let i = 0; i < 3; i++) line.binary(half);
  assert.equal(frames.length, 2);
  assert.equal(logged.length, 1);
  assert.equal(logged[0]!.fields.address, "10.0.0.7");
});

function setupTelemetry() {
  const clock = new FakeClock();
  const logged: LogLine[] = [];
  const frames: string[] = [];
  const line = new TelemetryConnection({
    clock,
    log: recordingLog(logged),
    address: "10.0.0.7",
    listener: ({ kind, bytes, address, worker_id }) => {
      assert.equal(worker_id, null);
      frames.push(`${kind} ${new TextDecoder().decode(bytes).slice(0, 20)} ${address}`);
    },
  });
  return { line, frames, clock, logged };
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
