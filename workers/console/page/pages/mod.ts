/**
 * The pages of the console, in the order of the side bar. The first one is the start page.
 *
 * To add a page, write a file or folder here that exports a {@linkcode ConsolePage}, add it below,
 * and run `deno task console`.
 *
 * @module
 */
import type { ConsolePage } from "../kit/router.ts";
import { clusterPage } from "./cluster/cluster.tsx";
import { configurationPage } from "./configuration/configuration.tsx";
import { flowPage } from "./flow/flow.tsx";
import { functionsPage } from "./functions/functions.tsx";
import { logsPage } from "./logs/logs.tsx";
import { metricsPage } from "./metrics/metrics.tsx";
import { overviewPage } from "./overview/overview.tsx";
import { queuesPage } from "./queues/queues.tsx";
import { settingsPage } from "./settings.tsx";
import { statePage } from "./state/state.tsx";
import { streamsPage } from "./streams/streams.tsx";
import { tracesPage } from "./traces/traces.tsx";
import { triggersPage } from "./triggers/triggers.tsx";
import { workersPage } from "./workers/workers.tsx";

/** All pages. */
export const PAGES: readonly ConsolePage[] = [
  overviewPage,
  workersPage,
  functionsPage,
  triggersPage,
  flowPage,
  tracesPage,
  logsPage,
  metricsPage,
  clusterPage,
  statePage,
  queuesPage,
  streamsPage,
  configurationPage,
  settingsPage,
];
