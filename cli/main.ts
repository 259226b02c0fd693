#!/usr/bin/env -S deno run -A
/**
 * The program `engine`.
 *
 * @module
 */
import { runCommandLine } from "./program.ts";
import { systemTerminal } from "./terminal.ts";

if (import.meta.main) {
  Deno.exit(await runCommandLine(Deno.args, systemTerminal()));
}
