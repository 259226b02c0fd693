import { testStore } from "../contracts/store_contract.ts";
import type { SetUpLog } from "../contracts/state_log_contract.ts";
import { jetStreamLogs, postgresLogs } from "./logs.ts";
import { keepState } from "./replicated_stores.ts";
import { withoutNats, withoutPostgres } from "./servers.ts";

test("ReplicatedStore on JetStream with 1 copy", withoutNats, () => jetStreamLogs(1));
test("ReplicatedStore on JetStream with 3 copies", withoutNats, () => jetStreamLogs(3));
test("ReplicatedStore on Postgres", withoutPostgres, postgresLogs);

/** The contract of every store, on real servers. */
function test(name: string, isLeftOut: boolean, logs: () => SetUpLog): void {
  if (isLeftOut) return;
  const setUp = logs();
  testStore(name, async () => {
    const setup = await setUp();
    const store = await keepState(await setup.open());
    const close = async (): Promise<void> => {
      await store[Symbol.asyncDispose]();
      await setup[Symbol.asyncDispose]();
    };
    let closing: Promise<void> | undefined;
    return { ...store, [Symbol.asyncDispose]: () => closing ??= close() };
  });
}
