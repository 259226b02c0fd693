import assert from "node:assert/strict";
import { Command } from "@commander-js/extra-typings";
import type { VmStatus } from "../../../engine/mod.ts";
import { type Answer, FakeTerminal } from "../../../tests/fakes/fake_terminal.ts";
import { CommandError } from "../../failure.ts";
import { addDoctor, type DoctorMachine } from "./doctor.ts";
import type { DoctorCheck } from "./doctor_checks.ts";

const MACHINE: DoctorMachine = {
  version: "1.2.3",
  vm: () =>
    Promise.resolve(
      {
        ready: true,
        missing: [],
        accelerator: "kvm",
        accelerator_reason: null,
      } as unknown as VmStatus,
    ),
  portHolder: () => Promise.resolve({ isTaken: false, program: null, pid: null, isConsole: false }),
  hasKey: () => Promise.resolve(true),
};

const check = (status: DoctorCheck["status"]): DoctorCheck => ({
  name: "disk",
  status,
  measured: 3,
  message: "A small value is on disk after 3 ms",
  remedy: status === "ok" ? null : "Use a faster disk",
});

function setup(status: DoctorCheck["status"], more: { unreachable?: Error } = {}) {
  const functions: Record<string, Answer> = {
    "engine::supervisor::info": () => ({
      version: "1.2.3",
      endpoints: [{ name: "workers", url: "ws://127.0.0.1:49134" }],
      control_key: { path: "/k", problem: null },
    }),
    "engine::health::check": () => ({ timestamp: terminal.wall() }),
    "engine::health::measure": () => ({ checks: [check(status)] as never }),
    "engine::workers::list": () => ({ workers: [] }),
  };
  const terminal: FakeTerminal = new FakeTerminal({ functions, ...more });
  const run = (machine: Partial<DoctorMachine>, ...args: string[]): Promise<number> => {
    const program = new Command("engine").exitOverride();
    addDoctor(program as Command, terminal, () => Promise.resolve({ ...MACHINE, ...machine }));
    return terminal.runWith(program as Command, "doctor", ...args);
  };
  return { terminal, run };
}

Deno.test("doctor prints its checks, and that all are ok", async () => {
  const { terminal, run } = setup("ok");

  assert.equal(await run({}), 0);

  assert.deepEqual(terminal.outLines, [
    "STATUS  CHECK           FOUND",
    "ok      version         Engine and command line are 1.2.3",
    "ok      round trip      A call takes 0 ms, the longest of 20 took 0 ms",
    "ok      clock           The engine's clock differs from this one by 0 ms",
    "ok      control key     This command line may manage workers",
    "ok      disk            A small value is on disk after 3 ms",
    "ok      workers answer  Every worker answers the engine's pings",
    "ok      cluster         This engine is alone; see docs/how-to/cluster.md",
    "ok      port 49134      The engine serves workers",
    "ok      port 3111       It is free for http",
    "ok      port 3113       It is free for console",
    "ok      microVMs        Workers in microVMs run with KVM",
    "All 11 checks passed",
  ]);
  assert.equal(terminal.openConnections, 0);
});

Deno.test("doctor says what to do, and a warning does not fail it", async () => {
  const { terminal, run } = setup("warn");

  assert.equal(await run({}), 0);
  const at = terminal.outLines.findIndex((line) => line.includes("disk"));
  assert.equal(terminal.outLines[at + 1], "        Use a faster disk");
  assert.equal(terminal.outLines.at(-1), "0 checks failed, 1 warning, of 11");
});

Deno.test("doctor ends with 1 when a check fails", async () => {
  const { terminal, run } = setup("fail");

  assert.equal(await run({}, "--json"), 1);
  const { ok, checks } = JSON.parse(terminal.outText);
  assert.equal(ok, false);
  assert.deepEqual(checks.find(({ name }: DoctorCheck) => name === "disk"), check("fail"));
});

Deno.test("doctor checks the machine also without an engine", async () => {
  const gone = new CommandError("The engine is not running at ws://x; start it with: engine");
  const { terminal, run } = setup("ok", { unreachable: gone });
  const nginx = { isTaken: true, program: "nginx", pid: 12, isConsole: false };

  assert.equal(await run({ portHolder: () => Promise.resolve(nginx) }), 1);
  assert.match(
    terminal.outText,
    /fail +engine +The engine is not running at ws:\/\/x\n +start it with: engine/,
  );
  assert.match(terminal.outText, /fail +port 3111 +It is taken by nginx \(pid 12\)/);
});

Deno.test("doctor continues when a check cannot be made", async () => {
  const { terminal, run } = setup("ok");

  assert.equal(await run({ vm: () => Promise.reject(new Error("no /proc")) }), 0);
  assert.match(terminal.outText, /warn +microVMs +It could not be checked: no \/proc/);
});

Deno.test("Control characters of a worker's name do not reach the terminal", async () => {
  const { terminal, run } = setup("ok");
  terminal.calls.length = 0;
  const odd = { isTaken: true, program: "\x1b[2Jevil", pid: 1, isConsole: false };
  await run({ portHolder: () => Promise.resolve(odd) });

  assert.ok(!terminal.outText.includes("\x1b"));
});
