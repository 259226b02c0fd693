/**
 * `engine publish` and `engine subscribe`: send a message to a topic, and print what is sent.
 *
 * @module
 */
import type { Command } from "@commander-js/extra-typings";
import { readNumber, TOKEN_HELP, URL_HELP } from "../arguments.ts";
import { parseValue } from "../payload.ts";
import { compactJson } from "../render.ts";
import type { Terminal } from "../terminal.ts";

const PUBLISH_EXAMPLES = `
Examples:
  engine publish orders.created '{"id": 7}'
  engine publish greetings hello
  generate | engine publish orders.created -`;

const SUBSCRIBE_EXAMPLES = `
Examples:
  engine subscribe orders.created
  engine subscribe 'orders.>' --count 1`;

const COUNT_MAX = 1_000_000_000;

/** Adds `engine publish`. */
export function addPublish(program: Command, terminal: Terminal): void {
  program.command("publish")
    .description("Publish a message to a topic")
    .argument("<topic>", "such as orders.created")
    .argument("[data]", "JSON, else text; - for standard input; left out: null")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", PUBLISH_EXAMPLES)
    .action(async (topic, data, flags) => {
      const text = data === "-" ? (await terminal.readInput()).trimEnd() : data;
      const payload = { topic, ...text !== undefined && { data: parseValue(text) } };
      await using engine = await terminal.connect({ ...flags, isShort: true });
      await engine.call("publish", payload);
    });
}

/** Adds `engine subscribe`. */
export function addSubscribe(program: Command, terminal: Terminal): void {
  program.command("subscribe")
    .description("Print messages of a topic as they arrive, one JSON per line, until Ctrl-C")
    .argument("<topic>", "a topic, or a pattern such as orders.* or orders.>")
    .option("--count <number>", "exit after this many messages")
    .option("--url <url>", URL_HELP)
    .option("--token <token>", TOKEN_HELP)
    .addHelpText("after", SUBSCRIBE_EXAMPLES)
    .action(async (topic, flags) => {
      const most = flags.count === undefined
        ? Infinity
        : readNumber("--count", flags.count, 1, COUNT_MAX);
      const { promise: ended, resolve: end } = Promise.withResolvers<void>();
      const stopListening = terminal.onInterrupt(() => end());
      try {
        await using engine = await terminal.connect(flags);
        let heard = 0;
        const { lost } = await engine.subscribe(topic, (data) => {
          if (heard === most) return;
          terminal.out(compactJson(data));
          if (++heard === most) end();
        });
        terminal.err(`Subscribed to ${topic}`);
        await Promise.race([ended, lost]);
      } finally {
        stopListening();
      }
    });
}
