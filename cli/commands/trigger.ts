/**
 * `engine trigger`: call a function and print what it returns.
 *
 * Standard output gets exactly one JSON value, `null` when the function returned nothing.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { type Json, TriggerAction } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { CallOptions, EngineAddress } from "../connect.ts";
import { CommandError, ConnectionLost, describeFailure, ExitWith, UsageError } from "../failure.ts";
import { readPayload } from "../payload.ts";
import { compactJson, renderJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";
import { describeFunction, type FunctionDetail } from "./functions.ts";

/** Longest `--timeout-ms`: a week. */
const TIMEOUT_MS_MAX = 604_800_000;

/** Longest `--delay-ms`: a year. */
const DELAY_MS_MAX = 31_536_000_000;

/** Longest call on a connection without pings, which would miss a machine that vanished. */
const SHORT_CALL_MS_MAX = 60_000;

/** A payload of this size may exceed the message limit of an engine. */
const LARGE_BYTES = 1024 * 1024;

const EXAMPLES = `
Examples:
  engine trigger math::add a=2 b=3
  engine trigger --function-id=math::add --payload='{"a":2,"b":3}'
  engine trigger orders::create customer.name=Ann 'items=["tea","milk"]'
  engine trigger orders::import --payload=@orders.json --timeout-ms 120000
  echo '{"a":2}' | engine trigger math::add --payload=-
  engine trigger mail::send to=a@b.c --enqueue default --delay-ms 60000
  engine trigger math::add --help        what the function takes and returns

A field is key=value: the value is JSON if it parses as such, else text; dots in the key nest.
With --payload as well, fields are set on top of it. Without both, the payload is {}.
Prints one JSON value; null when the function returned nothing.`;

interface TriggerFlags extends EngineAddress {
  readonly functionId?: string | undefined;
  readonly payload?: string | undefined;
  readonly timeoutMs?: string | undefined;
  readonly enqueue?: string | undefined;
  readonly delayMs?: string | undefined;
  readonly json?: boolean | undefined;
  readonly raw?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

/** Adds `engine trigger`. */
export function addTrigger(program: Command, terminal: Terminal): void {
  const command = program.command("trigger")
    .alias("call")
    .description("Call a function and print its result")
    .argument("[words...]", "id of the function, then fields of its payload as key=value")
    .option("--function-id <id>", "id of the function, such as math::add")
    .option("--payload <json>", "the whole payload: JSON, @file, or - for standard input")
    .option("--timeout-ms <ms>", "how long to wait for the result (default: 30000)")
    .option("--enqueue <queue>", "enqueue the call, and print the receipt")
    .option("--delay-ms <ms>", "with --enqueue: delay before it may run")
    .option("--json", "print the result on one line, for programs")
    .option("--raw", "like --json, but a string without its quotes")
    .option("--verbose", "print the engine why command for this call on standard error")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .helpOption(false)
    .option("-h, --help", "this help; with the id of a function, its parameters")
    .addHelpText("after", EXAMPLES);
  command.action(async (words, flags) => {
    if (!flags.help) return await runTrigger(words, flags, terminal);
    const function_id = flags.functionId ?? words[0];
    if (function_id === undefined) return void command.outputHelp();
    await printHelpOf(function_id, flags, terminal);
  });
}

/** Calls the function that the words name, and prints what it returned. */
async function runTrigger(
  words: readonly string[],
  flags: TriggerFlags,
  terminal: Terminal,
): Promise<void> {
  const fields = [...words];
  const function_id = flags.functionId ?? fields.shift();
  if (function_id === undefined) {
    throw new UsageError("Missing function id. Example: engine trigger math::add a=2 b=3");
  }
  if (flags.functionId === undefined && function_id.includes("=")) {
    throw new UsageError(
      `The id of the function comes first: engine trigger FUNCTION ${function_id}`,
    );
  }
  const timeout_ms = flags.timeoutMs === undefined
    ? undefined
    : readNumber("--timeout-ms", flags.timeoutMs, 1, TIMEOUT_MS_MAX);
  const payload = await readPayload({
    fields,
    payload: flags.payload,
    readFile: terminal.readFile,
    readInput: terminal.readInput,
  });

  const isShort = timeout_ms === undefined || timeout_ms <= SHORT_CALL_MS_MAX;
  await using engine = await terminal.connect({ ...flags, isShort });
  const trace_id = hexDigits(16);
  // A call by hand is always recorded, whatever share of calls is sampled.
  const traceparent = `00-${trace_id}-${hexDigits(8)}-01`;
  const action = readEnqueue(flags);
  const result = await engine.call(function_id, payload, { timeout_ms, traceparent, action })
    .catch((thrown) => {
      throw withWhy(
        thrown,
        isCutOff(thrown) ? cutOff(thrown, function_id, payload) : thrown,
        flags.verbose ? trace_id : undefined,
      );
    });
  terminal.out(textOf(result ?? null, flags));
  if (flags.verbose) terminal.err(`why: engine why ${trace_id}`);
}

/** The action of `--enqueue`, if it is given. */
function readEnqueue({ enqueue, delayMs }: TriggerFlags): CallOptions["action"] {
  if (enqueue === undefined) {
    if (delayMs === undefined) return undefined;
    throw new UsageError("--delay-ms belongs to a job: add --enqueue QUEUE");
  }
  const delay_ms = delayMs === undefined
    ? undefined
    : readNumber("--delay-ms", delayMs, 0, DELAY_MS_MAX);
  return TriggerAction.Enqueue({ queue: enqueue, ...delay_ms !== undefined && { delay_ms } });
}

/** Appends how to look the call up, if the engine has seen it. */
function withWhy(thrown: unknown, shown: unknown, trace_id: string | undefined): unknown {
  const { invocation_id } = thrown as { invocation_id?: unknown };
  const id = typeof invocation_id === "string" ? invocation_id : trace_id;
  if (id === undefined) return shown;
  const { lines, exitCode } = describeFailure(shown);
  return new ExitWith(exitCode, [...lines, `why: engine why ${id}`]);
}

function hexDigits(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}

function isCutOff(thrown: unknown): boolean {
  return thrown instanceof ConnectionLost ||
    (thrown as { code?: unknown } | null)?.code === "invocation_stopped";
}

/** An engine closes the connection on too large a message, as if the worker had ended. */
function cutOff(thrown: unknown, function_id: string, payload: Json): unknown {
  const bytes = new TextEncoder().encode(compactJson(payload)).length;
  if (bytes < LARGE_BYTES) return thrown;
  return new CommandError(
    `The call of ${function_id} was cut off: its worker or the engine ended, or the payload of ` +
      `${bytes} bytes is more than the engine takes (engine.max_message_bytes in its config.yaml)`,
  );
}

function textOf(result: Json, flags: TriggerFlags): string {
  if (flags.raw && typeof result === "string") return result;
  return flags.raw || flags.json ? compactJson(result) : renderJson(result);
}

async function printHelpOf(
  function_id: string,
  flags: TriggerFlags,
  terminal: Terminal,
): Promise<void> {
  await using engine = await terminal.connect(flags);
  const detail = await engine.call("engine::functions::info", { function_id }).catch((thrown) => {
    if ((thrown as { code?: unknown }).code !== "NOT_FOUND") throw thrown;
    throw new CommandError(
      `Function ${function_id} not found, so its parameters are not known; ` +
        "see engine functions; how to call: engine trigger --help",
    );
  });
  for (const line of describeFunction(detail as unknown as FunctionDetail)) terminal.out(line);
}
