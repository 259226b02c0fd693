/**
 * `engine::baggage::*`: what travels with the call that asks.
 *
 * Baggage goes down the calls, never up: a function cannot change that of its caller.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import { BAGGAGE_ENTRIES_MAX } from "../limits.ts";
import type { Worker } from "../../sdk/typescript/worker.ts";
import { fit } from "../kit/payload.ts";

const GetRequest = shape.object({ key: shape.string() });
const SetRequest = shape.object({ key: shape.string().min(1), value: shape.string() });

const NOTE = "Baggage goes down with calls and never up: nothing was changed. " +
  "Send the baggage with the calls that shall have it";

/** Registers `engine::baggage::{get,set,get_all}`. */
export function offerBaggage(worker: Pick<Worker, "registerFunction">): void {
  worker.registerFunction("engine::baggage::get", (payload, _metadata, { baggage }) => {
    const { key } = fit("engine::baggage::get", GetRequest, payload);
    return { value: readBaggage(baggage).get(key) ?? null };
  }, { description: "A value of the baggage that came with the call" });
  worker.registerFunction("engine::baggage::set", (payload) => {
    fit("engine::baggage::set", SetRequest, payload);
    return { success: false, note: NOTE };
  }, { description: "Says why a call cannot change the baggage of its caller" });
  worker.registerFunction("engine::baggage::get_all", (_payload, _metadata, { baggage }) => ({
    baggage: Object.fromEntries(readBaggage(baggage)),
  }), { description: "All of the baggage that came with the call" });
}

/**
 * The members of a W3C baggage header by key, percent-decoded, without their properties.
 *
 * Members that are none are left out; of equal keys the last wins.
 */
export function readBaggage(header: string | undefined): Map<string, string> {
  const members = new Map<string, string>();
  if (header === undefined) return members;
  for (const part of header.split(",", BAGGAGE_ENTRIES_MAX)) {
    const [member = ""] = part.split(";", 1);
    const at = member.indexOf("=");
    const key = member.slice(0, Math.max(0, at)).trim();
    if (key !== "") members.set(key, decode(member.slice(at + 1).trim()));
  }
  return members;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Not an escape after all.
  }
}
