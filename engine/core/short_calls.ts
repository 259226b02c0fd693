/**
 * Calls that are over as soon as they came, as an observer hears of them.
 *
 * @module
 */
import { DEFAULT_NAMESPACE, type InvokeFunction } from "../../sdk/typescript/wire/protocol.ts";
import type { ShortCall } from "../ports/call_observer.ts";
import { fieldText } from "./field_text.ts";
import type { Peer } from "./peer.ts";

/** A call whose frame is `text`; left out: what it carries is not known. */
export function shortCallOf(caller: Peer, call: InvokeFunction, text?: string): ShortCall {
  const { function_id, namespace = DEFAULT_NAMESPACE, traceparent, baggage, timeout_ms = 0 } = call;
  return {
    function_id,
    namespace,
    caller: caller.party,
    caller_invocation_id: call.action === undefined ? call.invocation_id : undefined,
    traceparent,
    baggage,
    timeout_ms,
    request: () => text === undefined ? undefined : fieldText(text, "data"),
  };
}
