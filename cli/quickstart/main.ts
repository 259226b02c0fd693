/**
 * `deno task quickstart`: the whole system from nothing to an HTTP request, shown live.
 *
 * Makes a project, runs every command a person would type, shows what came back and checks it.
 * Ends with 0 when all was as expected, with 1 at the first thing that was not.
 *
 * @module
 */
import { Command } from "@commander-js/extra-typings";
import { readIsolation, readNumber } from "../arguments.ts";
import { CommandError, describeFailure, EXIT_DONE } from "../failure.ts";
import { QuickstartRun } from "./run.ts";

const program = new Command("quickstart")
  .description("Show and check the quickstart: two workers, two languages, state and HTTP")
  .option("--isolation <kind>", "microvm or process: how its workers are kept apart", "process")
  .option("--keep", "leave everything running until Ctrl-C")
  .option("--directory <dir>", "where to make the project (default: a temporary directory)")
  .option("--port <port>", "port for workers", "49134")
  .option("--http-port <port>", "port for HTTP", "3111");

if (import.meta.main) {
  const flags = program.parse().opts();
  Deno.exit(await runQuickstart(flags).catch(explain));
}

async function runQuickstart(flags: ReturnType<typeof program.opts>): Promise<number> {
  const run = new QuickstartRun({
    main: new URL("../main.ts", import.meta.url),
    isTemporary: flags.directory === undefined && !flags.keep,
    port: readNumber("--port", flags.port, 1, 65_535),
    isolation: readIsolation(flags.isolation),
    httpPort: readNumber("--http-port", flags.httpPort, 1, 65_535),
    say: (line) => console.log(line),
    directory: await readDirectory(flags.directory), // Last: wrong options make no directory.
  });
  const interrupted = new Promise<"interrupted">((resolve) => {
    Deno.addSignalListener("SIGINT", () => resolve("interrupted"));
    if (Deno.build.os !== "windows") {
      Deno.addSignalListener("SIGTERM", () => resolve("interrupted"));
    }
  });
  let isInterrupted = false;
  void interrupted.then(() => isInterrupted = true);
  let pids: readonly number[];
  try {
    const done = run.steps().then(() => "done" as const);
    if (await Promise.race([done, interrupted]) === "interrupted") {
      done.catch(() => {}); // What it was doing fails because its engine is taken away.
      throw new CommandError("interrupted");
    }
    pids = await run.workerPids();
    if (flags.keep) {
      run.sayWhereAllIs();
      await interrupted;
    }
  } catch (thrown) {
    await run.abandon(isInterrupted);
    throw isInterrupted ? new CommandError("interrupted; nothing is left running") : thrown;
  }
  await run.finish(pids, isInterrupted);
  return EXIT_DONE;
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
