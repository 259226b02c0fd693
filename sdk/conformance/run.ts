/**
 * Runs the duties of an SDK against its probe, and reports each.
 *
 * @module
 */
import { builtinStages } from "./duties/builtins.ts";
import { channelStages } from "./duties/channels.ts";
import { connectionStages } from "./duties/connection.ts";
import { deadlineStages } from "./duties/deadlines.ts";
import { errorStages } from "./duties/errors.ts";
import { flowStages } from "./duties/flows.ts";
import { type Duty, isReady, READY, type Stage, type StagePlan } from "./duty.ts";
import { DutyError, quiet } from "./log.ts";
import { ProbeProcess } from "./probe_process.ts";
import { ScriptedEngine } from "./scripted_engine.ts";

/** Stages that run at the same time; each has a process of the SDK under test. */
const STAGES_AT_ONCE = 2;
const READY_MS = 90_000;
const READY_POLL_MS = 20;
/** Starts of a stage until the probe connects once. */
const STARTS_MAX = 3;
const DUTY_MS = 180_000;
/** Lines of a probe's output that explain a failed start. */
const OUTPUT_LINES = 10;

/** How one duty ended. */
export interface DutyReport {
  /** Section of the specification, such as `10.1`. */
  readonly section: string;
  readonly name: string;
  /** `warn`: a duty of level SHOULD is not fulfilled; `skip`: it needs `--slow`. */
  readonly outcome: "pass" | "fail" | "warn" | "skip";
  /** Why it failed. */
  readonly problem?: string;
}

/** What to run. */
export interface ConformanceOptions {
  /** Program and arguments that start the probe. */
  readonly command: readonly string[];
  /** Added to the environment of the probe. */
  readonly env?: Readonly<Record<string, string>>;
  /** `true`: also the duties that take minutes. @default {false} */
  readonly slow?: boolean;
}

/** Runs all duties; the reports are in the order of the sections. */
export async function runConformance(options: ConformanceOptions): Promise<DutyReport[]> {
  const plans = [
    ...connectionStages(),
    ...flowStages(),
    ...builtinStages(),
    ...channelStages(),
    ...errorStages(),
    ...deadlineStages(),
  ];
  const reports: DutyReport[][] = plans.map(() => []);
  const waiting = plans.entries();
  const lane = async (): Promise<void> => {
    for (const [index, plan] of waiting) reports[index] = await runStage(plan, options);
  };
  await Promise.all(Array.from({ length: STAGES_AT_ONCE }, lane));
  // Sections in order, and within a section the order of the stages.
  return reports.flat().sort((a, b) => Number(a.section) - Number(b.section));
}

async function runStage(
  { name, script, duties }: StagePlan,
  { command, env = {}, slow = false }: ConformanceOptions,
): Promise<DutyReport[]> {
  const reports = duties.map((duty): DutyReport => ({ ...named(duty), outcome: "skip" }));
  if (duties.every(({ isSlow }) => isSlow && !slow)) return reports;
  await using resources = new AsyncDisposableStack();
  let stage!: Stage;
  let failure: string | undefined;
  for (let start = 1; start <= STARTS_MAX; start++) {
    const engine = resources.use(await ScriptedEngine.start(script));
    const probe = resources.use(new ProbeProcess(command, engine.url, env));
    stage = { engine, probe };
    failure = await problemOf(() => ready(stage), 2 * READY_MS);
    // An SDK dials again beside a dial that waits; then it is not known which one it uses.
    if (failure !== undefined || engine.connections.entries.length === 1) break;
    await probe[Symbol.asyncDispose]();
  }
  for (const [index, duty] of duties.entries()) {
    if (duty.isSlow && !slow) continue;
    const problem = failure === undefined
      ? await problemOf(() => duty.check(stage), DUTY_MS)
      : `stage "${name}" did not start${index === 0 ? `: ${failure}` : ""}`;
    const failed = duty.level === "should" ? "warn" : "fail";
    reports[index] = problem === undefined
      ? { ...named(duty), outcome: "pass" }
      : { ...named(duty), outcome: failed, problem };
  }
  return reports;
}

/** Waits until the probe has registered everything. */
async function ready({ engine, probe }: Stage): Promise<void> {
  const until = performance.now() + READY_MS;
  while (!engine.connections.entries.some(isReady)) {
    const code = probe.exits.entries[0];
    if (code !== undefined) {
      const output = probe.output.entries.slice(-OUTPUT_LINES).join("\n");
      throw new DutyError(`the probe exited with ${code}\n${output}`);
    }
    if (performance.now() > until) {
      throw new DutyError(`the probe did not register ${READY} within ${READY_MS} ms`);
    }
    await quiet(READY_POLL_MS);
  }
}

/** What an SDK did not do, within a bound; `undefined`: all is well. */
async function problemOf(check: () => Promise<void>, boundMs: number): Promise<string | undefined> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new DutyError(`it did not end within ${boundMs} ms`));
  }, boundMs);
  try {
    await Promise.race([check(), late.promise]);
    return undefined;
  } catch (error) {
    // Anything but a DutyError comes from a frame of an unexpected shape.
    return error instanceof DutyError ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}

function named({ section, name }: Duty): Pick<DutyReport, "section" | "name"> {
  return { section, name };
}
