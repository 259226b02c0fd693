/**
 * `engine::config::list`: the configuration in force, and where each value comes from.
 *
 * @module
 */
import * as shape from "../kit/mod.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import type { Offers } from "./offers.ts";

const Nothing = shape.object({});

/** Registers the function. Secrets are shortened before they come here. */
export function offerSettings(
  offers: Offers,
  host: Pick<EngineHost, "configuration" | "supervision">,
): void {
  offers.add(
    "engine::config::list",
    "The configuration in force, and where each value comes from",
    Nothing,
    () => ({
      settings: host.configuration() as unknown as Json, // Plain values, as the port says.
      path: host.supervision.info().config_path,
    }),
  );
}
