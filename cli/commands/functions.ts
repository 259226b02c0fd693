/**
 * `engine functions`: what can be called right now.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json } from "../../mod.ts";
import { compactJson, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine functions
  engine functions math
  engine functions --all --json`;

interface FunctionSummary {
  readonly function_id: string;
  readonly worker_name: string;
  readonly description?: string;
}

/** Adds `engine functions`. */
export function addFunctions(program: Command, terminal: Terminal): void {
  program.command("functions")
    .description("List the functions that can be called")
    .argument("[search]", "only those whose id has this in it")
    .option("--all", "the engine's own and internal ones too")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", "address of the engine (default: ENGINE_URL, ws://127.0.0.1:49134)")
    .option("--token <token>", "token of the engine (default: ENGINE_TOKEN)")
    .addHelpText("after", EXAMPLES)
    .action(async (search, flags) => {
      await using engine = await terminal.connect(flags);
      const answer = await engine.call("engine::functions::list", {
        include_internal: flags.all ?? false,
        ...search === undefined ? {} : { search },
      });
      const { functions } = answer as unknown as { functions: readonly FunctionSummary[] };
      if (flags.json) return terminal.out(compactJson(functions as unknown as Json));
      if (functions.length === 0) return terminal.err(emptyText(search));
      const rows = functions.map((item) => [
        item.function_id,
        item.worker_name,
        item.description ?? "",
      ]);
      for (const line of renderTable(["FUNCTION", "WORKER", "DESCRIPTION"], rows)) {
        terminal.out(line);
      }
    });
}

function emptyText(search: string | undefined): string {
  if (search !== undefined) return `No function has ${JSON.stringify(search)} in its id`;
  return "No functions yet; add a worker with: engine worker add ./workers/my-worker";
}
