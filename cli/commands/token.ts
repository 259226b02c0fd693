/**
 * `engine token`: creates, lists and revokes tokens for clients of the project here.
 *
 * It works on the project's file of tokens, which a running engine reads; no engine has to run.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { CreatedToken, NewToken, TokenInfo } from "../../engine/mod.ts";
import type { Json } from "../../mod.ts";
import { UsageError } from "../failure.ts";
import { compactJson, renderDuration, renderTable } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine token create --name ci --allow 'orders::*' --expires 30d
  ENGINE_TOKEN=$(engine token create --name laptop) engine functions
  engine token list
  engine token revoke ci`;

const DAY_MS = 86_400_000;
const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: DAY_MS,
  w: 7 * DAY_MS,
};
/** Ten years. */
const EXPIRES_MS_MAX = 3_650 * DAY_MS;

/** The tokens of a project; tests provide others. */
export interface ProjectTokens {
  create(directory: string, wanted: NewToken): Promise<CreatedToken>;
  list(directory: string): Promise<readonly TokenInfo[]>;
  revoke(directory: string, name: string): Promise<TokenInfo>;
}

/** Adds `engine token`. */
export function addToken(
  program: Command,
  terminal: Terminal,
  tokens: () => Promise<ProjectTokens> = thisMachine,
): void {
  const token = program.command("token")
    .description("Create, list and revoke tokens for clients of the project here")
    .addHelpText("after", EXAMPLES);
  token.command("create")
    .addHelpText("after", EXAMPLES)
    .description("Create a token and print it, once; only a hash of it is stored")
    .option("--name <name>", "its name in lists and logs (required)")
    .option(
      "--allow <pattern...>",
      "functions that it may call and register, such as 'orders::*' (default: all)",
    )
    .option("--expires <time>", "how long it is valid, such as 12h or 30d (default: until revoked)")
    .option("--json", "print JSON on one line, for programs")
    .action(async ({ name, allow, expires, json }) => {
      if (name === undefined) throw new UsageError("--name: expected the name of the new token");
      const wanted: NewToken = {
        name,
        ...allow && { allow },
        ...expires !== undefined && { expires_ms: readExpires(expires) },
      };
      const made = await (await tokens()).create(terminal.directory, wanted);
      terminal.out(json ? compactJson({ token: made.token, ...made.info } as Json) : made.token);
      if (!json) terminal.err(noteOf(made.info, terminal.wall()));
    });
  token.command("list")
    .addHelpText("after", EXAMPLES)
    .description("List the tokens: what they allow, and until when")
    .option("--json", "print JSON on one line, for programs")
    .action(async ({ json }) => {
      const list = await (await tokens()).list(terminal.directory);
      if (json) terminal.out(compactJson(list as unknown as Json));
      else if (list.length === 0) terminal.err("There are no tokens; see engine token create");
      else for (const line of renderTokens(list, terminal.wall())) terminal.out(line);
    });
  token.command("revoke")
    .addHelpText("after", EXAMPLES)
    .description("Revoke a token; its connections end within a second")
    .argument("<name>", "name of the token")
    .action(async (name) => {
      await (await tokens()).revoke(terminal.directory, name);
      terminal.err(`Revoked ${name}`);
    });
}

/**
 * Reads how long a token is valid, as milliseconds.
 *
 * @throws {UsageError} With the formats that are accepted.
 */
export function readExpires(text: string): number {
  const [, number, unit = ""] = /^(\d+)([smhdw])$/.exec(text) ?? [];
  const ms = Number(number) * (UNIT_MS[unit] ?? NaN);
  if (ms > 0 && ms <= EXPIRES_MS_MAX) return ms;
  throw new UsageError(
    "--expires: expected a time such as 12h or 30d, up to 3650d, " +
      `received ${JSON.stringify(text)}`,
  );
}

function noteOf(info: TokenInfo, now: number): string {
  const what = info.allow === null ? "every function" : info.allow.join(", ");
  return `Token ${info.name} allows ${what}${until(info, now)}; it is not shown again. ` +
    "Workers pass it as the option token, the command line takes ENGINE_TOKEN. Only listeners " +
    "that ask for a token refuse clients without one: set engine.auth_token, or tokens: true of " +
    "a listener";
}

function until({ expires_at_ms }: TokenInfo, now: number): string {
  return expires_at_ms === null ? "" : ` for ${renderDuration(expires_at_ms - now)}`;
}

function renderTokens(tokens: readonly TokenInfo[], now: number): string[] {
  const rows = tokens.map((token) => [
    token.name,
    stateOf(token, now),
    token.allow === null ? "all functions" : token.allow.join(", "),
    new Date(token.created_at_ms).toISOString().slice(0, 10),
  ]);
  return renderTable(["NAME", "STATE", "ALLOWS", "CREATED"], rows);
}

function stateOf({ expires_at_ms, revoked_at_ms }: TokenInfo, now: number): string {
  if (revoked_at_ms !== null) return "revoked";
  if (expires_at_ms === null) return "valid";
  if (expires_at_ms <= now) return "expired";
  return `valid for ${renderDuration(expires_at_ms - now)}`;
}

async function thisMachine(): Promise<ProjectTokens> {
  const { createToken, listTokens, revokeToken } = await import("../../engine/mod.ts");
  return { create: createToken, list: listTokens, revoke: revokeToken };
}
