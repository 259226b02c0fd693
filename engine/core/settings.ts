/**
 * What the router is told from outside, and may be told anew while it runs.
 *
 * @module
 */
import type { LoadBounds } from "./function_table.ts";

/** The router's settings; PROTOCOL section 12 has the defaults. */
export interface RouterSettings extends LoadBounds {
  /** How long a call may take that names no time-out of its own. */
  readonly invocation_timeout_ms: number;
  /** Whether payloads are checked against `request_format`. */
  readonly validate_payloads: boolean;
}
