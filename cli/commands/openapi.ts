/**
 * `engine openapi`: writes the OpenAPI document of the HTTP routes of a running engine.
 *
 * `engine-http` writes the document, in pages; this command joins them and adds the address at
 * which the routes are served. It does not need `openapi: true`, which is for the path
 * `/openapi.json` of the HTTP port.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineConnection } from "../connect.ts";
import { CommandError, UsageError } from "../failure.ts";
import { compactJson, renderJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine openapi > openapi.json
  engine openapi --out openapi.json
  engine openapi --server https://api.example.com --out openapi.json`;

const FUNCTION_ID = "engine::http::openapi";
/** How often the document is read anew because routes changed while it was read. */
const ATTEMPTS_MAX = 5;
/** Pages of a document; the engine's bounds make fewer. */
const PAGES_MAX = 1_000;

interface Page {
  readonly text: string;
  readonly routes: number;
  /** Of the HTTP port. */
  readonly url: string;
  readonly next_cursor?: string;
}

interface WrittenDocument {
  readonly document: JsonObject;
  readonly routes: number;
  readonly url: string;
}

/** Adds `engine openapi`. */
export function addOpenapi(program: Command, terminal: Terminal): void {
  program.command("openapi")
    .description("Write the OpenAPI 3.1 document of the HTTP routes")
    .option("--out <file>", "write it to a file instead of standard output")
    .option("--server <url>", "address of the routes in the document (default: the HTTP port's)")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async ({ out, server, json, ...address }) => {
      if (server !== undefined && !URL.canParse(server)) {
        throw new UsageError(`--server: expected a URL, received ${JSON.stringify(server)}`);
      }
      await using engine = await terminal.connect(address);
      const { document, routes, url } = await readDocument(engine);
      const servers = [{ url: server ?? url }];
      const { openapi, info, ...rest } = document as Record<string, Json>;
      const whole = { openapi: openapi!, info: info!, servers, ...rest };
      const text = json ? compactJson(whole) : renderJson(whole);
      if (out === undefined) return terminal.out(text);
      await terminal.writeFile(out, `${text}\n`);
      terminal.err(`Wrote ${routes === 1 ? "1 route" : `${routes} routes`} to ${out}`);
    });
}

async function readDocument(engine: EngineConnection): Promise<WrittenDocument> {
  for (let attempt = 1;; attempt++) {
    try {
      return await readPages(engine);
    } catch (thrown) {
      const { code } = thrown as { code?: unknown };
      if (code === "function_not_found") throw withoutHttp();
      if (code !== "version_mismatch") throw thrown;
      if (attempt < ATTEMPTS_MAX) continue;
      throw new CommandError("The routes kept changing; try again when workers have settled");
    }
  }
}

async function readPages(engine: EngineConnection): Promise<WrittenDocument> {
  const texts: string[] = [];
  let cursor: string | undefined;
  for (let i = 0; i < PAGES_MAX; i++) {
    const payload = cursor === undefined ? {} : { cursor };
    const page = await engine.call(FUNCTION_ID, payload) as unknown as Page;
    texts.push(page.text);
    cursor = page.next_cursor;
    const { routes, url } = page;
    if (cursor === undefined) return { document: JSON.parse(texts.join("")), routes, url };
  }
  throw new CommandError(`The document has more than ${PAGES_MAX} pages`);
}

function withoutHttp(): CommandError {
  return new CommandError(
    "This engine serves no HTTP routes: engine-http does not run. " +
      "To add it: engine worker add engine-http",
  );
}
