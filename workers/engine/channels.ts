/**
 * Registers `engine::channels::create` (PROTOCOL 5.5).
 *
 * @module
 */
import type { Channels } from "../../engine/ports/channels.ts";
import { CHANNEL_FRAMES_DEFAULT, CHANNEL_FRAMES_MAX } from "../../sdk/typescript/wire/channels.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import * as v from "../kit/schema.ts";
import type { CheckedFunctions } from "./functions.ts";

/** Owner of the channels of calls that name no connection, such as those that triggers make. */
const NO_OWNER = "";

const Create = v.object({
  buffer_size: v.described(
    `Messages that may be on the way to the reader, 1 to ${CHANNEL_FRAMES_MAX}; ` +
      `others become the nearest of these. Default: ${CHANNEL_FRAMES_DEFAULT}`,
    v.nullish(v.number()),
  ),
});

/** Registers the function; a channel counts as one of the connection that called. */
export function registerChannels(registry: CheckedFunctions, channels: Channels): void {
  registry.add(
    "engine::channels::create",
    "Creates a channel for a stream of bytes and text messages; returns a reference to each end",
    Create,
    ({ buffer_size }, { caller }) => {
      return channels.create(
        caller ?? NO_OWNER,
        framesOf(buffer_size ?? CHANNEL_FRAMES_DEFAULT),
      ) as unknown as Json;
    },
  );
}

/** Whole, and within the bounds; NaN does not occur in JSON. */
function framesOf(bufferSize: number): number {
  return Math.max(1, Math.min(CHANNEL_FRAMES_MAX, Math.trunc(bufferSize)));
}
