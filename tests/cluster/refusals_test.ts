/**
 * What a cluster refuses: servers that are too old, and those that do not know this engine.
 *
 * @module
 */
import { connect, nkeys } from "@nats-io/transport-node";
import assert from "node:assert/strict";
import { openJetStreamLog } from "../../engine/cluster/jet_stream_log.ts";
import { NatsBus } from "../../engine/cluster/nats_bus.ts";
import { openPostgresLog } from "../../engine/cluster/postgres_log.ts";
import { systemClock } from "../../engine/platform/system_clock.ts";
import type { ClusterSettings } from "../../engine/ports/config.ts";
import { until } from "../fakes/until.ts";
import { keptLog } from "./kept_log.ts";
import { startNats, startPostgres, withoutNats, withoutPostgres } from "./servers.ts";

/** A port of a server that says something else where `change` does. */
function proxy(port: number, change: (text: string) => string) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const open = new Set<Deno.Conn>();
  const serve = async (client: Deno.Conn): Promise<void> => {
    const server = await Deno.connect({ hostname: "127.0.0.1", port });
    open.add(client).add(server);
    const answers = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        const text = change(String.fromCharCode(...chunk));
        controller.enqueue(Uint8Array.from(text, (char) => char.charCodeAt(0)));
      },
    });
    await Promise.allSettled([
      client.readable.pipeTo(server.writable),
      server.readable.pipeThrough(answers).pipeTo(client.writable),
    ]);
  };
  const serving = (async () => {
    const all: Promise<void>[] = [];
    for await (const client of listener) all.push(serve(client));
    await Promise.allSettled(all);
  })();
  return {
    port: (listener.addr as Deno.NetAddr).port,
    async [Symbol.asyncDispose]() {
      listener.close();
      for (const one of open) {
        try {
          one.close();
        } catch {
          // It has ended.
        }
      }
      await serving;
    },
  };
}

Deno.test({
  name: "a nats-server before 2.10.23 keeps no state",
  ignore: withoutNats,
  sanitizeResources: false,
  async fn() {
    await using nats = await startNats();
    for (const [version, isFine] of [["2.9.10", false], ["2.10.22", false], ["2.10.23", true]]) {
      await using old = proxy(
        nats.nodes[0]!.port,
        (text) => text.replace(/("version":")[^"]+/, `$1${version}`),
      );
      const line = await connect({ servers: `127.0.0.1:${old.port}` });
      const setup = { line, cluster: "c", copies: 1, monitors: [], clock: systemClock };
      const opening = openJetStreamLog({ ...setup, log: keptLog(), insecure: false });
      if (isFine) await (await opening)[Symbol.asyncDispose]();
      else {
        await assert.rejects(opening, {
          code: "store_unavailable",
          message: new RegExp(`nats-server ${version} is older than 2\\.10\\.23`),
        });
      }
      await line.close();
    }
  },
});

/** How a row of four begins, with a first text of two characters. */
const FOUR_COLUMNS = "\0\x04\0\0\0\x02";

Deno.test({
  name: "a Postgres before 13 is refused, and named",
  ignore: withoutPostgres,
  sanitizeResources: false,
  async fn() {
    await using postgres = await startPostgres();
    // The first column of an answer is the version, a text of two digits.
    await using old = proxy(
      postgres.port,
      (text) => text.replace(new RegExp(`(D[^]{4}${FOUR_COLUMNS})1\\d`), "$112"),
    );
    const url = postgres.url.replace(`:${postgres.port}`, `:${old.port}`);
    const setup = { url, cluster: "c", insecure: false, clock: systemClock, log: keptLog() };

    await assert.rejects(openPostgresLog(setup), {
      code: "store_unavailable",
      message: /version 12 is before 13/,
    });
  },
});

/** A bus that identifies itself by `identity`, and what it logged. */
function open(urls: readonly string[], identity: Partial<ClusterSettings>) {
  const log = keptLog();
  const settings = { name: "c", nats: urls, engine_name: "a", ...identity };
  const bus = new NatsBus({
    settings: settings as unknown as ClusterSettings,
    clock: systemClock,
    log,
  });
  bus.start();
  return { bus, lines: log.lines };
}

