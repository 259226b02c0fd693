/**
 * Whether tests can boot microVMs on this machine, and why not.
 *
 * A test that needs one is skipped where there is none:
 * `Deno.test({ name, ignore: typeof vmHere === "string", fn })`; the reason is printed once.
 *
 * @module
 */
import {
  findVmHost,
  type VmHost,
  type VmPlaces,
  vmPlaces,
} from "../../engine/vm/machine/host_tools.ts";
import { EngineError } from "../../sdk/typescript/wire/errors.ts";

/** What microVMs are made with here, or the reason why there can be none. */
export async function vmHostOrReason(places: VmPlaces = vmPlaces()): Promise<VmHost | string> {
  try {
    return await findVmHost("of a test", places);
  } catch (thrown) {
    if (thrown instanceof EngineError) return thrown.message;
    throw thrown;
  }
}

/** The answer for this machine; a reason has been printed. */
export const vmHere: VmHost | string = await vmHostOrReason();

if (typeof vmHere === "string") console.error(`No test boots a microVM: ${vmHere}`);
