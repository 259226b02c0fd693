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
import { logsPage } from "./logs.tsx";
import { tracesPage } from "./traces.tsx";
import { workersPage } from "./workers.tsx";

/** See the module. */
export const PAGES: readonly ConsolePage[] = [
  workersPage,
  flowPage,
  tracesPage,
  logsPage,
  configurationPage,
];
