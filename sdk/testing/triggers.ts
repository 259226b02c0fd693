/**
 * Conditions of triggers, messages of topics, and the times of schedules in a test engine
 * (PROTOCOL 4.3, 4.5 and 4.7).
 *
 * @module
 */
import { EngineError } from "../typescript/wire/errors.ts";
import type { Json, JsonObject, RegisterTrigger } from "../typescript/wire/protocol.ts";
import { nextTime, parseCron } from "./cron.ts";
import type { Routing } from "./routing.ts";

/** Whether the condition of a trigger lets an event pass: anything but `false` and an error. */
export async function passes(
  routing: Routing,
  { config, namespace }: RegisterTrigger,
  payload: Json,
): Promise<boolean> {
  const id = (config as JsonObject | undefined)?.condition_function_id;
  if (typeof id !== "string") return true;
  try {
    return await routing.call({ function_id: id, payload, namespace }) !== false;
  } catch {
    return false;
  }
}

/** Adds `publish` and the trigger type `subscribe`. */
export function addTopics(routing: Routing): void {
  routing.types.set("subscribe", {
    added: ({ config }) => void topicOf((config ?? null) as JsonObject | null),
  });
  routing.builtins.set("publish", (payload) => {
    const topic = topicOf(payload as JsonObject | null);
    const { data = null } = payload as JsonObject;
    for (const trigger of routing.triggers("subscribe")) {
      if (!matches(topicOf(trigger.config as JsonObject), topic)) continue;
      void passes(routing, trigger, data).then((isPassed) => {
        if (isPassed) routing.fire({ ...trigger, payload: data });
      });
    }
  });
}

function topicOf(from: JsonObject | null): string {
  const topic = from?.topic;
  if (typeof topic === "string" && topic !== "") return topic;
  throw new EngineError("topic_not_set", "topic must be a string");
}

/** Whether a topic fits a pattern: `*` is one part, `>` at the end one or more. */
function matches(pattern: string, topic: string): boolean {
  const [wanted, parts] = [pattern.split("."), topic.split(".")];
  const isOpen = wanted.at(-1) === ">";
  if (isOpen ? parts.length < wanted.length : parts.length !== wanted.length) return false;
  return wanted.every((part, i) => part === "*" || part === ">" || part === parts[i]);
}

/** Adds the trigger type `cron`: functions are called as the test lets time pass. */
export function addSchedules(routing: Routing): void {
  const stops = new Map<string, () => void>();
  routing.types.set("cron", {
    added(trigger) {
      const { expression, timezone = "UTC" } = (trigger.config ?? {}) as JsonObject;
      if (typeof expression !== "string" || expression === "") {
        throw new Error("Cron expression is required");
      }
      if (timezone !== "UTC") throw new Error("A test engine has the time zone UTC only");
      const schedule = parseCron(expression);
      const { clock } = routing;
      const wait = (): void => {
        const next = nextTime(schedule, clock.wall());
        if (next === undefined) return;
        stops.set(
          trigger.id,
          clock.after(next - clock.wall(), () => {
            wait();
            void fire(routing, trigger, next);
          }),
        );
      };
      wait();
    },
    removed: (id) => stops.get(id)?.(),
  });
}

async function fire(routing: Routing, trigger: RegisterTrigger, at: number): Promise<void> {
  const scheduled_time = timeText(at);
  const actual_time = timeText(routing.clock.wall());
  const payload = { trigger: "cron", job_id: trigger.id, scheduled_time, actual_time };
  if (await passes(routing, trigger, payload)) routing.fire({ ...trigger, payload });
}

function timeText(at: number): string {
  return new Date(at).toISOString().replace(/(\.000)?Z$/, "+00:00");
}
