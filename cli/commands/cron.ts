/**
 * `engine cron`: what runs at which times, when an expression fires, and a run by hand.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import { EXIT_FAILED, ExitWith } from "../failure.ts";
import { compactJson, printable, renderDuration, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine cron list
  engine cron next "0 0 9 * * MON-FRI" --timezone Europe/Berlin
  engine cron run report::daily`;

/** Times that `engine::cron::next` calculates at most. */
const COUNT_MAX = 100;
/** A function may take long; the engine ends its call. */
const RUN_MS = 604_800_000;

/** A job in the result of `engine::cron::list`. */
interface JobView {
  readonly job_id: string;
  readonly function_id: string;
  readonly expression: string;
  readonly timezone: string;
  readonly running: number;
  readonly next: readonly string[];
  readonly last: readonly RunView[];
}

/** One run. */
interface RunView {
  readonly outcome: string;
  readonly duration_ms?: number;
  readonly error?: string;
}

/** Adds `engine cron`. */
export function addCron(program: Command, terminal: Terminal): void {
  const cron = program.command("cron")
    .description("List and run cron jobs")
    .addHelpText("after", EXAMPLES);
  addList(cron as unknown as Command, terminal);
  addNext(cron as unknown as Command, terminal);
  addRun(cron as unknown as Command, terminal);
}

function addList(cron: Command, terminal: Terminal): void {
  cron.command("list")
    .addHelpText("after", EXAMPLES)
    .description("List cron jobs with their next time and last run")
    .argument("[function]", "only those of this function")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .action(async (function_id, flags) => {
      await using engine = await terminal.connect(flags);
      const payload = function_id === undefined ? {} : { function_id };
      const answer = await engine.call("engine::cron::list", payload) as JsonObject;
      const jobs = answer.jobs as unknown as readonly JobView[];
      if (flags.json) return terminal.out(compactJson(jobs as unknown as Json));
      if (jobs.length === 0) return terminal.err("No cron triggers");
      const rows = jobs.map((job) => [
        printable(job.function_id),
        printable(job.expression),
        job.timezone,
        job.next[0] ?? "never",
        job.running > 0 ? "running" : lastOf(job.last[0]),
        job.job_id,
      ]);
      const head = ["FUNCTION", "EXPRESSION", "ZONE", "NEXT", "LAST", "ID"];
      for (const line of renderTable(head, rows)) terminal.out(line);
      const hidden = answer.count as number - jobs.length;
      if (hidden > 0) terminal.err(`${hidden} more are not shown; name a function`);
    });
}

function addNext(cron: Command, terminal: Terminal): void {
  cron.command("next")
    .addHelpText("after", EXAMPLES)
    .description("Print the next times of an expression")
    .argument("<expression>", "second, minute, hour, day, month, day of week; in quotes")
    .option("--timezone <zone>", "such as Europe/Berlin (default: that of engine-cron, UTC)")
    .option("--count <number>", "number of times", "5")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .action(async (expression, flags) => {
      const count = readNumber("--count", flags.count, 1, COUNT_MAX);
      await using engine = await terminal.connect(flags);
      const zone = flags.timezone === undefined ? {} : { timezone: flags.timezone };
      const answer = await engine.call("engine::cron::next", { expression, ...zone, count });
      if (flags.json) return terminal.out(compactJson(answer ?? null));
      for (const time of (answer as { next: string[] }).next) terminal.out(time);
    });
}

function addRun(cron: Command, terminal: Terminal): void {
  cron.command("run")
    .addHelpText("after", EXAMPLES)
    .description("Run a cron job now, in addition to its schedule; exit code 1 when it fails")
    .argument("<id>", "id of the trigger, or of its function")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .action(async (id, flags) => {
      await using engine = await terminal.connect(flags);
      const options = { timeout_ms: RUN_MS };
      const run = await engine.call("engine::cron::run", { job_id: id }, options) as JsonObject;
      if (flags.json) terminal.out(compactJson(run));
      const { outcome, error } = run as unknown as RunView;
      if (outcome === "failed") {
        throw new ExitWith(EXIT_FAILED, [`error: ${printable(error ?? "the run failed")}`]);
      }
      const text = `${run.function_id}: ${lastOf(run as unknown as RunView)}`;
      if (!flags.json) terminal.out(printable(text));
    });
}

function lastOf(run: RunView | undefined): string {
  if (!run) return "";
  const { outcome, duration_ms } = run;
  return duration_ms === undefined ? outcome : `${outcome}, ${renderDuration(duration_ms)}`;
}
