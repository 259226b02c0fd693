import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Certificates, findOpenssl } from "../../tests/fakes/certificates.ts";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { systemClock } from "../platform/system_clock.ts";
import type { Turns } from "../ports/turns.ts";
import { TickBudget } from "../transport/tick_budget.ts";
import { CONNECT_MS, HttpClient, type HttpRequest, REDIRECTS_MAX } from "./http_client.ts";
import { rulesOf } from "./target.ts";

const OPEN = { allow: ["*:*", "http://*:*"], allow_private: true, auth_env: [] };
const never = new AbortController().signal;

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** A server on this machine that records what arrives. */
function serve(
  answer: (seen: Seen) => Response = () => new Response("{}"),
  hostname = "127.0.0.1",
) {
  const seen: Seen[] = [];
  const server = Deno.serve({ port: 0, hostname, onListen() {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method } = request;
    const headers = Object.fromEntries(request.headers);
    seen.push({ method, path: pathname + search, headers, body: await request.text() });
    return answer(seen.at(-1)!);
  });
  return { seen, port: server.addr.port, [Symbol.asyncDispose]: () => server.shutdown() };
}

/** A client whose names stand for what `names` says. */
function clientOf(names: Record<string, readonly string[] | Error> = {}) {
  const asked: string[] = [];
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: (host) => {
      asked.push(host);
      const found = names[host] ?? [];
      return found instanceof Error ? Promise.reject(found) : Promise.resolve(found);
    },
  });
  return { client, asked, [Symbol.dispose]: () => client.close() };
}

function to(url: string, more: Partial<HttpRequest> = {}, settings = {}): HttpRequest {
  return {
    url: new URL(url),
    method: "POST",
    headers: {},
    ownHeaders: {},
    body: new TextEncoder().encode("{}"),
    rules: rulesOf({ ...OPEN, ...settings }),
    signal: never,
    ...more,
  };
}

async function textOf(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of answer) text += new TextDecoder().decode(chunk);
  return text;
}

Deno.test("a request goes to the address of its host, with the host's own name", async () => {
  await using server = serve(() => new Response("[1]"));
  using fake = clientOf({ "api.example.test": ["127.0.0.1"] });

  const url = `http://api.example.test:${server.port}/a?b=c`;
  const answer = await fake.client.request(to(url, { headers: { "x-a": "1" } }));

  assert.equal(await textOf(answer), "[1]");
  const { method, path, headers, body } = server.seen[0]!;
  assert.deepEqual([method, path, body], ["POST", "/a?b=c", "{}"]);
  assert.equal(headers.host, `api.example.test:${server.port}`);
  assert.deepEqual([headers["x-a"], headers["content-length"]], ["1", "2"]);
  assert.deepEqual(fake.asked, ["api.example.test"]);
});

Deno.test("what one read brings of an answer is handled in turns", async () => {
  await using server = serve(() => new Response("x".repeat(60_000)));
  const ticks = new TickBudget();
  let queued = 0;
  const turns: Turns = {
    queue: (work) => (queued++, ticks.queue(work)),
    isSpent: () => ticks.isSpent(),
  };
  const client = new HttpClient({ clock: systemClock, turns, resolve: () => Promise.resolve([]) });

  const answer = await client.request(to(`http://127.0.0.1:${server.port}/`));

  assert.equal((await textOf(answer)).length, 60_000);
  assert.ok(queued > 0);
  client.close();
});

Deno.test("a host is resolved once per request, so a later answer has no effect", async () => {
  await using server = serve();
  const answers = [["127.0.0.1"], ["169.254.169.254"]];
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: () => Promise.resolve(answers.shift()!),
  });
  const url = `http://rebinding.example.test:${server.port}/`;

  await textOf(await client.request(to(url)));
  await assert.rejects(client.request(to(url)), { message: /never requested/ });

  assert.equal(server.seen.length, 1);
  client.close();
});

