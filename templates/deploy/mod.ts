/**
 * The files of `engine deploy init`, as text that is part of the program. `{{name}}` is the name of
 * the project, `{{directory}}` where it is on the server, `{{engine}}` the command there,
 * `{{version}}` that of the engine, `{{deno}}` that of Deno.
 *
 * @module
 */
import composeFile from "./compose.yaml" with { type: "text" };
import dockerfile from "./Dockerfile.txt" with { type: "text" };
import dockerignore from "./dockerignore.txt" with { type: "text" };
import unit from "./engine.service" with { type: "text" };

/** Texts with placeholders. */
export const deployTemplates = { composeFile, dockerfile, dockerignore, unit } as const;
