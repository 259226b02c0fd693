/**
 * The golden frames in `sdk/vectors`, for those who send them through something.
 *
 * @module
 */
import type { JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** One frame and what it means. */
export interface Vector {
  readonly name: string;
  /** Who sends it. */
  readonly direction: "worker" | "engine";
  /** The text as it travels. */
  readonly frame: string;
  /** What it says, if it is well formed. */
  readonly message?: JsonObject;
  /** The code it is refused with, if it is not. */
  readonly error?: string;
  /** Writing `message` gives `frame` again. */
  readonly canonical?: boolean;
}

/** All of them, file by file. */
export async function readVectors(): Promise<Vector[]> {
  const directory = new URL("../../sdk/vectors/", import.meta.url);
  const names: string[] = [];
  for await (const entry of Deno.readDir(directory)) names.push(entry.name);
  const texts = names.filter((name) => name.endsWith("_messages.json")).sort()
    .map((name) => Deno.readTextFile(new URL(name, directory)));
  return (await Promise.all(texts)).flatMap((text) => JSON.parse(text) as Vector[]);
}
