/**
 * All sections of the benchmark, in the order of the report.
 *
 * @module
 */
import type { Section } from "../bench.ts";
import { fairness } from "./fairness.ts";
import { http } from "./http.ts";
import { linked } from "./linked.ts";
import { peers } from "./peers.ts";
import { pubsub } from "./pubsub.ts";
import { queue } from "./queue.ts";
import { relay } from "./relay.ts";
import { sdk } from "./sdk.ts";
import { services } from "./services.ts";
import { start } from "./start.ts";
import { state } from "./state.ts";
import { streams } from "./streams.ts";
import { tracing } from "./tracing.ts";

/** Every section. */
export const SECTIONS: readonly Section[] = [
  relay,
  tracing,
  sdk,
  linked,
  http,
  streams,
  state,
  pubsub,
  queue,
  fairness,
  start,
  peers,
  services,
];
