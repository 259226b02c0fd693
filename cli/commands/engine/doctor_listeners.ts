/**
 * What `engine doctor` says of worker listeners besides the default one: their addresses, what they
 * ask for, and whether the functions that decide about access are there.
 *
 * @module
 */
import type { EngineInfo, ListenerInfo } from "../../../engine/mod.ts";
import type { Json } from "../../../mod.ts";
import type { EngineConnection } from "../../connect.ts";
import type { DoctorCheck } from "./doctor_checks.ts";

/** Ids that one call of `engine::functions::info` takes. */
const IDS_MAX = 32;

/** A check of each listener; none for an engine that does not tell of them. */
export async function checkListeners(
  { listeners = [] }: Partial<EngineInfo>,
  engine: Pick<EngineConnection, "call">,
): Promise<DoctorCheck[]> {
  const wanted = [...new Set(listeners.flatMap(({ functions }) => functions))];
  const missing = await missingOf(wanted, engine);
  return listeners.map((listener) => checkOf(listener, missing));
}

/** Which of some functions no worker offers. */
async function missingOf(
  ids: readonly string[],
  engine: Pick<EngineConnection, "call">,
): Promise<ReadonlySet<string>> {
  const missing = new Set<string>();
  for (let at = 0; at < ids.length; at += IDS_MAX) {
    const function_ids = ids.slice(at, at + IDS_MAX);
    const answer = await engine.call("engine::functions::info", { function_ids } as Json);
    const { functions } = answer as unknown as {
      functions: readonly { function_id: string; error?: Json }[];
    };
    for (const { function_id, error } of functions) if (error) missing.add(function_id);
  }
  return missing;
}

function checkOf(listener: ListenerInfo, missing: ReadonlySet<string>): DoctorCheck {
  const { name, url, functions } = listener;
  const check = { name: `listener ${name}`, measured: null };
  const absent = functions.filter((id) => missing.has(id));
  if (absent.length === 0) {
    return { ...check, status: "ok", message: `${url}: ${rulesText(listener)}`, remedy: null };
  }
  const isAuth = absent.includes(listener.auth_function_id ?? "");
  return {
    ...check,
    status: "warn",
    message: `${url}: no worker offers ${absent.join(", ")}, so ` +
      (isAuth ? "every connection is refused" : "what it decides about is refused"),
    remedy: "Start the worker that offers it, on the default listener",
  };
}

function rulesText(listener: ListenerInfo): string {
  const { asks_for_token, auth_function_id, middleware_function_id, has_rules } = listener;
  const parts = [
    asks_for_token ? "asks for a token" : "asks for no token",
    ...auth_function_id === null ? [] : [`${auth_function_id} authorises connections`],
    ...auth_function_id === null && has_rules ? ["calls what its rules expose"] : [],
    ...middleware_function_id === null ? [] : [`calls go to ${middleware_function_id}`],
    ...has_rules ? [] : ["has no access rules"],
  ];
  return parts.join(", ");
}
