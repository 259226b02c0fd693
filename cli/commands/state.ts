/**
 * `engine state`: checks, backs up and restores the state of a project.
 *
 * While the engine runs, it does checks and backups itself, for operators; a restore needs it
 * stopped. Without an engine the command works on the file.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { RestoredState, StateCheck } from "../../engine/mod.ts";
import type { Json } from "../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineAddress } from "../connect.ts";
import { CommandError, EXIT_FAILED, ExitWith } from "../failure.ts";
import { compactJson, count, renderBytes, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine state check
  engine state backup backups/today.sqlite
  engine state restore backups/today.sqlite`;

/** A backup of a large state takes minutes on a slow disk. */
const TIMEOUT_MS = 3_600_000;

/** The state of a project whose engine does not run; tests provide another one. */
export interface OfflineState {
  check(directory: string): Promise<StateCheck>;
  backup(directory: string, to: string): Promise<StateCheck>;
  restore(directory: string, from: string): Promise<RestoredState>;
}

interface Flags extends EngineAddress {
  readonly json?: boolean | undefined;
}

/** Adds `engine state`. */
export function addState(
  program: Command,
  terminal: Terminal,
  offline: () => Promise<OfflineState> = thisMachine,
): void {
  const state = program.command("state")
    .description("Check, back up and restore the state of the project here")
    .addHelpText("after", EXAMPLES);
  state.command("check")
    .addHelpText("after", EXAMPLES)
    .description("Verify every record and the file; exit code 1 when something is damaged")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .action(async (flags) => {
      const check = await either(
        terminal,
        flags,
        "check",
        {},
        async () => (await offline()).check(terminal.directory),
      );
      show(terminal, flags, check, "The state");
    });
  state.command("backup")
    .addHelpText("after", EXAMPLES)
    .description("Back up the state to a file, also while the engine runs")
    .argument("<file>", "file to write; an existing one is replaced")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .action(async (file, flags) => {
      const to = absolute(terminal, file);
      const check = await either(
        terminal,
        flags,
        "backup",
        { path: to },
        async () => (await offline()).backup(terminal.directory, to),
      );
      show(terminal, flags, check, `The backup ${file}`);
    });
  state.command("restore")
    .addHelpText("after", EXAMPLES)
    .description(
      "Replace the state with a backup; stop the engine first, unless it is in a cluster",
    )
    .argument("<file>", "a file that `engine state backup` wrote")
    .action(async (file) => {
      const restored = await restore(terminal, await offline(), absolute(terminal, file));
      const { cluster } = restored;
      const where = cluster === undefined ? "" : ` as the state of cluster ${cluster}`;
      terminal.out(`Restored ${summaryOf(restored.check)}${where}`);
      if (restored.aside !== undefined) terminal.err(`The state before is in ${restored.aside}`);
    });
}

/** On the file, or, when an engine holds it or an address is given, by that engine. */
async function either(
  terminal: Terminal,
  flags: Flags,
  name: string,
  payload: Json,
  offline: () => Promise<StateCheck>,
): Promise<StateCheck> {
  if (flags.url === undefined && terminal.env("ENGINE_URL") === undefined) {
    try {
      return await offline();
    } catch (thrown) {
      if (!isHeld(thrown)) throw thrown;
    }
  }
  await using engine = await terminal.connect(flags);
  const answer = await engine.call(`engine::state::${name}`, payload, { timeout_ms: TIMEOUT_MS });
  return answer as unknown as StateCheck;
}

async function restore(
  { directory }: Terminal,
  offline: OfflineState,
  from: string,
): Promise<RestoredState> {
  try {
    return await offline.restore(directory, from);
  } catch (thrown) {
    if (!isHeld(thrown)) throw thrown;
    const { message } = thrown as Error;
    throw new CommandError(`A restore needs the engine stopped: ${message}`);
  }
}

/** Whether an engine holds the state file. */
function isHeld(thrown: unknown): boolean {
  const { code, details } = thrown as { code?: unknown; details?: { pid?: unknown } };
  return code === "store_unavailable" && details?.pid !== undefined;
}

function show(terminal: Terminal, { json }: Flags, check: StateCheck, what: string): void {
  const isIntact = check.problems.length === 0 && check.damaged_count === 0;
  if (json) terminal.out(compactJson(check as unknown as Json));
  else if (isIntact) terminal.out(`${what} is intact: ${summaryOf(check)}`);
  else if (check.damaged_count > 0) {
    const rows = check.damaged.map(({ key, reason }) => [key.join("/"), reason]);
    for (const line of renderTable(["DAMAGED KEY", "REASON"], rows)) terminal.out(line);
  }
  if (isIntact) return;
  const hasKeys = check.damaged_count > 0;
  const damaged = `${count(check.damaged_count, "record")} of ${check.records} damaged`;
  throw new ExitWith(EXIT_FAILED, [
    `error: ${hasKeys ? damaged : `${what} is damaged`}`,
    ...check.problems.map((problem) => `  ${problem}`),
    `${hasKeys ? "write or delete the damaged keys, or " : ""}restore a backup: ` +
    "engine state restore FILE",
  ]);
}

function summaryOf({ records, bytes }: StateCheck): string {
  return `${count(records, "record")}, ${renderBytes(bytes)}`;
}

function absolute({ directory }: Terminal, file: string): string {
  return file.startsWith("/") || /^[A-Za-z]:[\\/]/.test(file) ? file : `${directory}/${file}`;
}

async function thisMachine(): Promise<OfflineState> {
  const { backupState, checkState, restoreState } = await import("../../engine/mod.ts");
  return { check: checkState, backup: backupState, restore: restoreState };
}
