/**
 * The launchers' contract on real microVMs, in software emulation: a boot serves many claims.
 *
 * @module
 */
import { systemClock } from "../../engine/platform/system_clock.ts";
import { MicroVmLauncher } from "../../engine/vm/microvm_launcher.ts";
import { type LauncherUnderTest, testLauncher } from "../contracts/launcher_contract.ts";
import { vmHere } from "../fakes/vm_project.ts";

async function open(): Promise<LauncherUnderTest> {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const directory = `${root}/workers/it's, a "worker"`;
  await Deno.mkdir(directory, { recursive: true });
  const quiet = (): void => {};
  const launcher = new MicroVmLauncher({
    dataDirectory: `${root}/.engine`,
    clock: systemClock,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    engine: () => ({ hostname: "127.0.0.1", port: 49134 }),
    accelerators: { choose: () => Promise.resolve({ accelerator: "tcg", warning: null }) },
  });
  const isProgram = async (pid: number, name: string): Promise<boolean> => {
    const command = `cat /proc/${pid}/stat`;
    let stat = "";
    const spec = { name: "worker", command, directory, env: {}, keep: true };
    const looking = await launcher.start(spec, ({ text }) => void (stat += text));
    await looking.ended;
    return stat.includes(`(${name})`) && !/\) [ZX] /.test(stat);
  };
  const close = async (): Promise<void> => {
    await launcher.close();
    await Deno.remove(root, { recursive: true });
  };
  return { launcher, directory, keep: true, isProgram, [Symbol.asyncDispose]: close };
}

testLauncher("MicroVmLauncher", open, {
  together: true,
  skipped: typeof vmHere === "string" ? vmHere : undefined,
});
