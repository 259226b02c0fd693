/**
 * The part `metrics` of the configuration of `engine-observability`.
 *
 * @module
 */
import * as shape from "../../kit/mod.ts";
import { AlertRules } from "../alerts.ts";

/** Checked, with all defaults in place. */
export const MetricsConfig = shape.strictObject({
  /** Serves `/metrics` on the worker port. */
  prometheus: shape.boolean().default(true),
  alerts: AlertRules,
});

/** What metrics may be told. */
export type MetricsSettings = shape.Output<typeof MetricsConfig>;
