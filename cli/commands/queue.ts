/**
 * `engine queue`: what the queues of an engine hold, dead letters, pause and resume.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import type { Json, JsonObject } from "../../mod.ts";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import type { EngineAddress } from "../connect.ts";
import { CommandError, UsageError } from "../failure.ts";
import { readPayload } from "../payload.ts";
import {
  compactJson,
  count,
  renderDuration,
  renderJson,
  renderStack,
  renderTable,
} from "../render.ts";
import type { Terminal } from "../terminal.ts";

const EXAMPLES = `
Examples:
  engine queue list
  engine queue add mail mail::send to=a@b.c
  engine queue dead mail
  engine queue redrive mail                 all dead letters
  engine queue redrive mail 6b0f3f1e-2d0a   one of them
  engine queue discard mail --all`;

/** Characters of a payload in a table. */
const PAYLOAD_CHARS = 60;
const LIMIT_MAX = 1_000;

interface Flags extends EngineAddress {
  readonly json?: boolean | undefined;
}

/** A queue, as `engine::queue::list` describes it. */
interface QueueView {
  readonly name: string;
  readonly waiting: number;
  readonly running: number;
  readonly delayed: number;
  readonly dead: number;
  readonly done_total: number;
  readonly failed_total: number;
  readonly oldest_age_ms: number | null;
  readonly paused: boolean;
  readonly is_counting: boolean;
}

/** A job that waits, as `engine::queue::peek` describes it. */
interface WaitingView {
  readonly id: string;
  readonly state: string;
  readonly function_id: string;
  readonly payload: Json;
  readonly attempts: number;
}

/** A dead letter, as `engine::queue::dlq_messages` describes it. */
interface DeadView extends Omit<WaitingView, "state" | "attempts"> {
  readonly error: string;
  readonly retries: number;
  readonly failures: readonly { readonly stacktrace?: string }[];
}

/** Adds `engine queue`. */
export function addQueue(program: Command, terminal: Terminal): void {
  const queue = program.command("queue")
    .description("Inspect queues, retry failed jobs, pause and resume")
    .addHelpText("after", EXAMPLES);
  addList(queue, terminal);
  addStats(queue, terminal);
  addPeek(queue, terminal);
  addAdd(queue, terminal);
  addDead(queue, terminal);
  addDeadJobs(queue, terminal, "redrive", "Retry dead letters, all or some");
  addDeadJobs(queue, terminal, "discard", "Delete dead letters, some or --all");
  addSwitch(queue, terminal, "pause", "Pause a queue: no more jobs start until it is resumed");
  addSwitch(queue, terminal, "resume", "Resume a paused queue");
}

function addList(queue: Command, terminal: Terminal): void {
  queue.command("list")
    .description("List the queues with their numbers of jobs")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (flags) => {
      const answer = await ask(terminal, flags, "list", {});
      const { queues } = answer as unknown as { queues: readonly QueueView[] };
      if (flags.json) return terminal.out(compactJson(queues as unknown as Json));
      const head = ["QUEUE", "WAITING", "RUNNING", "DELAYED", "DEAD", "OLDEST", "STATE"];
      const rows = queues.map((each) => [
        each.name,
        ...[each.waiting, each.running, each.delayed, each.dead].map(String),
        each.oldest_age_ms === null ? "-" : renderDuration(each.oldest_age_ms),
        stateOf(each),
      ]);
      for (const line of renderTable(head, rows)) terminal.out(line);
    });
}

function stateOf({ paused, is_counting }: QueueView): string {
  return paused ? "paused" : is_counting ? "counting" : "open";
}

function addStats(queue: Command, terminal: Terminal): void {
  queue.command("stats")
    .description("Print the counts, settings and running jobs of a queue")
    .argument("<queue>", "name of the queue")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, flags) => {
      const stats = await ask(terminal, flags, "stats", { queue: name });
      terminal.out(flags.json ? compactJson(stats) : renderJson(stats));
    });
}

function addPeek(queue: Command, terminal: Terminal): void {
  queue.command("peek")
    .description("List waiting jobs, the next ones first")
    .argument("<queue>", "name of the queue")
    .option("--limit <n>", "maximum number (default: 20)")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, flags) => {
      const limit = readNumber("--limit", flags.limit ?? "20", 1, LIMIT_MAX);
      const answer = await ask(terminal, flags, "peek", { queue: name, limit });
      const { jobs } = answer as unknown as { jobs: readonly WaitingView[] };
      if (flags.json) return terminal.out(compactJson(jobs as unknown as Json));
      if (jobs.length === 0) return terminal.err(`Nothing waits in ${name}`);
      const rows = jobs.map((each) => [
        each.id,
        each.state,
        String(each.attempts),
        each.function_id,
        shortPayload(each.payload),
      ]);
      const head = ["JOB", "STATE", "FAILED", "FUNCTION", "PAYLOAD"];
      for (const line of renderTable(head, rows)) terminal.out(line);
    });
}

