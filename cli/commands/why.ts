/**
 * `engine why`: explain the outcome of a call in sentences.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { compactJson, printable, renderJson, renderStack } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine trigger math::add a=2 b=3 --verbose     prints the id of its trace
  engine why 6b0f3f1e-2d0a-4d0e-9a38-6f6f1f8b9c11
  engine why 6b0f3f1e-2d0a-4d0e-9a38-6f6f1f8b9c11 --json

An id is that of an invocation, of a trace or of a span; logs, responses of HTTP routes
(traceparent) and the console show them.`;

/** The members of an explanation that are shown. */
interface Explanation {
  readonly lines?: unknown;
  /** Of the handler that failed; for operators only. */
  readonly stacktrace?: unknown;
  readonly span?: { readonly name?: string };
}

/** Adds `engine why`. */
export function addWhy(program: Command, terminal: Terminal): void {
  program.command("why")
    .description("Explain the outcome of a call")
    .argument("<id>", "id of an invocation, a trace or a span")
    .option("--json", "print all that is known as JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (id, flags) => {
      await using engine = await terminal.connect(flags);
      const answer = await engine.call("engine::traces::explain", { invocation_id: idOf(id) })
        .catch((thrown: unknown) => {
          throw explainFailure(thrown);
        });
      if (flags.json) return terminal.out(compactJson(answer ?? null));
      const { lines, stacktrace, span } = (answer ?? {}) as Explanation;
      if (!Array.isArray(lines)) return terminal.out(renderJson(answer ?? null));
      for (const line of lines) terminal.out(printable(String(line)));
      if (typeof stacktrace !== "string") return;
      for (const line of renderStack(stacktrace, span?.name ?? "its handler")) terminal.out(line);
    });
}

/** The trace id of a `traceparent`; any other text is an id already. */
function idOf(text: string): string {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(text.trim())?.[1] ?? text;
}

function explainFailure(thrown: unknown): unknown {
  const { code, message } = thrown as { code?: unknown; message?: unknown };
  if (code === "function_not_found") {
    return new CommandError(
      "This engine does not keep what happened; it is older than this command, or its worker " +
        "engine-observability is stopped (engine worker list)",
    );
  }
  if (code !== "NOT_FOUND") return thrown;
  const known = String(message).replace(/^NOT_FOUND: /, "");
  // Another call would not be traced either.
  if (known.includes("tracing is off")) return new CommandError(known);
  return new CommandError(
    `${known}; or call it again with engine trigger FUNCTION --verbose and ask at once`,
  );
}
