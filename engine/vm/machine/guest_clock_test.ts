import assert from "node:assert/strict";
import { vmHere } from "../../../tests/fakes/vm_project.ts";
import { type ClockReading, guestClock, measureGuestClock, measureRate } from "./guest_clock.ts";

/** A counter of 2 GHz; readings take the listed times, the last one repeated. */
function counter(offs: number[]) {
  let nowMs = 100;
  let readings = 0;
  const read = (): Promise<ClockReading> => {
    const offMs = offs.length > 1 ? offs.shift()! : offs[0]!;
    readings++;
    // The counter is read at a random moment of the interval.
    const ticks = BigInt(Math.round((nowMs + offMs * 0.9) * 2_000_000));
    return Promise.resolve({ ticks, atMs: nowMs, offMs });
  };
  const pause = (ms: number): Promise<void> => Promise.resolve(void (nowMs += ms));
  return { read, pause, elapsedMs: () => nowMs - 100, readings: () => readings };
}

Deno.test("measureRate() uses the fastest of several readings", async () => {
  const { elapsedMs, pause, read } = counter([
    5,
    9,
    0.01,
    7,
    8,
    9,
    5,
    6,
    9,
    9,
    0.01,
    7,
    8,
    9,
    5,
    6,
  ]);

  const rate = await measureRate(read, pause);

  assert.ok(Math.abs(rate - 2_000_000) < 200, `${rate}`);
  assert.equal(elapsedMs(), 400);
});

Deno.test("measureRate() waits longer if readings are slow, up to a limit", async () => {
  const slow = counter([1]);
  await measureRate(slow.read, slow.pause);
  assert.equal(slow.elapsedMs(), 3_200);

  const quick = counter([0.2]);
  await measureRate(quick.read, quick.pause);
  assert.equal(quick.elapsedMs(), 800);
});

Deno.test("guestClock() measures once for each boot of the host", async () => {
  const folder = await Deno.makeTempDir();
  const boot = (await Deno.readTextFile("/proc/sys/kernel/random/boot_id")).trim();
  await Deno.writeTextFile(`${folder}/clock-${boot}`, "1234567");
  await Deno.writeTextFile(`${folder}/clock-another`, "7654321");

  assert.equal(await guestClock("/no/such/qemu", folder), 1_234_567);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("guestClock() is undefined without QEMU, or with one that prints nothing", async () => {
  const folder = await Deno.makeTempDir();

  assert.equal(await guestClock("/no/such/qemu", folder), undefined);
  assert.equal(await guestClock("/bin/true", folder), undefined);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(folder)), []);
  await Deno.remove(folder, { recursive: true });
});

Deno.test({
  name: "measureGuestClock() is consistent",
  ignore: typeof vmHere === "string",
  async fn() {
    assert.ok(typeof vmHere !== "string");
    const directory = await Deno.makeTempDir();
    const probe = { qemu: vmHere.qemu, directory };

    const first = (await measureGuestClock(probe))!;
    const second = (await measureGuestClock(probe))!;

    assert.ok(first > 100_000 && first < 10_000_000, `${first}`);
    // A busy machine answers late; the kernel tolerates an error of several per cent.
    assert.ok(Math.abs(first / second - 1) < 0.02, `${first} and ${second}`);
    assert.deepEqual(await Array.fromAsync(Deno.readDir(directory)), []);
    await Deno.remove(directory);
  },
});
