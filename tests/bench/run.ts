/**
 * `deno task bench`: what the engine costs beside what it is built on and beside others of its
 * kind, all in one run.
 *
 * Everything that is compared is measured in turn, round by round, so that a machine that is busy
 * disturbs all alike: read the ratios, not the rates. Progress goes to standard error, the tables
 * (Markdown) to standard output, all figures as JSON to a file. With `--compare` a ratio that
 * seems to have become worse is measured once more before it counts. Needs Linux and gcc; takes
 * about six minutes. Exit codes: 1 something failed or became worse, 2 not understood.
 *
 * @module
 */
import { Bench, Missing, type Section } from "./bench.ts";
import { compare, findWorse, readReportFile, showComparison, WORSE_MAX } from "./compare.ts";
import { buildLoad, runLoad } from "./load.ts";
import { type BenchOptions, readOptions, USAGE, UsageError } from "./options.ts";
import { amount, type Finding, Report } from "./report.ts";
import { SECTIONS } from "./rows/mod.ts";

/** Aborted when this program is asked to end. */
const END_MS = 200;
/** A program that failed may have printed pages. */
const REASON_CHARS_MAX = 500;

/** Measures sections one after the other; one that breaks does not keep the others from it. */
async function measure(
  options: BenchOptions,
  sections: readonly Section[],
  loadPath: string,
): Promise<Report> {
  const report = new Report();
  for (const { name, measure } of sections) {
    const bench = new Bench({
      section: name,
      options,
      report,
      load: (run, seconds) => runLoad(loadPath, run, seconds),
    });
    try {
      await measure(bench);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const reason = text.replaceAll(/\s+/g, " ").trim().slice(0, REASON_CHARS_MAX);
      const failed = !(error instanceof Missing);
      console.error(`${name} ${failed ? "failed" : "was not measured"}: ${reason}`);
      report.gaps.push({ section: name, reason, failed });
    }
  }
  return report;
}

async function machine({ rounds, seconds }: BenchOptions): Promise<string> {
  const info = await Deno.readTextFile("/proc/cpuinfo");
  const model = /model name\s*: (.*)/.exec(info)?.[1] ?? Deno.build.arch;
  const cores = navigator.hardwareConcurrency;
  const memory = Math.round(Deno.systemMemoryInfo().total / 2 ** 30);
  const day = new Date().toISOString().slice(0, 10);
  const [load = 0] = Deno.loadavg();
  const busy = load > cores / 4 ? " **A busy machine: the ratios of two runs differ.**" : "";
  return `${day}, Deno ${Deno.version.deno}, ${cores} cores (${model.trim()}), ${memory} GiB, ` +
    `${Deno.build.os}; load before the run ${
      load.toFixed(1)
    }.${busy} Medians of ${rounds} rounds of ${seconds} s, ` +
    "measured in turn; all processes on the same cores.";
}

/** What the earlier run found, without the sections that this run leaves out. */
async function readBefore({ compare: path, only }: BenchOptions): Promise<Finding[] | undefined> {
  if (path === undefined) return undefined;
  try {
    const { findings } = await readReportFile(path);
    return findings.filter(({ section }) => only.length === 0 || only.includes(section));
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function main(options: BenchOptions): Promise<number> {
  const before = await readBefore(options);
  const about = await machine(options);
  const wanted = options.only.length === 0
    ? SECTIONS
    : SECTIONS.filter(({ name }) => options.only.includes(name));
  const directory = await Deno.makeTempDir({ prefix: "engine-bench-" });
  try {
    const load = await buildLoad(directory);
    const report = await measure(options, wanted, load);
    console.log(report.toMarkdown(about));
    await Deno.writeTextFile(options.json, `${JSON.stringify(report.toFile(about), null, 1)}\n`);
    const failed = report.gaps.some(({ failed }) => failed);
    if (!before) return failed ? 1 : 0;
    const worse = await findWorse(before, report.findings, async (names) => {
      console.error(`once more, since some ratios seem worse: ${[...names].join(", ")}`);
      const sections = SECTIONS.filter(({ name }) => names.has(name));
      return (await measure(options, sections, load)).findings;
    });
    console.log(`\n${showComparison(compare(before, report.findings), worse)}`);
    for (const { finding: { section, name, value, unit }, before } of worse) {
      const change = `${amount(before, unit)} → ${amount(value, unit)}`;
      console.error(`worse by over ${WORSE_MAX * 100} %: ${section}: ${name}: ${change}`);
    }
    return failed || worse.length > 0 ? 1 : 0;
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
}

function options(): BenchOptions {
  if (Deno.build.os !== "linux") throw new UsageError("The load generator needs Linux");
  return readOptions(Deno.args, SECTIONS.map(({ name }) => name));
}

if (import.meta.main) {
  // The programs it started hear of it too, each by itself: see program.ts.
  Deno.addSignalListener("SIGTERM", () => setTimeout(() => Deno.exit(1), END_MS));
  try {
    if (Deno.args.some((word) => word === "--help" || word === "-h")) {
      console.log(USAGE);
      Deno.exit(0);
    }
    Deno.exit(await main(options()));
  } catch (error) {
    const isUsage = error instanceof UsageError;
    console.error(error instanceof Error ? error.message : error);
    if (isUsage) console.error(USAGE);
    Deno.exit(isUsage ? 2 : 1);
  }
}
