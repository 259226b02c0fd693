/**
 * Traces and logs on disk, so that they outlive the engine: `<data>/telemetry/*.jsonl`.
 *
 * One JSON object per line, without secrets, as spans and records lie in the rings. Off unless the
 * configuration gives it room.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import {
  DISK_FILE_BYTES_MAX,
  DISK_FLUSH_MS,
  DISK_PENDING_CHARS_MAX,
  TELEMETRY_WARNING_MS,
} from "../limits.ts";
import type { ObservabilityConfig } from "./config.ts";
import type { WorkerLog } from "./trigger_dispatcher.ts";
import { type LogRecord, type NewLog, SEVERITIES } from "./logs/record.ts";
import type { LogStore } from "./logs/store.ts";
import type { RetainedRings } from "./retained.ts";
import type { SpanStore } from "./traces/store.ts";
import type { StoredSpan } from "./traces/span.ts";

const MIB = 1024 * 1024;
/** A line on disk is about as long as what it needs in memory. */
const READ_FACTOR = 2;

/** What goes to disk, and where it comes back to. */
export interface DiskParts {
  readonly rings: RetainedRings;
  readonly spans: SpanStore;
  readonly logs: LogStore;
  readonly log: WorkerLog;
}

const Value = v.pipe(v.unknown(), v.transform((value) => value as Json));
const Id = v.nullable(v.string());

const SpanLine = v.object({
  trace_id: v.string(),
  span_id: v.string(),
  parent_span_id: Id,
  name: v.string(),
  service_name: v.string(),
  start_ms: v.number(),
  end_ms: v.nullable(v.number()),
  status: v.picklist(["ok", "error", "unset"]),
  status_description: v.nullable(v.string()),
  attributes: v.array(v.tuple([v.string(), Value])),
  events: v.array(Value),
  links: v.array(Value),
  scope_name: v.nullable(v.string()),
  scope_version: v.nullable(v.string()),
});

const LogLine = v.object({
  at_ms: v.number(),
  observed_ms: v.number(),
  severity: v.picklist(SEVERITIES),
  body: v.string(),
  attributes: v.record(Value),
  trace_id: Id,
  span_id: Id,
  service_name: v.string(),
  worker: v.nullable(v.string()),
  replica: v.nullable(v.number()),
  source: v.picklist(["logger", "output", "engine", "function"]),
  function_id: v.nullable(v.string()),
  scope_name: v.nullable(v.string()),
});

/**
 * Reads what an engine before this one left, and writes from now on what the configuration has room
 * for. A disk that fails costs the telemetry, not the engine: the log says so.
 */
export async function startDisk(
  parts: DiskParts,
  config: ObservabilityConfig,
  host: EngineHost,
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  const { rings, spans, logs } = parts;
  const isFirst = !rings.isRestored;
  rings.isRestored = true;
  const begin = async (
    name: string,
    megabytes: number,
    memoryBytes: number,
    restore: (line: unknown) => void,
  ): Promise<DiskWriter | undefined> => {
    if (megabytes === 0) return undefined;
    const folder = `${host.supervision.info().data_directory}/telemetry`;
    const files = new LineFiles(folder, name, megabytes * MIB);
    try {
      await files.find();
      if (isFirst) await readBack(files, memoryBytes * READ_FACTOR, restore);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      parts.log.tagged.warn("telemetry on disk cannot be used", { kind: name, reason });
      return undefined;
    }
    return started.use(new DiskWriter({ clock: host.clock, log: parts.log.tagged, files, name }));
  };
  const { traces, logs: logConfig } = config;
  const spanLines = await begin("traces", traces.disk_mb, traces.memory_mb * MIB / 4, (line) => {
    rings.spans.add(v.parse(SpanLine, line));
  });
  const logLines = await begin("logs", logConfig.disk_mb, logConfig.memory_mb * MIB, (line) => {
    rings.logs.add(v.parse(LogLine, line));
  });
  if (spanLines) {
    started.defer(spans.listen((ended) => writeSpans(spanLines, ended), true));
    started.defer(spans.onClear(() => spanLines.clear()));
    started.defer(() => spans.flush());
  }
  if (logLines) {
    started.defer(logs.listen((record) => writeLog(logLines, record)));
    started.defer(logs.onClear(() => logLines.clear()));
  }
  return started;
}

/** Lines that were cut or changed are left out. */
async function readBack(
  files: LineFiles,
  bytes: number,
  restore: (line: unknown) => void,
): Promise<void> {
  for await (const line of files.lines(bytes)) {
    try {
      restore(JSON.parse(line));
    } catch {
      continue; // Cut off by a crash, or not ours.
    }
  }
}

function writeSpans(lines: DiskWriter, spans: readonly StoredSpan[]): void {
  for (const span of spans) lines.add(JSON.stringify(span));
}

function writeLog(lines: DiskWriter, { seq: _seq, ...log }: LogRecord): void {
  const line: NewLog = log;
  lines.add(JSON.stringify(line));
}

/** A bound has room for so many files at least. */
const FILES_MIN = 8;

/** One file. */
interface Numbered {
  readonly number: number;
  bytes: number;
}

/** The files of one kind, such as `logs-7.jsonl`. */
export class LineFiles {
  readonly #folder: string;
  readonly #name: string;
  readonly #bytesMax: number;
  readonly #fileBytesMax: number;
  /** The oldest first. */
  #files: Numbered[] = [];
  #open: Deno.FsFile | undefined;

  /** `name`: beginning of the files' names; `bytesMax`: of all together. */
  constructor(folder: string, name: string, bytesMax: number) {
    this.#folder = folder;
    this.#name = name;
    this.#bytesMax = bytesMax;
    this.#fileBytesMax = Math.min(DISK_FILE_BYTES_MAX, Math.ceil(bytesMax / FILES_MIN));
  }