Deno.test("a host of which one address is not allowed is not requested at all", async () => {
  await using server = serve();
  using fake = clientOf({
    "mixed.test": ["127.0.0.1", "169.254.169.254"],
    "private.test": ["127.0.0.1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "none.test": [],
  });
  const failure = (host: string, settings = {}) =>
    fake.client.request(to(`http://${host}:${server.port}/`, {}, settings));

  await assert.rejects(failure("mixed.test"), { message: /resolves to .* never requested/ });
  for (const host of ["private.test", "mapped.test", "nat64.test"]) {
    await assert.rejects(failure(host, { allow_private: false }), (thrown: Error) => {
      assert.match(thrown.message, /resolves to a private address; .*allow_private/);
      assert.ok(!thrown.message.includes("127"), "the address is not shown");
      return true;
    });
  }
  await assert.rejects(failure("none.test"), { message: /has no address/ });
  await assert.rejects(failure("127.0.0.1", { allow_private: false }), { message: /private/ });
  await assert.rejects(failure("mixed.test", { allow: [] }), { message: /not among the allowed/ });
  assert.equal(server.seen.length, 0);
});

Deno.test("the next address is tried where one refuses the connection", async () => {
  await using server = serve();
  using fake = clientOf({ "two.test": ["127.0.0.2", "127.0.0.1"], "one.test": ["127.0.0.2"] });

  await textOf(await fake.client.request(to(`http://two.test:${server.port}/`)));

  assert.equal(server.seen.length, 1);
  await assert.rejects(fake.client.request(to(`http://one.test:${server.port}/`)), {
    code: "http_request_failed",
    message: `http://one.test:${server.port} refuses the connection; start its service, or ` +
      "correct the url of the function",
    details: { url: `http://one.test:${server.port}`, reason: "ECONNREFUSED" },
  });
});

Deno.test("a name that cannot be resolved is said", async () => {
  using fake = clientOf({ "no.test": Object.assign(new Error("x"), { code: "ENOTFOUND" }) });

  await assert.rejects(fake.client.request(to("https://no.test/")), {
    code: "http_request_failed",
    message: /https:\/\/no\.test has a name that cannot be resolved/,
  });
});

Deno.test("a request can be ended while its host is resolved", async () => {
  const client = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve: () => new Promise(() => {}),
  });
  const ended = new AbortController();
  const request = client.request(to("https://slow.test/", { signal: ended.signal }));

  ended.abort(new Error("cancelled"));

  await assert.rejects(request, { message: "cancelled" });
  const { signal } = ended;
  await assert.rejects(client.request(to("https://a.test/", { signal })), { message: "cancelled" });
});

Deno.test("a request can be ended while it waits for its answer", async () => {
  const closed = Promise.withResolvers<void>();
  const ended = new AbortController();
  using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const accepted = (async () => {
    using connection = await listener.accept();
    const bytes = new Uint8Array(1_000);
    await connection.read(bytes);
    ended.abort(new Error("cancelled"));
    while (await connection.read(bytes).catch(() => null) !== null);
    closed.resolve();
  })();
  using fake = clientOf();

  const url = `http://127.0.0.1:${listener.addr.port}/`;
  await assert.rejects(fake.client.request(to(url, { signal: ended.signal })), {
    message: "cancelled",
  });

  await closed.promise;
  await accepted;
});

Deno.test("an address that does not accept the connection in time is given up", async () => {
  const clock = new FakeClock();
  // Accepts no TLS: the handshake never ends.
  using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
  const accepted = listener.accept();
  const client = new HttpClient({
    clock,
    turns: new TickBudget(),
    resolve: () => Promise.resolve(["127.0.0.1"]),
  });
  const request = client.request(to(`https://slow.test:${listener.addr.port}/`));
  request.catch(() => {});
  using _connection = await accepted;

  clock.tick(CONNECT_MS);

  await assert.rejects(request, { message: /does not accept a connection in time/ });
  client.close();
});

/** Answers all requests but the second one, of which `then` gets the connection. */
async function answerOnce(
  listener: Deno.TcpListener,
  then: (connection: Deno.TcpConn) => Promise<void>,
): Promise<number> {
  let requests = 0;
  const connections: Promise<void>[] = [];
  const serveOne = async (connection: Deno.TcpConn): Promise<void> => {
    using open = connection;
    const bytes = new Uint8Array(4_096);
    for (let read = await open.read(bytes); read; read = await open.read(bytes).catch(() => 0)) {
      if (!new TextDecoder().decode(bytes.subarray(0, read)).includes("HTTP/1.1")) continue;
      if (++requests === 2) return await then(open);
      await open.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"));
    }
  };
  for await (const connection of listener) connections.push(serveOne(connection));
  await Promise.all(connections);
  return requests;
}

