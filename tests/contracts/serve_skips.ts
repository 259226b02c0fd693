/**
 * What the listener on Deno.serve cannot hold of the claims about connections, and why.
 *
 * @module
 */
const SILENT_END = "Deno ends such a line without a close frame";
const NO_MASK = "Deno's WebSocket takes frames without a mask";

/** Claims by name, each with its reason. */
export const SERVE_SKIPS: Readonly<Record<string, string>> = {
  "a message of 64 MiB passes in one frame": "Deno drops a line at a frame of 64 MiB and more",
  "a frame that claims to be huge is told 1009": SILENT_END,
  "text that is not UTF-8 is told 1007": SILENT_END,
  "a reserved bit is told 1002": SILENT_END,
  "an unknown opcode is told 1002": SILENT_END,
  "a continuation of nothing is told 1002": SILENT_END,
  "a text amid fragments is told 1002": SILENT_END,
  "a ping of 126 bytes is told 1002": SILENT_END,
  "a ping in fragments is told 1002": SILENT_END,
  "a goodbye with half a code is told 1002": SILENT_END,
  "a frame without a mask ends the line": NO_MASK,
  "a frame without a mask is told 1002": NO_MASK,
  "a header without its payload gets an empty pong: Nagle's delay waits for a word":
    "Deno does not show that there is a header",
  "the head of an upgrade that stalls is given up": "Deno.serve has no limit for it",
  "pause() holds the peer back until resume()": "Deno reads ahead whatever is done with it",
};
