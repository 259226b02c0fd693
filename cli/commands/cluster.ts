/**
 * `engine cluster status`: the engines of a cluster, their links, the keeper and the log.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json } from "../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import { readCluster, renderCluster } from "../cluster/view.ts";
import { compactJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine cluster status
  engine cluster status --json

Several engines as one: docs/how-to/cluster.md.`;

/** Adds `engine cluster`. */
export function addCluster(program: Command, terminal: Terminal): void {
  const group = program.command("cluster")
    .description("Inspect the engines of a cluster")
    .addHelpText("after", EXAMPLES);
  group.command("status")
    .description("Show the engines, their links, the keeper of the state and its log")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      await using engine = await terminal.connect(flags);
      const view = await readCluster(engine, true);
      if (flags.json) return terminal.out(compactJson(view as unknown as Json));
      for (const line of renderCluster(view)) terminal.out(line);
    });
}