Deno.test("a request on a kept connection is never sent twice", async () => {
  const ended = new AbortController();
  const ends: [(connection: Deno.TcpConn) => Promise<void>, RegExp][] = [
    [() => Promise.resolve(), /closed the connection before it had answered/],
    [async (connection) => {
      ended.abort(new Error("cancelled"));
      await connection.read(new Uint8Array(1)).catch(() => null);
    }, /cancelled/],
  ];
  for (const [then, message] of ends) {
    using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const served = answerOnce(listener, then);
    using fake = clientOf();
    const url = `http://127.0.0.1:${listener.addr.port}/`;
    await textOf(await fake.client.request(to(url)));
    await new Promise((resolve) => setTimeout(resolve)); // The connection is kept from now on.

    const { signal } = ended;
    await assert.rejects(fake.client.request(to(url, { signal })), { message });

    // One that is sent again would arrive before this one.
    await textOf(await fake.client.request(to(url)));
    fake.client.close();
    listener.close();
    assert.equal(await served, 3);
  }
});

Deno.test("proxies of the environment are not used", async () => {
  await using proxy = serve();
  await using server = serve();
  const set = { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: `http://127.0.0.1:${proxy.port}` };
  for (const [name, value] of Object.entries(set)) Deno.env.set(name, value);
  try {
    using fake = clientOf();
    await textOf(await fake.client.request(to(`http://127.0.0.1:${server.port}/`)));
  } finally {
    for (const name of Object.keys(set)) Deno.env.delete(name);
  }

  assert.deepEqual([proxy.seen.length, server.seen.length], [0, 1]);
});

Deno.test("redirects that keep the payload are followed, with the own headers at home only", async () => {
  await using other = serve();
  await using server = serve(({ path }) => {
    if (path === "/first") return redirect(307, "/second");
    if (path === "/second") return redirect(308, `http://127.0.0.1:${other.port}/third`);
    return new Response("{}");
  });
  using fake = clientOf();

  const ownHeaders = { authorization: "Bearer secret" };
  const headers = { "x-engine-function-path": "a" };
  const url = `http://127.0.0.1:${server.port}/first`;
  await textOf(await fake.client.request(to(url, { headers, ownHeaders })));

  const keys = server.seen.map(({ headers }) => headers.authorization);
  assert.deepEqual(keys, ["Bearer secret", "Bearer secret"]);
  const [last] = other.seen;
  assert.deepEqual([last!.method, last!.body, last!.path], ["POST", "{}", "/third"]);
  assert.equal(last!.headers.authorization, undefined);
  assert.equal(last!.headers["x-engine-function-path"], "a");
  assert.equal(last!.headers.host, `127.0.0.1:${other.port}`);
});

Deno.test("303 asks for the answer elsewhere, with GET and no payload", async () => {
  await using server = serve(({ path }) =>
    path === "/" ? redirect(303, "/result") : new Response("7")
  );
  using fake = clientOf();

  const answer = await fake.client.request(to(`http://127.0.0.1:${server.port}/`));

  assert.equal(await textOf(answer), "7");
  const { method, body, headers } = server.seen[1]!;
  assert.deepEqual([method, body, headers["content-length"]], ["GET", "", undefined]);
});

Deno.test("a redirect is not followed to what may not be requested", async () => {
  await using target = serve();
  const places: Record<string, string> = {
    "/private": "http://127.0.0.2/",
    "/metadata": "http://169.254.169.254/latest/meta-data/",
    "/mapped": "http://[::ffff:169.254.169.254]/",
    "/name": "http://inside.test/",
    "/file": "file:///etc/passwd",
    "/user": "http://user:pw@127.0.0.1/",
    "/other": `http://127.0.0.1:${target.port}/`,
    "/bad": "http://[",
  };
  await using server = serve(({ path }) => redirect(307, places[path]!));
  using fake = clientOf({ "inside.test": ["10.0.0.1"], "front.test": ["127.0.0.1"] });
  // Its own address is private as well, which only this rule of the test allows.
  const settings = { allow: [`http://front.test:${server.port}`, "http://inside.test"] };
  const ask = (path: string) =>
    fake.client.request(to(`http://front.test:${server.port}${path}`, {}, settings));

  for (const path of ["/private", "/metadata", "/mapped", "/other"]) {
    await assert.rejects(
      ask(path),
      {
        message:
          /is not requested, as it is (not among the allowed|an address that is never requested)/,
      },
      path,
    );
  }
  for (const path of ["/file", "/user", "/bad"]) {
    await assert.rejects(ask(path), { message: /redirects to (an|no valid) address/ }, path);
  }
  const open = { allow: ["http://*:*"] };
  const metadata = to(`http://front.test:${server.port}/metadata`, {}, open);
  await assert.rejects(fake.client.request(metadata), { message: /never requested/ });
  assert.equal(target.seen.length, 0);
});

