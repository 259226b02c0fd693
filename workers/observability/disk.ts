/**
 * Traces and logs on disk, restored at the next start: `<data>/telemetry/*.jsonl`.
 *
 * Each line is one span or log record as JSON, redacted as in memory. Off by default (`disk_mb:
 * 0`). Writes are delayed and batched, and pending lines are bounded: a slow or failing disk costs
 * telemetry, never calls.
 *
 * @module
 */
import type { Clock } from "../../engine/ports/clock.ts";
import type { Log } from "../../engine/ports/log.ts";
import type { Json } from "../../sdk/typescript/wire/protocol.ts";
import type { EngineHost } from "../kit/define.ts";
import * as v from "../kit/schema.ts";
import type { ObservabilityConfig } from "./config.ts";
import { TELEMETRY_WARNING_MS } from "./intake.ts";
import { type LogRecord, type NewLog, SEVERITIES } from "./logs/record.ts";
import type { LogStore } from "./logs/store.ts";
import type { RetainedRings } from "./retained.ts";
import type { StoredSpan } from "./traces/span.ts";
import type { SpanStore } from "./traces/store.ts";
import type { WorkerLog } from "./triggers.ts";

/** Largest file of spans or logs on disk, in bytes. */
const DISK_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Delay from a span or log record to its write, in milliseconds. */
const DISK_FLUSH_MS = 500;
/** Characters that may wait for a write; further records are dropped. */
const DISK_PENDING_CHARS_MAX = 16 * 1024 * 1024;

const MIB = 1024 * 1024;
/** Bytes read at start per byte of memory, so that the restored records fill the rings. */
const READ_FACTOR = 2;

/** What is written, and the rings that are restored. */
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
 * Restores the telemetry of the previous run once per engine, then writes what is recorded.
 *
 * A disk that cannot be used is logged; telemetry then stays in memory only.
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

/** Skips lines that cannot be parsed. */
async function readBack(
  files: LineFiles,
  bytes: number,
  restore: (line: unknown) => void,
): Promise<void> {
  for await (const line of files.lines(bytes)) {
    try {
      restore(JSON.parse(line));
    } catch {
      continue; // Truncated by a crash, or written by another program.
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

/** Files that fit into `disk_mb`, at least. */
const FILES_MIN = 8;

interface NumberedFile {
  readonly number: number;
  bytes: number;
}

/**
 * Numbered files of lines, such as `logs-7.jsonl`: appends to the newest, removes the oldest beyond
 * a total size. A crash may truncate the last line.
 */
export class LineFiles {
  readonly #folder: string;
  readonly #name: string;
  readonly #bytesMax: number;
  readonly #fileBytesMax: number;
  /** The oldest first. */
  #files: NumberedFile[] = [];
  #open: Deno.FsFile | undefined;

  /** `name`: prefix of the file names; `bytesMax`: of all files together. */
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

  /** Lists existing files; creates the folder, private to the user. @throws {Error} I/O error. */
  async find(): Promise<void> {
    await Deno.mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const files: NumberedFile[] = [];
    const pattern = new RegExp(`^${this.#name}-(\\d{1,15})\\.jsonl$`);
    for await (const { name, isFile } of Deno.readDir(this.#folder)) {
      const number = isFile ? pattern.exec(name)?.[1] : undefined;
      if (number === undefined) continue;
      const { size } = await Deno.stat(`${this.#folder}/${name}`);
      files.push({ number: Number(number), bytes: size });
    }
    this.#files = files.sort((a, b) => a.number - b.number);
  }

  /** The lines of the newest files, oldest first: up to about `bytes`, and at least one file. */
  async *lines(bytes: number): AsyncIterable<string> {
    const wanted: NumberedFile[] = [];
    let left = bytes;
    for (const file of this.#files.toReversed()) {
      if (wanted.length > 0 && left <= 0) break;
      // A larger file is not ours, and would have to fit into memory.
      if (file.bytes <= 2 * DISK_FILE_BYTES_MAX) wanted.unshift(file);
      left -= file.bytes;
    }
    for (const { number } of wanted) {
      const text = await Deno.readTextFile(this.#path(number));
      for (const line of text.split("\n")) if (line !== "") yield line;
    }
  }

  /** Appends lines, each with its line feed. @throws {Error} I/O error. */
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

  /** Removes all files. @throws {Error} I/O error. */
  async clear(): Promise<void> {
    this.close();
    for (let file = this.#files[0]; file; file = this.#files[0]) await this.#remove(file);
  }

  /** Closes the open file; the next append opens a new one. */
  close(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  async #begin(number: number): Promise<NumberedFile> {
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
  async #remove({ number }: NumberedFile): Promise<void> {
    await Deno.remove(this.#path(number)).catch((thrown: unknown) => {
      if (!(thrown instanceof Deno.errors.NotFound)) throw thrown; // Removed by another process.
    });
    this.#files.shift();
  }

  #path(number: number): string {
    return `${this.#folder}/${this.#name}-${number}.jsonl`;
  }
}

/** Dependencies of {@linkcode DiskWriter}. */
export interface DiskWriterSetup {
  readonly clock: Clock;
  readonly log: Log;
  readonly files: Pick<LineFiles, "append" | "clear" | "close">;
  /** `traces` or `logs`, for the engine's log. */
  readonly name: string;
}

/** Writes lines in the background, in order. Drops lines and warns when the disk is too slow. */
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

  constructor(setup: DiskWriterSetup) {
    this.#setup = setup;
  }

  /** Schedules a line, given without its line feed. */
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

  /** Discards pending lines and removes the files. Lines added later are written. */
  clear(): void {
    this.#pending = [];
    this.#chars = 0;
    this.#isClearing = true;
    this.#schedule();
  }

  /** Writes pending lines after a write in progress; never rejects. */
  async flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    const write = (this.#writing ?? Promise.resolve()).then(() => this.#write());
    this.#writing = write;
    await write;
    if (this.#writing === write) this.#writing = undefined;
  }

  /** Writes pending lines and ignores later ones. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    this.#setup.files.close();
  }

  #schedule(): void {
    this.#cancel ??= this.#setup.clock.after(DISK_FLUSH_MS, () => {
      this.#cancel = undefined;
      if (this.#writing) this.#schedule(); // Sequential, so that lines stay in order.
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
      this.#setup.files.close(); // Retry with a new file.
    }
  }

  #warn(text: string, fields: Record<string, string | number>): void {
    const { clock, log, name } = this.#setup;
    if (clock.now() - this.#warnedAt < TELEMETRY_WARNING_MS) return;
    this.#warnedAt = clock.now();
    log.warn(text, { kind: name, ...fields });
  }
}