  /** Bytes of all files. */
  get bytes(): number {
    return this.#files.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Finds what is there; makes the folder, for this user alone. @throws {Error} The disk's. */
  async find(): Promise<void> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const files: Numbered[] = [];
    const pattern = new RegExp(`^${this.#name}-(\\d{1,15})\\.jsonl$`);
    for await (const { name, isFile } of Deno.readDir(this.#folder)) {
      const number = isFile ? pattern.exec(name)?.[1] : undefined;
      if (number === undefined) continue;
      const { size } = await Deno.stat(`${this.#folder}/${name}`);
      files.push({ number: Number(number), bytes: size });
    }
    this.#files = files.sort((a, b) => a.number - b.number);
  }

  /** The newest lines, oldest first, of so many bytes of files, and at least of one file. */
  async *lines(bytes: number): AsyncIterable<string> {
    const wanted: Numbered[] = [];
    let left = bytes;
    for (const file of this.#files.toReversed()) {
      if (wanted.length > 0 && left <= 0) break;
      // Nobody of ours writes a file that large, and it would have to fit into memory.
      if (file.bytes <= 2 * DISK_FILE_BYTES_MAX) wanted.unshift(file);
      left -= file.bytes;
    }
    for (const { number } of wanted) {
      const text = await Deno.readTextFile(this.#path(number));
      for (const line of text.split("\n")) if (line !== "") yield line;
    }
  }

  /** Appends lines; each has its line feed. @throws {Error} The disk's. */
  async append(text: string): Promise<void> {
    const bytes = new TextEncoder().encode(text);
    let file = this.#files.at(-1);
    if (!file || !this.#open || file.bytes + bytes.length > this.#fileBytesMax) {
      file = await this.#begin((file?.number ?? 0) + 1);
    }
    for (let at = 0; at < bytes.length;) at += await this.#open!.write(bytes.subarray(at));
    file.bytes += bytes.length;
    await this.#makeRoom();
  }

  /** Removes all files. @throws {Error} The disk's. */
  async clear(): Promise<void> {
    this.close();
    for (let file = this.#files[0]; file; file = this.#files[0]) await this.#remove(file);
  }

  /** Closes the file that is open; a later line opens a new one. */
  close(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  async #begin(number: number): Promise<Numbered> {
    this.close();
    this.#open = await Deno.open(this.#path(number), {
      write: true,
      append: true,
      create: true,
      mode: 0o600,
    });
    const file = { number, bytes: 0 };
    this.#files.push(file);
    return file;
  }

  async #makeRoom(): Promise<void> {
    while (this.#files.length > 1 && this.bytes > this.#bytesMax) {
      await this.#remove(this.#files[0]!);
    }
  }

  /** Removes the oldest file. */
  async #remove({ number }: Numbered): Promise<void> {
    await Deno.remove(this.#path(number)).catch((thrown: unknown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown; // Somebody else was quicker.
    });
    this.#files.shift();
  }

  #path(number: number): string {
    return `${this.#folder}/${this.#name}-${number}.jsonl`;
  }
}

/** What writing needs. */
export interface DiskWriterSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly files: Pick<LineFiles, "append" | "clear" | "close">;
  /** What is written, for the log: `traces` or `logs`. */
  readonly name: string;
}

/** See the top of this file. */
export class DiskWriter implements AsyncDisposable {
  readonly #setup: DiskWriterSetup;
  #pending: string[] = [];
  #chars = 0;
  #dropped = 0;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #warnedAt = -Infinity;
  #isClosed = false;
  #isClearing = false;

  /** Stores. */
  constructor(setup: DiskWriterSetup) {
    this.#setup = setup;
  }

  /** A line to write, without its line feed. */
  add(line: string): void {
    if (this.#isClosed) return;
    if (this.#chars + line.length > DISK_PENDING_CHARS_MAX) {
      this.#dropped++;
      return;
    }
    this.#pending.push(line);
    this.#chars += line.length;
    this.#schedule();
  }

  /** Forgets what waits and what was written; what is added from now on is kept. */
  clear(): void {
    this.#pending = [];
    this.#chars = 0;
    this.#isClearing = true;
    this.#schedule();
  }

  /** Writes what waits; never rejects. */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    const turn = (this.#writing ?? Promise.resolve()).then(() => this.#write());
    this.#writing = turn;
    await turn;
    if (this.#writing === turn) this.#writing = undefined;
  }

  /** Writes what waits and takes no more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    this.#setup.files.close();
  }

  #schedule(): void {
    this.#cancel ??= this.#setup.clock.after(DISK_FLUSH_MS, () => {
      this.#cancel = undefined;
      if (this.#writing) this.#schedule(); // One at a time, or lines could change places.
      else void this.flush();
    });
  }

  async #write(): Promise<void> {
    const lines = this.#pending;
    const isClearing = this.#isClearing;
    this.#isClearing = false;
    const dropped = this.#dropped;
    this.#pending = [];
    this.#chars = 0;
    this.#dropped = 0;
    if (dropped > 0) this.#warn("the disk is too slow for all telemetry", { dropped });
    try {
      if (isClearing) await this.#setup.files.clear();
      if (lines.length > 0) await this.#setup.files.append(`${lines.join("\n")}\n`);
    } catch (thrown) {
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      this.#warn("telemetry cannot be written", { dropped: lines.length, reason });
      this.#setup.files.close(); // A new file may do.
    }
  }

  #warn(text: string, fields: Record<string, string | number>): void {
    const { clock, log, name } = this.#setup;
    if (clock.now() - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = clock.now();
    log.warn(text, { kind: name, ...fields });
  }
}
