/**
 * The version of this engine, as deno.json has it.
 *
 * @module
 */
import manifest from "../deno.json" with { type: "json" };

/** Such as `0.1.0`. */
export const VERSION: string = manifest.version;
