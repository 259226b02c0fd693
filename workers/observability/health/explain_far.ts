/**
 * Explains a call that two engines of a cluster had a part in: the one that it came to, and the one
 * whose worker ran it.
 *
 * Each engine explains its own part; sentences of the other one name it.
 *
 * @module
 */
import type { Json, JsonObject } from "../../../sdk/typescript/wire/protocol.ts";
import type { EngineAnswer } from "../../kit/engines.ts";

/** Asks all other engines. */
export type AskEngines = (function_id: string, payload: Json) => Promise<EngineAnswer[]>;

const FUNCTION = "engine::traces::explain";
/** Sentences that are taken from another engine. */
const LINES_MAX = 100;

/** The explanation with what the other engine did, if the call was sent to one. */
export async function explainThere(own: JsonObject, ask: AskEngines): Promise<JsonObject> {
  const { engine, span, trace_id } = own;
  if (typeof engine !== "string") return own;
  const { span_id } = span as { span_id: string };
  const answers = await ask(FUNCTION, { invocation_id: span_id, trace_id: trace_id! });
  const [there] = answers.filter((answer) => linesOf(answer).length > 0);
  const lines = there
    ? linesOf(there).slice(1, LINES_MAX).map((line) => `At engine ${there.engine}: ${line}`)
    : [`Engine ${engine} recorded nothing about it, or did not answer`];
  return {
    ...own,
    lines: [...own.lines as string[], ...lines],
    there: there ? there.result : null,
  };
}

/** The explanation of a call that only another engine knows. */
export async function explainElsewhere(
  id: string,
  ask: AskEngines,
): Promise<JsonObject | undefined> {
  const [found] = (await ask(FUNCTION, { invocation_id: id })).filter((answer) =>
    linesOf(answer).length > 0
  );
  if (!found) return undefined;
  const lines = [`Engine ${found.engine} recorded it`, ...linesOf(found).slice(0, LINES_MAX)];
  return { ...found.result as JsonObject, lines };
}

function linesOf({ result }: EngineAnswer): string[] {
  const { lines } = (result ?? {}) as { lines?: unknown };
  return Array.isArray(lines) ? lines.map(String) : [];
}
