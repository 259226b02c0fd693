/**
 * `deno task first-hour`: the first hour of each kind of user, from an empty home.
 *
 * Builds the packages, then does with them what README and docs say, and fails at the first step
 * that does not go as they say. Words choose users: `deno task first-hour python`. It needs Node,
 * Python and a network for pip and npm; without Chromium the browser's hour is left out.
 *
 * @module
 */
import { buildPython, packNpm } from "../../sdk/package.ts";
import { chromiumHere } from "../console/console_browser.ts";
import { browserHour } from "./browser.ts";
import { Newcomer } from "./newcomer.ts";
import { nodeHour } from "./node.ts";
import { pythonHour } from "./python.ts";

const HOURS = { python: pythonHour, node: nodeHour, browser: browserHour };

const dist = await Deno.makeTempDir({ prefix: "engine-dist-" });
const tarball = await packNpm(dist);
const { wheel } = await buildPython(dist);
let failed = 0;
for (const [name, hour] of Object.entries(HOURS)) {
  if (Deno.args.length > 0 && !Deno.args.includes(name)) continue;
  console.log(`\n${name}`);
  if (name === "browser" && chromiumHere === undefined) {
    console.log("left out: there is no Chromium here");
    continue;
  }
  await using user = await Newcomer.arrive();
  try {
    await hour(user, { tarball, wheel });
  } catch (thrown) {
    console.log(`failed:\n${thrown instanceof Error ? thrown.message : thrown}`);
    failed++;
  }
}
await Deno.remove(dist, { recursive: true });
console.log(failed === 0 ? "\nEvery step went as the documents say." : `\n${failed} failed`);
Deno.exit(failed === 0 ? 0 : 1);
