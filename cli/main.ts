#!/usr/bin/env -S deno run -A
/**
 * The program `engine`: its commands, its help, its exit codes.
 *
 * Commands are declared here and loaded when they run, so that `engine --help` need not read the
 * engine. `failure.ts` has the exit codes.
 *
 * @module
 */
import { createProgram, runProgram } from "./program.ts";
import { systemTerminal } from "./terminal.ts";

if (import.meta.main) {
  const terminal = systemTerminal();
  Deno.exit(await runProgram(createProgram(terminal), terminal, Deno.args));
}
