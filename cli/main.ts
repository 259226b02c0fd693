#!/usr/bin/env -S deno run -A
/**
 * The program `engine`: its commands, its help, its exit codes.
 *
 * Commands are declared here and loaded when they run, so that `engine --help` need not read the
 * engine. `failure.ts` has the exit codes.
 *
 * @module
 */
import { runCommandLine } from "./run.ts";
import { systemTerminal } from "./terminal.ts";

if (import.meta.main) {
  Deno.exit(await runCommandLine(Deno.args, systemTerminal()));
}
