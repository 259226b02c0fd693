/**
 * The template `jobs` as a person runs it, on ports of its own, with its page in a real browser
 * where there is one.
 *
 * @module
 */
import assert from "node:assert/strict";
import { chromiumHere } from "../console/console_browser.ts";
import { HeadlessBrowser } from "../console/headless_browser.ts";
import { isAlive } from "../fakes/engine_process.ts";
import { checkShown, quickstart } from "../fakes/programs.ts";
import { until } from "../fakes/until.ts";

/** Longest time of all steps; they take some 20 s on a machine that does nothing else. */
const RUN_MS = 300_000;

Deno.test("the quickstart of jobs shows every step; its page adds jobs and shows them live", async () => {
  const child = quickstart("--template", "jobs", "--isolation", "process", "--keep");
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  const errors = new Response(child.stderr).text();
  let pids: number[] = [];
  try {
    let hasEnded = false;
    void child.status.then(() => hasEnded = true);
    const isUp = (): boolean => /Ctrl-C ends it[^]*streams +ws:/.test(text);
    await until(() => isUp() || hasEnded, () => text, RUN_MS);
    assert.ok(isUp(), `${text}${hasEnded ? await errors : ""}`);
    pids = [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));

    checkShown(text, "jobs", "process");
    assert.ok(pids.some(isAlive));
    if (chromiumHere !== undefined) await usePage(/page +(http:.*)/.exec(text)![1]!);
    else console.log("left out: the page of jobs needs Chromium");
  } finally {
    try {
      child.kill("SIGINT");
    } catch {
      // It has ended.
    }
  }
  const { code } = await child.status;
  await reading;

  assert.equal(code, 0, text + await errors);
  assert.deepEqual(pids.filter(isAlive), []);
  await Deno.remove(/^\$ cd (.*)\/hello$/m.exec(text)![1]!, { recursive: true });
});

/** What a person does with the page, while the three jobs of the run are in its list. */
async function usePage(url: string): Promise<void> {
  await using browser = await HeadlessBrowser.start();
  await using opened = await browser.open(url);
  const { page, problems } = opened;
  const states = page.locator("#jobs .state");
  const shows = async (first: RegExp, jobs: number): Promise<void> => {
    let all: string[] = [];
    await until(async () => {
      all = await states.allTextContents();
      return all.length === jobs && first.test(all[0]!);
    }, () => all.join());
  };

  await shows(/^148,933 primes$/, 3);
  assert.equal(await page.locator("#state").textContent(), "connected");
  assert.match((await page.locator("#report").textContent())!, /0 running, 3 finished$/);

  await page.getByRole("spinbutton", { name: "below" }).fill("1000000");
  await page.getByRole("button", { name: "Add a job" }).click();
  await shows(/^\d+ %$/, 4);
  await shows(/^78,498 primes$/, 4);
  await until(async () => /4 finished$/.test((await page.locator("#report").textContent())!));
  assert.deepEqual(problems, []);

  await page.locator("form").evaluate((form) => form.setAttribute("novalidate", ""));
  await page.getByRole("spinbutton", { name: "below" }).fill("1");
  await page.getByRole("button", { name: "Add a job" }).click();
  const problem = page.getByText("below: expected a whole number from 2 to 10000000");
  await problem.waitFor();
}

for (
  const [args, message] of [
    [["--template", "job"], /--template: expected quickstart or jobs, received "job"/],
    [["--stream-port", "x"], /--stream-port: expected 1 to 65535, received "x"/],
  ] as const
) {
  Deno.test(`the quickstart with ${args.join(" ")} is not understood`, async () => {
    const { code, stderr } = await quickstart(...args).output();

    assert.equal(code, 2);
    assert.match(new TextDecoder().decode(stderr), message);
  });
}
