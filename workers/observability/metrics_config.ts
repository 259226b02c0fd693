/**
 * The part `metrics` of the configuration of `engine-observability`.
 *
 * @module
 */
import { z } from "zod";
import { AlertRules } from "./alerts.ts";

/** Checked, with all defaults in place. */
export const MetricsConfig = z.strictObject({
  /** Serves `/metrics` on the worker port. */
  prometheus: z.boolean().default(true),
  alerts: AlertRules,
});

/** What metrics may be told. */
export type MetricsSettings = z.infer<typeof MetricsConfig>;
