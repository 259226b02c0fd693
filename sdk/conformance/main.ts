/**
 * `deno run -A sdk/conformance/main.ts [--json] [--slow] -- <command that starts a probe>`
 *
 * Runs an SDK's probe worker against a scripted engine and prints one line per duty of PROTOCOL
 * 10. Exit code 0: all duties pass, 1: at least one fails, 2: wrong usage.
 *
 * @module
 */
import { type DutyReport, runConformance } from "./run.ts";

const USAGE = `usage: main.ts [--json] [--slow] -- <program> [<argument>…]
  --json   print the reports as JSON
  --slow   also check pings (20 s) and silence (60 s)`;

if (import.meta.main) Deno.exit(await main(Deno.args));

async function main(args: readonly string[]): Promise<number> {
  const split = args.indexOf("--");
  const [flags, command] = [args.slice(0, split), args.slice(split + 1)];
  const unknown = flags.find((flag) => flag !== "--json" && flag !== "--slow");
  if (split < 0 || command.length === 0 || unknown !== undefined) {
    console.error(USAGE);
    return 2;
  }
  const reports = await runConformance({ command, slow: flags.includes("--slow") });
  const count = (outcome: DutyReport["outcome"]) =>
    reports.filter((report) => report.outcome === outcome).length;
  const totals = {
    pass: count("pass"),
    fail: count("fail"),
    warn: count("warn"),
    skip: count("skip"),
  };
  if (flags.includes("--json")) console.log(JSON.stringify({ totals, duties: reports }, null, 2));
  else print(reports, totals);
  return totals.fail === 0 ? 0 : 1;
}

function print(reports: readonly DutyReport[], totals: Readonly<Record<string, number>>): void {
  for (const { section, name, outcome, problem } of reports) {
    console.log(`${outcome}  ${section}  ${name}`);
    if (problem !== undefined) console.log(`      ${problem.replaceAll("\n", "\n      ")}`);
  }
  console.log(Object.entries(totals).map(([outcome, count]) => `${count} ${outcome}`).join(", "));
}
