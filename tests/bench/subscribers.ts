/**
 * Subscribers of a topic at negligible cost: raw connections that answer every delivery, in a
 * process of its own, and a publisher with so many publishes in flight.
 *
 * The argument is a {@linkcode SubscribersOrder}. It says `ready` when all are subscribed, begins
 * with the next line of its input, and answers with a line of JSON. Frames of the
 * engine are taken apart by their lengths, never parsed; its own have a mask of zeros.
 *
 * @module
 */

/** What to measure. */
export interface SubscribersOrder {
  readonly port: number;
  readonly connections: number;
  /** Subscribed functions of each connection. */
  readonly functions: number;
  /** Publishes in flight. */
  readonly window: number;
  /** Size of the message's text. */
  readonly bytes: number;
  readonly seconds: number;
}

/** What was found. */
export interface SubscribersAnswer {
  readonly published: number;
  readonly delivered: number;
  /** From the first publish to the last delivery. */
  readonly seconds: number;
}

const TOPIC = "bench.topic";
const ID_AT = '{"type":"invokefunction","invocation_id":"'.length;
const ID_BYTES = 36;
const RESULT = '{"type":"invocationresult","invocation_id":"';
const READ_BYTES = 256 * 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A text message as a masked frame; the mask is zero, so the text stays as it is. */
function frameOf(text: string): Uint8Array {
  const body = encoder.encode(text);
  const { length } = body;
  const head = length < 126
    ? [0x81, 0x80 | length, 0, 0, 0, 0]
    : [0x81, 0x80 | 126, length >> 8, length & 255, 0, 0, 0, 0];
  const frame = new Uint8Array(head.length + length);
  frame.set(head);
  frame.set(body, head.length);
  return frame;
}

/** One connection; `hear` gets the bytes of each message, valid until it returns. */
class Line {
  readonly #connection: Deno.TcpConn;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #unsent: Uint8Array[] = [];

  private constructor(connection: Deno.TcpConn) {
    this.#connection = connection;
    this.#writer = connection.writable.getWriter();
  }

  static async open(port: number, hear: (message: Uint8Array, line: Line) => void): Promise<Line> {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    connection.setNoDelay();
    const line = new Line(connection);
    const key = btoa("0123456789abcdef");
    await line.#writer.write(encoder.encode(
      `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    ));
    void line.#read(hear).catch(() => {}); // The end of the connection.
    return line;
  }

  /** Sends with what is sent in the same tick. */
  send(text: string): void {
    if (this.#unsent.push(frameOf(text)) > 1) return;
    queueMicrotask(() => {
      const bytes = this.#unsent.reduce((sum, { length }) => sum + length, 0);
      const joined = new Uint8Array(bytes);
      let at = 0;
      for (const frame of this.#unsent) {
        joined.set(frame, at);
        at += frame.length;
      }
      this.#unsent = [];
      this.#writer.write(joined).catch(() => {});
    });
  }

  close(): void {
    this.#writer.close().catch(() => {});
  }

  async #read(hear: (message: Uint8Array, line: Line) => void): Promise<void> {
    let buffer = new Uint8Array(READ_BYTES);
    let end = 0;
    let isOpen = false;
    for (let read; (read = await this.#connection.read(buffer.subarray(end))) !== null;) {
      end += read;
      let at = 0;
      if (!isOpen) {
        const text = decoder.decode(buffer.subarray(0, end));
        const head = text.indexOf("\r\n\r\n");
        if (head < 0) continue;
        isOpen = true;
        at = head + 4;
      }
      for (;;) {
        const short = buffer[at + 1]!;
        const headBytes = short === 126 ? 4 : 2;
        if (end - at < headBytes) break;
        const length = short === 126 ? buffer[at + 2]! << 8 | buffer[at + 3]! : short;
        if (end - at < headBytes + length) break;
        hear(buffer.subarray(at + headBytes, at + headBytes + length), this);
        at += headBytes + length;
      }
      buffer.copyWithin(0, at, end);
      end -= at;
      if (end === buffer.length) throw new Error("a message is larger than the buffer");
    }
    buffer = new Uint8Array();
  }
}

async function measure(order: SubscribersOrder): Promise<SubscribersAnswer> {
  const { port, connections, functions, window, bytes } = order;
  let delivered = 0;
  const hear = (message: Uint8Array, line: Line): void => {
    if (message[10] !== 0x6e || message[12] !== 0x6f) return; // No call: `"type":"invo…`.
    if (message.length < ID_AT + ID_BYTES || message[13] !== 0x6b) return;
    delivered++;
    const id = decoder.decode(message.subarray(ID_AT, ID_AT + ID_BYTES));
    line.send(`${RESULT}${id}","function_id":"f"}`);
  };
  const lines: Line[] = [];
  for (let c = 0; c < connections; c++) {
    const line = await Line.open(port, hear);
    lines.push(line);
    for (let f = 0; f < functions; f++) {
      const id = `bench${c}::f${f}`;
      line.send(JSON.stringify({ type: "registerfunction", id }));
      line.send(JSON.stringify({
        type: "registertrigger",
        id: `${c}-${f}`,
        trigger_type: "subscribe",
        function_id: id,
        config: { topic: TOPIC },
      }));
    }
  }
  const data = { text: "x".repeat(bytes) };
  let [published, inFlight] = [0, 0];
  let next = (): void => {};
  const publisher = await Line.open(port, (message) => {
    if (!decoder.decode(message.subarray(0, 30)).includes("invocationresult")) return;
    inFlight--;
    next();
  });
  lines.push(publisher);
  const publish = (): void => {
    inFlight++;
    const invocation_id = `00000000-0000-4000-8000-${String(++published).padStart(12, "0")}`;
    const payload = { topic: TOPIC, data };
    publisher.send(JSON.stringify({
      type: "invokefunction",
      invocation_id,
      function_id: "publish",
      data: payload,
    }));
  };
  const total = connections * functions;
  // All subscriptions are there when one message reaches all.
  do {
    const before = delivered;
    publish();
    await new Promise((resolve) => setTimeout(resolve, 300));
    if (delivered - before >= total) break;
  } while (published < 100);
  console.log("ready");
  await Deno.stdin.read(new Uint8Array(64));
  [published, delivered] = [0, 0];
  const start = performance.now();
  const end = start + order.seconds * 1_000;
  next = () => {
    // What was published before is delivered to nearly all before more follows.
    while (
      performance.now() < end && inFlight < window &&
      published * total - delivered < window * total
    ) publish();
  };
  const timer = setInterval(next, 1);
  next();
  while (performance.now() < end || delivered < published * total) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (performance.now() > end + 10_000) break;
  }
  const seconds = (performance.now() - start) / 1_000;
  clearInterval(timer);
  for (const line of lines) line.close();
  return { published, delivered, seconds };
}

if (import.meta.main) {
  console.log(JSON.stringify(await measure(JSON.parse(Deno.args[0]!))));
  Deno.exit(0);
}
