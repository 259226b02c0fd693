/**
 * The short form of each scenario of `deno task torture`: less of everything, with bounds that also
 * hold on a busy machine.
 *
 * @module
 */
import assert from "node:assert/strict";
import { Campaign } from "./campaign.ts";
import { lineOf } from "./report.ts";
import { SCENARIOS } from "./scenarios/mod.ts";

const SEED = Number(Deno.env.get("TORTURE_SEED") ?? 1);
const TREE = new URL("../../", import.meta.url).pathname;
/** Sections that only the campaign runs, by scenario. */
const CAMPAIGN_ONLY: Readonly<Record<string, readonly string[]>> = {};

for (const scenario of SCENARIOS) {
  Deno.test(`the engine under attack: ${scenario.name}`, async () => {
    const except = CAMPAIGN_ONLY[scenario.name] ?? [];
    const options = { seed: SEED, minutes: 0, tree: TREE, isShort: true, sections: [], except };
    const lines: string[] = [];
    const campaign = new Campaign(options, (line) => lines.push(line));

    await scenario.run(campaign);

    const broken = campaign.rows.filter((row) => row.broken.length > 0);
    assert.deepEqual(broken.map(lineOf), [], `seed ${SEED}\n${lines.join("\n")}`);
  });
}
