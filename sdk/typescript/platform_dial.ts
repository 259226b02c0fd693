/**
 * Opens a line the way the platform does it best: `ws` in Deno and Node, else the platform's own
 * WebSocket.
 *
 * @module
 */
import { browserDial } from "./browser_transport.ts";
import type { WorkerOptions } from "./options.ts";
import { environment, processGlobal } from "./platform.ts";
import { LAUNCH_ID_HEADER } from "./wire/protocol.ts";
import type { Dial } from "./wire/transport.ts";
import { wsDial } from "./ws_transport.ts";

/** The dialler of this platform, found when it dials. */
export const dialPlatform: Dial = (url, events, options) => {
  const dial = processGlobal() ? wsDial : browserDial;
  return dial(url, events, options);
};

/** The headers of every upgrade: the user's own, the token, which start of the engine's it is. */
export function headersOf(options: WorkerOptions): Record<string, string> {
  const headers: Record<string, string> = { ...options.headers };
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  const launchId = environment("ENGINE_LAUNCH_ID");
  if (launchId) headers[LAUNCH_ID_HEADER] = launchId;
  return headers;
}
