import assert from "node:assert/strict";
import type { VmStatus } from "../../../engine/mod.ts";
import type { EngineConnection } from "../../connect.ts";
import {
  checkConnection,
  checkControlKey,
  checkDescriptors,
  checkPort,
  checkVersion,
  checkVm,
  findPortHolder,
  KNOWN_PORTS,
  parseListeners,
  unknown,
  unreachable,
} from "./doctor_checks.ts";

/** A connection on which a call takes `ms`, to an engine whose clock is off by `skew`. */
function line(ms: number, skew: number) {
  let now = 0;
  const wall = () => 1_700_000_000_000 + now;
  const engine: Pick<EngineConnection, "call"> & AsyncDisposable = {
    call: () => {
      now += ms / 2;
      const timestamp = wall() + skew;
      now += ms / 2;
      return Promise.resolve({ timestamp });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return { engine, terminal: { now: () => now, wall } };
}

for (
  const [ms, skew, trip, clock] of [
    [2, 0, "ok", "ok"],
    [60, 3_000, "warn", "warn"],
    [1_500, -120_000, "fail", "fail"],
  ] as const
) {
  Deno.test(`A call of ${ms} ms is ${trip}, a clock that differs by ${skew} ms is ${clock}`, async () => {
    const at = line(ms, skew);

    const [first, second] = await checkConnection(at.engine, at.terminal);

    assert.deepEqual([first!.status, first!.measured], [trip, ms]);
    assert.deepEqual([second!.status, second!.measured], [clock, Math.abs(skew)]);
  });
}

Deno.test("An engine without a timestamp has no skew", async () => {
  const { engine, terminal } = line(1, 0);
  const [, check] = await checkConnection({ ...engine, call: () => Promise.resolve({}) }, terminal);

  assert.deepEqual([check!.status, check!.measured], ["warn", null]);
});

Deno.test("Different versions are a warning", () => {
  assert.equal(checkVersion("1.0.0", "1.0.0").status, "ok");
  assert.match(checkVersion("1.0.0", "1.1.0").message, /1\.0\.0.*1\.1\.0/);
});

const KEY = { control_key: { path: "/keys/1.json", problem: null } };

Deno.test("A command line with the key may manage workers", () => {
  assert.equal(checkControlKey(KEY, true).status, "ok");
  assert.match(checkControlKey(KEY, false).message, /\/keys\/1\.json/);
  const broken = { control_key: { path: "/keys/1.json", problem: "no room on the disk" } };
  assert.deepEqual(
    [checkControlKey(broken, true).status, checkControlKey(broken, true).message],
    ["warn", "no room on the disk"],
  );
});

const VM = { ready: true, missing: [], accelerator: "kvm", accelerator_reason: null } as unknown;

Deno.test("MicroVMs are ok with KVM, and a warning without it or when they cannot run", () => {
  assert.equal(checkVm(VM as VmStatus).status, "ok");
  const slow = {
    ...VM as VmStatus,
    accelerator: "tcg" as const,
    accelerator_reason: "no /dev/kvm",
  };
  assert.match(checkVm(slow).message, /slowly.*no \/dev\/kvm/);
  const none = { ...VM as VmStatus, ready: false, missing: ["QEMU", "a kernel"] };
  assert.match(checkVm(none).message, /QEMU; a kernel/);
  assert.match(checkVm(none).remedy!, /engine vm setup/);
});

const [WORKERS, HTTP] = KNOWN_PORTS;
const FREE = { isTaken: false, program: null, pid: null, isConsole: false };
const NGINX = { isTaken: true, program: "nginx", pid: 12, isConsole: false };
const ENDPOINTS = [{ name: "workers", url: "ws://127.0.0.1:49134" }];

Deno.test("A port is ok when it is free, the engine's or a console's", () => {
  assert.equal(checkPort(WORKERS, FREE, undefined).message, "It is free for workers");
  const own = checkPort(WORKERS, { ...NGINX, program: "deno" }, ENDPOINTS);
  assert.deepEqual([own.status, own.message], ["ok", "The engine serves workers"]);
  assert.equal(checkPort(HTTP, { ...NGINX, isConsole: true }, ENDPOINTS).status, "ok");
});

Deno.test("A port of another program fails the check, which names the program", () => {
  const check = checkPort(HTTP, NGINX, undefined);
  assert.equal(check.status, "fail");
  assert.match(check.message, /nginx \(pid 12\)/);
  assert.match(check.remedy!, /port of engine-http/);
  assert.equal(checkPort(HTTP, NGINX, ENDPOINTS).status, "warn");
  const unnamed = { ...NGINX, pid: null, program: null };
  assert.match(checkPort(HTTP, unnamed, undefined).message, /another program/);
});

Deno.test("Failed checks say what to do", () => {
  const gone = unreachable(new Error("The engine is not running at ws://x; start it with: engine"));
  assert.equal(gone.message, "The engine is not running at ws://x");
  assert.equal(gone.remedy, "start it with: engine");
  assert.match(unreachable("odd").remedy!, /Start it/);
  assert.match(unknown("microVMs", new Error("no /proc")).message, /no \/proc/);
});

Deno.test("A port without a listener is free", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();

  assert.deepEqual(await findPortHolder(port), {
    isTaken: false,
    program: null,
    pid: null,
    isConsole: false,
  });
});

Deno.test("A port is held by the program that listens", async () => {
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response("hello"),
  );

  const holder = await findPortHolder(server.addr.port);

  assert.equal(holder.isTaken, true);
  assert.equal(holder.isConsole, false);
  if (Deno.build.os === "linux") assert.equal(holder.pid, Deno.pid);
});

Deno.test("The engine's console is recognised by its page", async () => {
  const page = '<meta name="engine-console-token" content="x">';
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(page),
  );

  assert.equal((await findPortHolder(server.addr.port)).isConsole, true);
});

Deno.test("parseListeners() finds the sockets that listen on the port, and no others", () => {
  const table = [
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
    "   0: 0100007F:0C27 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1",
    "   1: 0100007F:0C27 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1",
    "   2: 00000000:0C28 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1",
    "   3: broken",
    "",
  ].join("\n");

  assert.deepEqual(parseListeners(table, 3111), ["111"]);
  assert.deepEqual(parseListeners(table, 3112), ["333"]);
  assert.deepEqual(parseListeners("", 3111), []);
});

Deno.test("Few descriptors, or few that are free, are a warning with what to do", () => {
  const check = (limit: number, open: number | null) =>
    checkDescriptors({ descriptors: { limit, open } });

  assert.equal(check(20_000, 40)?.status, "ok");
  assert.equal(check(20_000, null)?.status, "ok");
  assert.equal(check(20_000, 17_000)?.status, "warn");
  assert.equal(check(256, 40)?.status, "warn");
  assert.match(check(256, 40)!.remedy!, /ulimit -n/);
  assert.equal(checkDescriptors({}), undefined);
});