async function identifies(more: string, good: string, bad: string): Promise<void> {
  await using nats = await startNats({ jetstream: false, more });
  const directory = await Deno.makeTempDir();
  const files = await Promise.all([good, bad].map(async (text, i) => {
    await Deno.writeTextFile(`${directory}/${i}.creds`, text);
    return `${directory}/${i}.creds`;
  }));
  const [engine, stranger] = files.map((credentials) => open(nats.urls, { credentials }));

  await engine!.bus.connection();
  await until(() => stranger!.lines.some((line) => /cannot be reached/.test(line)));

  assert.equal(stranger!.bus.isConnected, false);
  assert.match(stranger!.lines.join("\n"), /Authorization Violation/i);
  for (const { bus } of [engine!, stranger!]) await bus[Symbol.asyncDispose]();
  await Deno.remove(directory, { recursive: true });
}

Deno.test({
  name: "a server that resets the connections of a wrong password ends no process",
  ignore: withoutNats,
  async fn() {
    await using nats = await startNats({
      jetstream: false,
      more: `authorization { user: engine, password: right }`,
    });
    // Of a hundred refused connections, some 10 are reset after the client has left its socket.
    const all = Array.from(
      { length: 100 },
      () => open(nats.urls, { user: "engine", password: "x" }),
    );
    for (const { bus, lines } of all) {
      await until(() => lines.some((line) => /Authorization Violation/i.test(line)));
      await bus[Symbol.asyncDispose]();
    }
  },
});

type KeyPair = ReturnType<typeof nkeys.createUser>;

const encoder = new TextEncoder();
const seedOf = (key: KeyPair): string => new TextDecoder().decode(key.getSeed());

/** Signs a claim as the tools of NATS do. */
function jwt(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const encode = (bytes: Uint8Array): string => bytes.toBase64({ alphabet: "base64url" });
  const part = (value: object): string =>
    encode(encoder.encode(JSON.stringify(value))).replaceAll("=", "");
  const claim = {
    jti: name,
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    name,
    sub: subject.getPublicKey(),
    nats: { version: 2, ...nats },
  };
  const text = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part(claim)}`;
  return `${text}.${encode(issuer.sign(encoder.encode(text))).replaceAll("=", "")}`;
}

function credentialsOf(user: KeyPair, token: string): string {
  return `-----BEGIN NATS USER JWT-----\n${token}\n------END NATS USER JWT------\n\n` +
    `-----BEGIN USER NKEY SEED-----\n${seedOf(user)}\n------END USER NKEY SEED------\n`;
}

Deno.test({
  name: "an NKey in the file of credentials identifies an engine, another one does not",
  ignore: withoutNats,
  async fn() {
    const [engine, stranger] = [nkeys.createUser(), nkeys.createUser()];
    const more = `authorization { users: [ { nkey: ${engine.getPublicKey()} } ] }`;
    await identifies(more, `${seedOf(engine)}\n`, `${seedOf(stranger)}\n`);
  },
});

Deno.test({
  name: "a JWT of the account identifies an engine, one that another account signed does not",
  ignore: withoutNats,
  async fn() {
    const [operator, account, other] = [
      nkeys.createOperator(),
      nkeys.createAccount(),
      nkeys.createAccount(),
    ];
    const limits = {
      subs: -1,
      conn: -1,
      leaf: -1,
      imports: -1,
      exports: -1,
      data: -1,
      payload: -1,
    };
    const more = `operator: "${jwt(operator, operator, "op", { type: "operator" })}"\n` +
      `resolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: "${
        jwt(operator, account, "engines", {
          type: "account",
          limits: { ...limits, wildcards: true },
        })
      }" }`;
    const token = (signer: KeyPair, user: KeyPair): string =>
      jwt(signer, user, "engine", { type: "user", subs: -1, data: -1, payload: -1 });
    const [engine, stranger] = [nkeys.createUser(), nkeys.createUser()];
    await identifies(
      more,
      credentialsOf(engine, token(account, engine)),
      credentialsOf(stranger, token(other, stranger)),
    );
  },
});
