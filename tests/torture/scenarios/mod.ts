/**
 * The scenarios of the campaign, in the order in which they run.
 *
 * @module
 */
import type { Scenario } from "../campaign.ts";
import { accounting } from "./accounting.ts";
import { cluster } from "./cluster.ts";
import { cuts } from "./cuts.ts";
import { descriptors } from "./descriptors.ts";
import { drain } from "./drain.ts";
import { floods } from "./floods.ts";
import { frozen } from "./frozen.ts";
import { fuzz } from "./fuzz.ts";
import { memory } from "./memory.ts";
import { messages } from "./messages.ts";
import { queues } from "./queues.ts";
import { soak } from "./soak.ts";
import { state } from "./state.ts";
import { subscribers } from "./subscribers.ts";

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [
  accounting,
  cuts,
  state,
  queues,
  cluster,
  fuzz,
  messages,
  floods,
  memory,
  subscribers,
  descriptors,
  frozen,
  drain,
  soak,
];
