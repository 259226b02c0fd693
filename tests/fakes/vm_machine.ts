/**
 * Whether this machine can run microVMs, for the tests that boot some.
 *
 * @module
 */
import { findVmHost } from "../../engine/vm/host_tools.ts";

/** Why not; `undefined` when it can. */
export async function vmObstacle(): Promise<string | undefined> {
  try {
    await findVmHost("test");
    return undefined;
  } catch (thrown) {
    return (thrown as Error).message;
  }
}
