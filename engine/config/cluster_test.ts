import assert from "node:assert/strict";
import type { ClusterSettings } from "../ports/config.ts";
import { clusterOf } from "./cluster.ts";
import { parseConfig } from "./config.ts";
import { Fields } from "./fields.ts";
import { readYaml } from "./yaml.ts";

function read(
  text: string,
): { settings: ClusterSettings | undefined; problems: string[] } {
  const problems: string[] = [];
  const source = readYaml("config.yaml", text, () => undefined);
  const fields = new Fields(source, problems, ["cluster"]);
  const settings = clusterOf(fields, (path) => `/etc/engine/${path}`, () => "host-1");
  return { settings, problems: [...source.problems, ...problems] };
}

const LOCAL = "name: shop, nats: ['nats://127.0.0.1:4222']";

Deno.test("without the section an engine is alone", () => {
  assert.deepEqual(read("{}"), { settings: undefined, problems: [] });
});

Deno.test("a name and addresses are enough; the rest has defaults", () => {
  assert.deepEqual(read(`cluster: { ${LOCAL} }`), {
    settings: {
      name: "shop",
      nats: ["nats://127.0.0.1:4222"],
      insecure: false,
      engine_name: "host-1",
      log: "jetstream",
      keeper: true,
      copies: 3,
      require_sync: true,
      monitor: [],
      far_calls: 16,
    },
    problems: [],
  });
});

Deno.test("addresses that other machines reach need a secret, TLS or insecure: true", () => {
  const far = "name: shop, nats: ['nats://n1:4222', 'tls://n2:4222']";
  const isFine = (more: string) => read(`cluster: { ${far}, ${more} }`).problems.length === 0;

  assert.equal(isFine("far_calls: 16"), false);
  assert.equal(isFine("insecure: true"), true);
  assert.equal(isFine("token: abc"), true);
  assert.equal(isFine("user: u, password: p"), true);
  assert.equal(isFine("tls: {}"), false, "an empty mapping is no TLS");
  const log = "log: 'postgres://u@db.example/x'";
  assert.equal(isFine(`token: abc, ${log}`), false);
  assert.equal(isFine(`insecure: true, ${log}`), true);
  for (const way of ["u:p@db.example/x", "db.example/x?sslcert=c.pem", "u@127.0.0.1/x"]) {
    assert.equal(isFine(`token: abc, log: 'postgres://${way}'`), true, way);
  }
  assert.match(
    read(`cluster: { ${far} }`).problems[1]!,
    /^cluster\.nats\[1\]: expected a loopback/,
  );
});

Deno.test("what does not fit is a problem with its place", () => {
  const cases: [string, RegExp][] = [
    ["7", /cluster: expected a mapping/],
    ["{}", /cluster\.name: expected 1 to 64 letters[^]*cluster\.nats: expected the addresses/],
    [`{ ${LOCAL}, names: 1 }`, /cluster\.names: expected one of the keys .*did you mean name\?/],
    ["{ name: 'a.b', nats: ['nats://localhost'] }", /cluster\.name: expected 1 to 64 letters/],
    ["{ name: a, nats: [] }", /cluster\.nats: expected the addresses/],
    ["{ name: a, nats: nats://localhost }", /cluster\.nats: expected a list/],
    ["{ name: a, nats: ['localhost:4222'] }", /nats\[0\]: expected nats:\/\/host:port/],
    ["{ name: a, nats: ['nats://localhost/x'] }", /nats\[0\]: expected nats:\/\/host:port/],
    [
      "{ name: a, nats: ['nats://u:p@localhost'] }",
      /nats\[0\]: expected an address without a user/,
    ],
    [`{ ${LOCAL}, user: u }`, /cluster\.password: expected the password of user/],
    [`{ ${LOCAL}, password: p }`, /cluster\.user: expected the user of password/],
    [`{ ${LOCAL}, token: t, user: u, password: p }`, /cluster\.token: expected one of/],
    [`{ ${LOCAL}, credentials: none.creds }`, /cluster\.credentials: expected a file.*cannot be/],
    [`{ ${LOCAL}, tls: { ca: none.pem } }`, /cluster\.tls\.ca: expected a file/],
    [`{ ${LOCAL}, tls: { key: none.pem } }`, /cluster\.tls\.cert: expected the path of a PEM/],
    [`{ ${LOCAL}, engine_name: 'a b' }`, /cluster\.engine_name: expected 1 to 64/],
    [`{ ${LOCAL}, log: redis }`, /cluster\.log: expected jetstream, none, or postgres/],
    [`{ ${LOCAL}, log: 'postgres://u:p@host' }`, /cluster\.log: expected/],
    [
      `{ ${LOCAL}, log: 'postgres://u@db.example/x' }`,
      /cluster\.log: expected an address with user/,
    ],
    [`{ ${LOCAL}, user: '', password: '' }`, /cluster\.user: expected/],
    [`{ ${LOCAL}, token: '' }`, /cluster\.token: expected/],
    [`{ ${LOCAL}, keeper: 1 }`, /cluster\.keeper: expected true or false/],
    [`{ ${LOCAL}, copies: 2 }`, /cluster\.copies: expected 1, 3 or 5/],
    [`{ ${LOCAL}, copies: 7 }`, /cluster\.copies: expected 1 to 5/],
    [`{ ${LOCAL}, copies: 1 }`, /cluster\.copies: expected 3 or 5, or insecure: true/],
    [`{ ${LOCAL}, monitor: [n1] }`, /cluster\.monitor\[0\]: expected the monitoring address/],
    [`{ ${LOCAL}, far_calls: -1 }`, /cluster\.far_calls: expected 0 to/],
  ];
  for (const [text, problem] of cases) {
    assert.match(read(`cluster: ${text}`).problems.join("\n"), problem, text);
  }
});

Deno.test("no problem shows a password, and listings show none", () => {
  const secret = "verySecretIndeed";
  const { problems } = read(`cluster: { ${LOCAL}, log: 'mysql://u:${secret}@h/db' }`);
  assert.ok(problems.length > 0 && !problems.join().includes(secret));

  const log = `postgres://keeper:${secret}@127.0.0.1/engine`;
  const text = `engine: { cluster: { ${LOCAL}, log: '${log}', user: u, password: ${secret} } }`;
  const { values } = parseConfig(text, "/config.yaml", [], {});

  assert.ok(!JSON.stringify(values).includes(secret));
  const shown = values.find(({ key }) => key === "engine.cluster.log")!;
  assert.equal(shown.value, "postgres://keeper:…@127.0.0.1/engine");
  assert.ok(shown.needs_restart);
});
