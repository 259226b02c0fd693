/**
 * Many clients that a port finds at once: they connect before its first accept.
 *
 * @module
 */

/** Clients; fewer than the kernel keeps for a port. */
const CLIENTS = 100;

/**
 * Sockets of a port that have a descriptor; Linux only. The descriptors of the process would be
 * those of other test files as well.
 */
function descriptors(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = Deno.readTextFileSync("/proc/self/net/tcp").trim().split("\n").slice(1);
  return rows.filter((row) => {
    const columns = row.trim().split(/\s+/);
    return columns[1]!.endsWith(local) && columns[9] !== "0"; // The inode: none without a descriptor.
  }).length;
}

/** Opens a port with clients waiting; the most descriptors that it takes for them at a time. */
export async function descriptorsOfBurst(
  open: () => { readonly port: number; close(): Promise<void> },
): Promise<number> {
  const { listen } = Deno;
  const begin = Promise.withResolvers<void>();
  const accepted = Promise.withResolvers<void>();
  let most = 0;
  let count = 0;
  Deno.listen = ((options: Deno.TcpListenOptions) => {
    const listener = listen(options);
    const accept = listener.accept.bind(listener);
    listener.accept = async () => {
      await begin.promise;
      if (count === CLIENTS) accepted.resolve();
      const taken = await accept();
      count++;
      most = Math.max(most, descriptors(opened.port));
      return taken;
    };
    return listener;
  }) as typeof Deno.listen;
  let opened: ReturnType<typeof open>;
  try {
    opened = open();
  } finally {
    Deno.listen = listen;
  }
  const clients: Deno.TcpConn[] = [];
  for (let i = 0; i < CLIENTS; i++) clients.push(await Deno.connect({ port: opened.port }));
  const before = descriptors(opened.port);
  begin.resolve();
  await accepted.promise;
  for (const client of clients) client.close();
  await opened.close();
  return most - before;
}
