/**
 * The pages of the console, in the order of the side bar. The first one opens.
 *
 * A new page is a file here that exports a {@linkcode ConsolePage}, and a line below.
 *
 * @module
 */
import type { ConsolePage } from "../kit/page_list.ts";
import { configurationPage } from "./configuration.tsx";
import { flowPage } from "./flow.tsx";
import { functionsPage } from "./functions.tsx";
import { logsPage } from "./logs.tsx";
import { metricsPage } from "./metrics.tsx";
import { statePage } from "./state.tsx";
import { tracesPage } from "./traces.tsx";
import { triggersPage } from "./triggers.tsx";
import { workersPage } from "./workers.tsx";

/** See the module. */
export const PAGES: readonly ConsolePage[] = [
  workersPage,
  functionsPage,
  triggersPage,
  flowPage,
  tracesPage,
  logsPage,
  metricsPage,
  statePage,
  configurationPage,
];
