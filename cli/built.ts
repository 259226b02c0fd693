#!/usr/bin/env -S deno run -A
/**
 * The program `engine` as `deno task build` makes it: the same, from few files.
 *
 * A start from the sources spends half of its time on finding and reading some 240 files. Never
 * runs what is older than the sources it was made of: then those run, and a line says so.
 *
 * @module
 */
import { changedSources, SOURCES_FILE } from "./build_age.ts";
import { runCommandLine } from "./run.ts";
import { systemTerminal } from "./terminal.ts";

if (import.meta.main) {
  const terminal = systemTerminal();
  // A binary never looks for sources: what lies where they would be may be anybody's.
  const sources = Deno.build.standalone
    ? undefined
    : changedSources(new URL(SOURCES_FILE, import.meta.url));
  if (!sources) Deno.exit(await runCommandLine(Deno.args, terminal));
  terminal.err(
    "The build of engine is not of these sources, which run instead; make it anew: deno task build",
  );
  const unbuilt: typeof import("./run.ts") = await import(new URL("cli/run.ts", sources).href);
  Deno.exit(await unbuilt.runCommandLine(Deno.args, terminal));
}