function addAdd(queue: Command, terminal: Terminal): void {
  queue.command("add")
    .description("Enqueue a call of a function and print the receipt")
    .argument("<queue>", "name of the queue")
    .argument("<function>", "id of the function")
    .argument("[fields...]", "fields of its payload as key=value")
    .option("--payload <json>", "the whole payload: JSON, @file, or - for standard input")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, function_id, fields, flags) => {
      const { readFile, readInput } = terminal;
      const data = await readPayload({ fields, payload: flags.payload, readFile, readInput });
      const receipt = await ask(terminal, flags, "enqueue", { queue: name, function_id, data });
      terminal.out(flags.json ? compactJson(receipt) : renderJson(receipt));
    });
}

function addDead(queue: Command, terminal: Terminal): void {
  queue.command("dead")
    .description("List dead letters, the oldest first; with an id, one of them in full")
    .argument("<queue>", "name of the queue")
    .argument("[job]", "id of a dead letter, to print it in full")
    .option("--limit <n>", "maximum number (default: 50)")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (name, id, flags) => {
      const most = id === undefined ? "50" : String(LIMIT_MAX);
      const limit = readNumber("--limit", flags.limit ?? most, 1, LIMIT_MAX);
      const answer = await ask(terminal, flags, "dlq_messages", { topic: name, limit });
      const all = answer as unknown as readonly DeadView[];
      const found = id === undefined ? all : all.filter((each) => each.id === id);
      if (id !== undefined && found.length === 0) {
        throw new CommandError(`No dead letter ${id} among the first ${limit} of ${name}`);
      }
      if (flags.json) return terminal.out(compactJson(found as unknown as Json));
      if (id !== undefined) return printDead(found[0]!, terminal);
      if (found.length === 0) return terminal.err(`No dead letters in ${name}`);
      const rows = found.map((each) => [
        each.id,
        String(each.retries),
        each.function_id,
        each.error,
        shortPayload(each.payload),
      ]);
      const head = ["JOB", "ATTEMPTS", "FUNCTION", "ERROR", "PAYLOAD"];
      for (const line of renderTable(head, rows)) terminal.out(line);
    });
}

/** One dead letter, with the stack trace of its last attempt. */
function printDead(dead: DeadView, terminal: Terminal): void {
  const failures = dead.failures.map(({ stacktrace: _stack, ...rest }) => rest);
  terminal.out(renderJson({ ...dead, failures } as unknown as Json));
  const stacktrace = dead.failures.at(-1)?.stacktrace;
  if (stacktrace === undefined) return;
  for (const line of renderStack(stacktrace, dead.function_id)) terminal.out(line);
}

function addDeadJobs(
  queue: Command,
  terminal: Terminal,
  name: "redrive" | "discard",
  description: string,
): void {
  const verb = name === "redrive" ? "redriven" : "discarded";
  queue.command(name)
    .description(description)
    .argument("<queue>", "name of the queue")
    .argument("[jobs...]", "ids of dead letters")
    .option("--all", "all dead letters of the queue")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (queueName, jobs, flags) => {
      if (name === "discard" && jobs.length === 0 && !flags.all) {
        throw new UsageError("Give the ids of dead letters, or --all");
      }
      const payload = { queue: queueName, ...jobs.length > 0 && { message_ids: jobs } };
      const answer = await ask(terminal, flags, name, payload) as JsonObject;
      if (flags.json) return terminal.out(compactJson(answer));
      terminal.out(`${count(answer[verb] as number, "dead letter")} ${verb}`);
    });
}

function addSwitch(
  queue: Command,
  terminal: Terminal,
  name: "pause" | "resume",
  description: string,
): void {
  queue.command(name)
    .description(description)
    .argument("<queue>", "name of the queue")
    .option("--json", "print JSON on one line, for programs")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", EXAMPLES)
    .action(async (queueName, flags) => {
      const answer = await ask(terminal, flags, name, { queue: queueName });
      if (flags.json) return terminal.out(compactJson(answer));
      terminal.out(`${queueName} ${name === "pause" ? "is paused" : "is resumed"}`);
    });
}

async function ask(terminal: Terminal, flags: Flags, name: string, payload: Json): Promise<Json> {
  await using engine = await terminal.connect(flags);
  return await engine.call(`engine::queue::${name}`, payload) ?? null;
}

function shortPayload(payload: Json): string {
  const text = compactJson(payload);
  return text.length <= PAYLOAD_CHARS ? text : `${text.slice(0, PAYLOAD_CHARS - 1)}…`;
}
