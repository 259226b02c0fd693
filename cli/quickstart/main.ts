/**
 * `deno task quickstart`: show and check the whole system, from an empty directory to an HTTP
 * request, or with `--template jobs` to background jobs with a live page.
 *
 * Creates a project, runs every command of docs/tutorial, shows its output and checks it. The
 * exit code is 0 if everything was as expected, 1 at the first difference, and 2 if the command is
 * not understood.
 *
 * @module
 */
import { Command } from "@commander-js/extra-typings";
import { type Isolation, vmStatus } from "../../engine/mod.ts";
import { readChoice, readIsolation, readNumber } from "../arguments.ts";
import { CommandError, describeFailure, EXIT_DONE } from "../failure.ts";
import { callsWalkthrough } from "./calls_walkthrough.ts";
import { jobsWalkthrough } from "./jobs_walkthrough.ts";
import { QuickstartRun, type Walkthrough } from "./run.ts";

const WALKTHROUGHS = [callsWalkthrough, jobsWalkthrough];

const program = new Command("quickstart")
  .description(
    "Show and check a template: quickstart (two workers, two languages, state and HTTP) or " +
      "jobs (a queue, a schedule, and a page that shows progress live)",
  )
  .option("--template <name>", "quickstart or jobs", "quickstart")
  .option(
    "--isolation <kind>",
    "microvm or process: the isolation of its workers (default: process; with --template jobs " +
      "microvm where KVM is)",
  )
  .option("--keep", "leave everything running until Ctrl-C")
  .option("--directory <dir>", "where to make the project (default: a temporary directory)")
  .option("--port <port>", "port for workers", "49134")
  .option("--http-port <port>", "port for HTTP", "3111")
  .option("--stream-port <port>", "port for streams, with --template jobs", "3112");

if (import.meta.main) {
  const flags = program.parse().opts();
  Deno.exit(await runQuickstart(flags).catch(explain));
}

async function runQuickstart(flags: ReturnType<typeof program.opts>): Promise<number> {
  const names = WALKTHROUGHS.map(({ template }) => template);
  const template = readChoice("--template", flags.template, names);
  const walkthrough = WALKTHROUGHS.find((each) => each.template === template)!;
  const run = new QuickstartRun({
    main: new URL("../main.ts", import.meta.url),
    walkthrough,
    isTemporary: flags.directory === undefined && !flags.keep,
    port: readNumber("--port", flags.port, 1, 65_535),
    isolation: flags.isolation === undefined
      ? await isolationFor(walkthrough)
      : readIsolation(flags.isolation),
    httpPort: readNumber("--http-port", flags.httpPort, 1, 65_535),
    streamPort: readNumber("--stream-port", flags.streamPort, 1, 65_535),
    say: (line) => console.log(line),
    directory: await readDirectory(flags.directory), // Last, after all options are checked.
  });
  const interrupted = new Promise<"interrupted">((resolve) => {
    Deno.addSignalListener("SIGINT", () => resolve("interrupted"));
    if (Deno.build.os !== "windows") {
      Deno.addSignalListener("SIGTERM", () => resolve("interrupted"));
    }
  });
  let isInterrupted = false;
  void interrupted.then(() => isInterrupted = true);
  let pids: Iterable<number>;
  try {
    const done = run.steps().then(() => "done" as const);
    if (await Promise.race([done, interrupted]) === "interrupted") {
      done.catch(() => {}); // The current step fails when its engine stops.
      throw new CommandError("interrupted");
    }
    pids = (await run.workerPids()).values();
    if (flags.keep) {
      run.printAddresses();
      await interrupted;
    }
  } catch (thrown) {
    await run.abandon(isInterrupted);
    throw isInterrupted ? new CommandError("interrupted; nothing is left running") : thrown;
  }
  await run.finish(pids, isInterrupted);
  return EXIT_DONE;
}

/** In software emulation a job would take minutes, so only a machine with KVM gets microVMs. */
async function isolationFor({ template }: Walkthrough): Promise<Isolation> {
  if (template === callsWalkthrough.template) return "process";
  const { ready, accelerator } = await vmStatus();
  return ready && accelerator === "kvm" ? "microvm" : "process";
}

async function readDirectory(directory: string | undefined): Promise<string> {
  if (directory === undefined) {
    const root = await Deno.realPath(await Deno.makeTempDir({ prefix: "engine-quickstart-" }));
    return `${root}/hello`;
  }
  await Deno.mkdir(directory, { recursive: true });
  return await Deno.realPath(directory);
}

function explain(thrown: unknown): number {
  console.log("");
  const { lines, exitCode } = describeFailure(thrown);
  for (const line of lines) console.error(line);
  return exitCode;
}
