/**
 * Writes the JSON Schemas of config.yaml and engine.worker.yaml into a project, for editors: the
 * templates' files name them in a `# yaml-language-server` line.
 *
 * @module
 */
import { builtinWorkers } from "../workers/mod.ts";
import { configSchema } from "./config/config.ts";
import { manifestSchema } from "./install/manifest.ts";
import { writeFiles } from "./install/sdk_copy.ts";

/** Writes both below the data directory. */
export async function writeSchemas(dataDirectory: string): Promise<void> {
  const text = (schema: unknown): string => `${JSON.stringify(schema, null, 2)}\n`;
  await writeFiles(`${dataDirectory}/schemas`, {
    "config.json": text(configSchema(builtinWorkers)),
    "engine.worker.json": text(manifestSchema()),
  });
}
