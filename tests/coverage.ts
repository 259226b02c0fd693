/**
 * Fails when less than 90 % of the lines of the engine or of the SDK were run by the tests.
 *
 * Lines that only run in processes of their own (the end-to-end tests start many) are not seen,
 * so the true figure is higher.
 *
 * @module
 */
const LINES_MIN = 0.9;
const GROUPS: Readonly<Record<string, RegExp>> = {
  engine: /\/engine\/[^/]+(?:\/[^/]+)?\.ts$/,
  sdk: /\/sdk\/typescript\/[^/]+\.ts$/,
};

const root = new URL("../", import.meta.url).pathname;
const { stdout } = await new Deno.Command(Deno.execPath(), {
  args: ["coverage", "--lcov", "--exclude=_test\\.ts|/tests/", Deno.args[0]!],
  stderr: "inherit",
  stdout: "piped",
}).output();

const files = new TextDecoder().decode(stdout).split("end_of_record").flatMap((record) => {
  const path = /^SF:(.*)$/m.exec(record)?.[1];
  const found = Number(/^LF:(\d+)/m.exec(record)?.[1] ?? 0);
  const hit = Number(/^LH:(\d+)/m.exec(record)?.[1] ?? 0);
  return path?.startsWith(root) ? [{ path: path.slice(root.length - 1), found, hit }] : [];
});

let ok = true;
for (const [name, pattern] of Object.entries(GROUPS)) {
  const group = files.filter(({ path }) => pattern.test(path));
  const found = group.reduce((sum, file) => sum + file.found, 0);
  const hit = group.reduce((sum, file) => sum + file.hit, 0);
  console.log(`${name}: ${(100 * hit / found).toFixed(1)} % of ${found} lines`);
  const least = group.sort((a, b) => a.hit / a.found - b.hit / b.found).slice(0, 5);
  for (const file of least) {
    console.log(`  ${(100 * file.hit / file.found).toFixed(1)} %  ${file.path.slice(1)}`);
  }
  if (!(hit / found >= LINES_MIN)) ok = false;
}
Deno.exit(ok ? 0 : 1);
