import assert from "node:assert/strict";
import * as net from "node:net";
import { FakeClock } from "../../tests/fakes/fake_clock.ts";
import { type LogLine, recordingLog } from "../../tests/fakes/fake_http.ts";
import { FaultReports, isConnectionFault } from "./faults.ts";

Deno.test("isConnectionFault() knows what the platform throws for one connection", async () => {
  const refused = await new Promise<Error>((resolve) => {
    net.connect(1, "127.0.0.1").on("error", resolve);
  });
  const closed = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  closed.close();
  const badResource = await closed.accept().catch((thrown: unknown) => thrown);

  for (
    const fault of [
      refused,
      badResource,
      new Deno.errors.ConnectionReset("Connection reset by peer (os error 104)"),
      new Deno.errors.Http("connection closed before message completed"),
      new Error("Too many open files (os error 24)"),
      Object.assign(new Error("accept EMFILE"), { code: "EMFILE" }),
      Object.assign(new Error("write EPIPE"), { code: "EPIPE" }),
      new TypeError("error reading a body from connection"),
    ]
  ) assert.equal(isConnectionFault(fault), true, String(fault));
});

Deno.test("isConnectionFault() takes mistakes of ours for what they are", () => {
  for (
    const fault of [
      new TypeError("Cannot read properties of undefined (reading 'close')"),
      new RangeError("Maximum call stack size exceeded"),
      new ReferenceError("connection is not defined"),
      new Error("broken assumption"),
      new Deno.errors.NotFound("no such file"),
      "Too many open files",
      undefined,
      null,
    ]
  ) assert.equal(isConnectionFault(fault), false, String(fault));
});

Deno.test("FaultReports writes one line for many faults, with their number", () => {
  const lines: LogLine[] = [];
  const clock = new FakeClock();
  const reports = new FaultReports(recordingLog(lines), clock);

  for (let i = 0; i < 1_000; i++) reports.kept(new Error("Too many open files (os error 24)"));
  clock.tick(10_000);
  reports.kept(new Error("again"));

  assert.deepEqual(lines.map(({ fields }) => fields?.count), [1, 1_000]);
});
