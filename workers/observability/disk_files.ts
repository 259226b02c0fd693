/**
 * Lines in numbered files of a folder: appended to the newest, the oldest removed when there are
 * too many bytes.
 *
 * A crash can cut the last line; whoever reads has to bear that.
 *
 * @module
 */
import { DISK_FILE_BYTES_MAX } from "../limits.ts";

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
