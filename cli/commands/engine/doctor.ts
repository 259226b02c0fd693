/**
 * `engine doctor`: checks the engine and this machine, and says what to do about problems.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { EngineInfo, VmStatus } from "../../../engine/mod.ts";
import type { Json } from "../../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../../arguments.ts";
import type { EngineAddress } from "../../connect.ts";
import { EXIT_FAILED, ExitWith, UsageError } from "../../failure.ts";
import { checkCluster } from "../../cluster/checks.ts";
import { readCluster } from "../../cluster/view.ts";
import { compactJson, count, printable, renderTable } from "../../render.ts";
import type { Terminal } from "../../terminal.ts";
import {
  checkConnection,
  checkControlKey,
  checkDescriptors,
  checkPort,
  checkVersion,
  checkVm,
  type DoctorCheck,
  findPortHolder,
  KNOWN_PORTS,
  type PortHolder,
  unknown,
  unreachable,
} from "./doctor_checks.ts";
import { checkListeners } from "./doctor_listeners.ts";
import { checkSuspects, readSuspects } from "../worker/diagnosis.ts";

const EXAMPLES = `
Exit codes: 0 all checks pass, 1 a check fails.

Examples:
  engine doctor
  engine doctor --json`;

/** What the command reads from this machine; tests provide another one. */
export interface DoctorMachine {
  /** Version of this command line. */
  readonly version: string;
  vm(): Promise<VmStatus>;
  portHolder(port: number): Promise<PortHolder>;
  /** Whether there is a key for the engine at an address. */
  hasKey(url: string): Promise<boolean>;
}

/** Adds `engine doctor`. */
export function addDoctor(
  program: Command,
  terminal: Terminal,
  machine: () => Promise<DoctorMachine> = thisMachine,
): void {
  program.command("doctor")
    .description("Check for common problems and suggest fixes")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const checks = await makeChecks(flags, terminal, await machine());
      const failed = checks.filter(({ status }) => status === "fail").length;
      if (flags.json) terminal.out(compactJson({ ok: failed === 0, checks } as unknown as Json));
      else for (const line of renderChecks(checks)) terminal.out(line);
      if (failed > 0) throw new ExitWith(EXIT_FAILED);
    });
}

async function makeChecks(
  address: EngineAddress,
  terminal: Terminal,
  machine: DoctorMachine,
): Promise<DoctorCheck[]> {
  const { info, checks } = await askEngine(address, terminal, machine);
  const ports = KNOWN_PORTS.map(async (known) => {
    const holder = await machine.portHolder(known.port);
    return checkPort(known, holder, info?.endpoints);
  });
  const vm = machine.vm().then(checkVm, (thrown: unknown) => unknown("microVMs", thrown));
  return [...checks, ...await Promise.all([...ports, vm])];
}

/** Checks the engine and the connection to it; without `info` it could not be reached. */
async function askEngine(
  address: EngineAddress,
  terminal: Terminal,
  machine: DoctorMachine,
): Promise<{ info?: EngineInfo; checks: DoctorCheck[] }> {
  try {
    await using engine = await terminal.connect(address);
    const answer = await engine.call("engine::supervisor::info", {});
    const info = answer as unknown as EngineInfo;
    const measured = await engine.call("engine::health::measure", {});
    const { checks } = measured as unknown as { checks: DoctorCheck[] };
    const { url } = await terminal.locate(address);
    return {
      info,
      checks: [
        checkVersion(info.version, machine.version),
        ...await checkConnection(engine, terminal),
        checkControlKey(info, await machine.hasKey(url)),
        ...checks,
        checkSuspects(await readSuspects(engine)),
        ...await checkListeners(info, engine),
        ...checkCluster(await readCluster(engine, true)),
        ...[checkDescriptors(info)].filter((check) => check !== undefined),
      ],
    };
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown;
    return { checks: [unreachable(thrown)] };
  }
}

function renderChecks(checks: readonly DoctorCheck[]): string[] {
  const rows = checks.map(({ name, status, message }) => [status, name, message]);
  const [head, ...lines] = renderTable(["STATUS", "CHECK", "FOUND"], rows);
  const body = lines.flatMap((line, i) => {
    const { remedy } = checks[i]!;
    return remedy === null ? [line] : [line, `        ${printable(remedy)}`];
  });
  const bad = (status: string): number => checks.filter((each) => each.status === status).length;
  const [warned, failed] = [bad("warn"), bad("fail")];
  const verdict = warned + failed === 0
    ? `All ${checks.length} checks passed`
    : `${count(failed, "check")} failed, ${count(warned, "warning")}, of ${checks.length}`;
  return [head!, ...body, verdict];
}

async function thisMachine(): Promise<DoctorMachine> {
  const { readControlKey, VERSION, vmStatus } = await import("../../../engine/mod.ts");
  return {
    version: VERSION,
    vm: vmStatus,
    portHolder: findPortHolder,
    hasKey: async (url) => await readControlKey(url) !== undefined,
  };
}