Deno.test("a redirect that would lose the payload, or never ends, is an error", async () => {
  await using server = serve(({ path }) =>
    path === "/moved" ? redirect(301, "https://new.test/x") : redirect(307, "/again")
  );
  using fake = clientOf();
  const base = `http://127.0.0.1:${server.port}`;

  await assert.rejects(fake.client.request(to(`${base}/moved`)), {
    message: /answers 301, which would lose the payload; .* at https:\/\/new\.test/,
  });
  await assert.rejects(fake.client.request(to(`${base}/again`)), {
    message: `${base} redirects more than ${REDIRECTS_MAX} times`,
  });
  assert.equal(server.seen.length, 1 + REDIRECTS_MAX + 1);
});

Deno.test("what answers in another protocol is said", async () => {
  const answers: [string, RegExp][] = [
    ["SSH-2.0-OpenSSH\r\n", /does not answer in HTTP\/1\.1/],
    ["", /closed the connection before it had answered/],
    [`HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(50_000)}\r\n`, /headers that are too large/],
    ["HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", /protocol/],
    ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na", /HTTP\/1\.1/],
  ];
  for (const [text, message] of answers) {
    using listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const done = answerRaw(listener, text);
    using fake = clientOf();

    const url = `http://127.0.0.1:${listener.addr.port}/`;
    await assert.rejects(fake.client.request(to(url)), { code: "http_request_failed", message });

    await done;
  }
});

Deno.test("https checks the certificate against the name, at an address that was checked", async () => {
  if (!await findOpenssl("https of functions")) return;
  await using files = await Certificates.make();
  await files.sign("named.pem", "named-key.pem", "DNS:api.example.test");
  const hosts: string[] = [];
  const server = Deno.serve({
    port: 0,
    hostname: "127.0.0.1",
    cert: files.read("named.pem"),
    key: files.read("named-key.pem"),
    onListen() {},
  }, ({ headers }) => {
    hosts.push(headers.get("host")!);
    return new Response("{}");
  });
  await using _server = { [Symbol.asyncDispose]: () => server.shutdown() };
  const resolve = () => Promise.resolve(["127.0.0.1"]);
  const trusting = new HttpClient({
    clock: systemClock,
    turns: new TickBudget(),
    resolve,
    ca: files.read("ca.pem"),
  });
  const strict = new HttpClient({ clock: systemClock, turns: new TickBudget(), resolve });
  const { port } = server.addr;
  const ask = (client: HttpClient, host: string) => client.request(to(`https://${host}:${port}/`));

  for (let i = 0; i < 2; i++) await textOf(await ask(trusting, "api.example.test"));
  for (const host of ["other.example.test", "127.0.0.1"]) {
    await assert.rejects(ask(trusting, host), { message: /certificate that is not accepted/ });
  }
  await assert.rejects(ask(strict, "api.example.test"), { message: /NODE_EXTRA_CA_CERTS/ });

  assert.deepEqual(new Set(hosts), new Set([`api.example.test:${port}`]));
  trusting.close();
  strict.close();
});

Deno.test("https to a port without TLS is said", async () => {
  await using server = serve();
  using fake = clientOf({ "plain.test": ["127.0.0.1"] });

  await assert.rejects(fake.client.request(to(`https://plain.test:${server.port}/`)), {
    message: /does not answer in TLS; .* http:/,
  });
});

async function answerRaw(listener: Deno.TcpListener, text: string): Promise<void> {
  using connection = await listener.accept();
  await connection.read(new Uint8Array(1_000));
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) {
    const written = await connection.write(bytes.subarray(at)).catch(() => bytes.length);
    at += written;
  }
}

function redirect(status: number, location: string): Response {
  return new Response(null, { status, headers: { location } });
}
