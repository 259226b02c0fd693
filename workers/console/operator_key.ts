/**
 * The secret in the address of a page that belongs to the engine's own user.
 *
 * It is made from the key that the engine leaves in a file which only that user can read, so the
 * command line can give out the address of a console that runs inside the engine. The key itself
 * never goes into an address, since addresses are kept by browsers and shown to bystanders.
 *
 * @module
 */
import type { ControlKeyInfo } from "../../engine/ports/supervision.ts";
import { memberOf } from "./json_text.ts";
import { derive } from "./secrets.ts";

/** The secret for an engine whose key lies there now; `undefined`: there is none. */
export async function operatorKeyOf(info: ControlKeyInfo): Promise<string | undefined> {
  if (info.problem !== null) return undefined;
  try {
    const key = memberOf(JSON.parse(await Deno.readTextFile(info.path)), "key");
    return typeof key === "string" ? await addressKey(key) : undefined;
  } catch {
    return undefined; // Gone or broken: then nobody can prove to be the user.
  }
}

/** The secret for a control key. */
export function addressKey(controlKey: string): Promise<string> {
  return derive(controlKey, "engine-console address");
}
