/**
 * Forms: `application/x-www-form-urlencoded` and `multipart/form-data`, from bytes to a value.
 *
 * The multipart reader reads each byte once: a boundary begins with the only CR that it has, so a
 * comparison that fails never has to be repeated. Parsers that skip ahead by the end of a boundary
 * take a time of body times boundary for bytes that resemble one. What is unclear is refused
 * instead of guessed: two programs that read one form differently are how checks are passed by.
 *
 * @module
 */
import { EngineError } from "../../sdk/typescript/wire/errors.ts";
import type { Json, JsonObject } from "../../sdk/typescript/wire/protocol.ts";

/** Most fields of a form, files included. */
export const FORM_FIELDS_MAX = 1_000;
/** Most files of a form. */
export const FORM_FILES_MAX = 100;
/** Longest name of a field, and longest name of a file. */
export const FIELD_NAME_CHARS_MAX = 1_024;
/** Longest head of a part. */
export const PART_HEAD_BYTES_MAX = 4 * 1024;
/** Most headers of a part. */
const PART_HEADERS_MAX = 16;

const CR = 13;
const LF = 10;
const DASH = 45;
const SPACE = 32;
const TAB = 9;
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const ENCODER = new TextEncoder();
/** RFC 2046: at most 70 of these characters, the last one no space. */
const BOUNDARY = /;[ \t]*boundary=(?:"([^"]*)"|([^\s;"]*))[ \t]*(?:;|$)/i;
const BOUNDARY_CHARS = /^[0-9A-Za-z'()+_,\-./:=? ]{0,69}[0-9A-Za-z'()+_,\-./:=?]$/;
const PARAMETER = /;[ \t]*([a-z0-9*_-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))[ \t]*/iy;
const DISPOSITION = /^form-data[ \t]*(?=;|$)/i;
const PLAIN_CODING = /^(7bit|8bit|binary)$/i;
const ESCAPED = /%22|%0d|%0a/gi;
/** How browsers and curl write quotes and line ends in names. */
const UNESCAPED: Readonly<Record<string, string>> = { "%22": '"', "%0D": "\r", "%0A": "\n" };
// deno-lint-ignore no-control-regex -- these have no place in the name of a file
const CONTROLS = /[\0-\x1f\x7f]/g;

/** A file as it stands in a form. */
type FileValue = { filename: string; content_type: string; data_base64: string };

/** One part: its name and its value. */
interface Field {
  readonly name: string;
  readonly value: string | FileValue;
}

/**
 * The fields of an urlencoded form; one that repeats is an array.
 *
 * @throws {EngineError} `invalid_body`
 */
export function readUrlencoded(bytes: Uint8Array): JsonObject {
  const text = decodeUtf8(bytes, "the form");
  const form = new Form();
  for (let at = 0, count = 0; at >= 0 && at < text.length; count++) {
    if (count >= FORM_FIELDS_MAX) throw tooManyFields();
    const end = text.indexOf("&", at);
    at = end < 0 ? -1 : end + 1;
  }
  // URLSearchParams would drop a leading question mark, which is part of the first name.
  for (const [name, value] of new URLSearchParams(text[0] === "?" ? `?${text}` : text)) {
    form.add({ name, value });
  }
  return form.value();
}

/**
 * The fields of a multipart form; one that repeats is an array, a file is an object.
 *
 * @throws {EngineError} `invalid_body`
 */
export function readMultipart(bytes: Uint8Array, contentType: string): JsonObject {
  const boundary = boundaryIn(contentType);
  const delimiter = ENCODER.encode(`\r\n--${boundary}`);
  const opening = delimiter.subarray(2);
  const form = new Form();
  let at = beginsWith(bytes, opening, 0)
    ? opening.length
    : beginsWith(bytes, delimiter, 0)
    ? delimiter.length
    : -1;
  if (at < 0) throw invalid(`it does not begin with its boundary, --${boundary}`);
  while (!isClosed(bytes, at)) {
    const start = lineEnd(bytes, at);
    const headEnd = findHeadEnd(bytes, start);
    // The empty line behind a head may also be the one in front of the boundary.
    const end = find(bytes, delimiter, headEnd - 2);
    if (end < 0) throw invalid(`it ends without its closing boundary, --${boundary}--`);
    const content = bytes.subarray(headEnd, Math.max(headEnd, end));
    form.add(readPart(bytes.subarray(start, headEnd), content));
    at = end + delimiter.length;
  }
  return form.value();
}

/** The last part of a path: a client may send one, and it must not become a path of ours. */
export function baseName(path: string): string {
  const name = path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1)
    .replace(CONTROLS, "").trim();
  return name === "." || name === ".." ? "" : name;
}

/** Collects fields; names are data, so `__proto__` is one like any other. */
class Form {
  readonly #fields = new Map<string, Json>();
  #count = 0;
  #files = 0;

  add({ name, value }: Field): void {
    if (++this.#count > FORM_FIELDS_MAX) throw tooManyFields();
    if (typeof value !== "string" && ++this.#files > FORM_FILES_MAX) {
      throw invalid(`a form may have at most ${FORM_FILES_MAX} files`);
    }
    checkName(name);
    const before = this.#fields.get(name);
    if (before === undefined) this.#fields.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else this.#fields.set(name, [before, value]);
  }

  value(): JsonObject {
    return Object.fromEntries(this.#fields); // Defines members, which assigning would not.
  }
}

function boundaryIn(contentType: string): string {
  const [, quoted, plain] = BOUNDARY.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  if (boundary !== undefined && BOUNDARY_CHARS.test(boundary)) return boundary;
  throw invalid("its content-type has no boundary of 1 to 70 permitted characters");
}

/** Whether the last boundary ends at `at`; nothing but blanks may follow. */
function isClosed(bytes: Uint8Array, at: number): boolean {
  if (bytes[at] !== DASH || bytes[at + 1] !== DASH) return false;
  for (let i = at + 2; i < bytes.length; i++) {
    if (!isBlank(bytes[i]!)) throw invalid("something follows its closing boundary");
  }
  return true;
}

/** Where the line of a boundary ends, which may have blanks behind it. */
function lineEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at++;
  if (bytes[at] === CR && bytes[at + 1] === LF) return at + 2;
  throw invalid("the line of a boundary does not end with it");
}

/** Where the content of a part begins. */
function findHeadEnd(bytes: Uint8Array, start: number): number {
  const last = Math.min(bytes.length, start + PART_HEAD_BYTES_MAX) - 4;
  for (let at = start; at <= last; at++) {
    if (bytes[at] !== CR || bytes[at + 1] !== LF) continue;
    if (bytes[at + 2] === CR && bytes[at + 3] === LF) return at + 4;
  }
  throw invalid(`the head of a part is incomplete or has more than ${PART_HEAD_BYTES_MAX} bytes`);
}

/** `pattern` begins with its only CR, so that bytes which match in part are not compared again. */
function find(bytes: Uint8Array, pattern: Uint8Array, from: number): number {
  const last = bytes.length - pattern.length;
  for (let at = from; at <= last; at++) {
    if (bytes[at] === CR && beginsWith(bytes, pattern, at)) return at;
  }
  return -1;
}

function beginsWith(bytes: Uint8Array, pattern: Uint8Array, at: number): boolean {
  for (let i = 0; i < pattern.length; i++) if (bytes[at + i] !== pattern[i]) return false;
  return true;
}

function readPart(head: Uint8Array, content: Uint8Array): Field {
  const headers = readHeaders(decodeUtf8(head, "the head of a part"));
  const { name, filename } = readDisposition(headers.get("content-disposition"));
  const coding = headers.get("content-transfer-encoding");
  if (coding !== undefined && !PLAIN_CODING.test(coding)) {
    throw invalid(`the field ${show(name)} has a content-transfer-encoding; send it as it is`);
  }
  if (filename === undefined) {
    return { name, value: decodeUtf8(content, `the field ${show(name)}`) };
  }
  const content_type = headers.get("content-type") ?? "application/octet-stream";
  const data_base64 = content.toBase64();
  return { name, value: { filename: baseName(filename), content_type, data_base64 } };
}

function readHeaders(head: string): Map<string, string> {
  const headers = new Map<string, string>();
  const lines = head.slice(0, -4).split("\r\n");
  if (lines.length > PART_HEADERS_MAX) {
    throw invalid(`a part may have at most ${PART_HEADERS_MAX} headers`);
  }
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon < 1) throw invalid("a header of a part has no name");
    const name = line.slice(0, colon).trim().toLowerCase();
    if (headers.has(name)) throw invalid("a header of a part is given twice");
    headers.set(name, line.slice(colon + 1).trim());
  }
  return headers;
}

/** Name of a part and of its file. */
function readDisposition(
  disposition: string | undefined,
): { readonly name: string; readonly filename: string | undefined } {
  const kind = DISPOSITION.exec(disposition ?? "");
  if (!kind) throw invalid("a part has no content-disposition form-data");
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = kind[0].length;
  for (let end = PARAMETER.lastIndex; end < disposition!.length; end = PARAMETER.lastIndex) {
    const found = PARAMETER.exec(disposition!);
    const name = found?.[1]?.toLowerCase();
    if (!found || name === undefined || parameters.has(name)) {
      throw invalid("the content-disposition of a part is not well formed");
    }
    const text = found[2]?.replace(/\\(["\\])/g, "$1") ?? found[3] ?? "";
    parameters.set(name, text.replace(ESCAPED, (code) => UNESCAPED[code.toUpperCase()]!));
  }
  const name = parameters.get("name");
  if (name === undefined) throw invalid("a part has no name");
  checkName(name);
  const filename = parameters.get("filename") ?? extendedName(parameters.get("filename*"));
  if (filename !== undefined) checkName(filename);
  return { name, filename };
}

/** RFC 8187, which forms are not to use and some clients do. */
function extendedName(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const [, coded] = /^utf-8'[^']*'(.*)$/i.exec(value) ?? [];
  try {
    if (coded !== undefined) return decodeURIComponent(coded);
  } catch {
    // Refused below.
  }
  throw invalid("the filename* of a part is not UTF-8");
}

function checkName(name: string): void {
  if (name.length <= FIELD_NAME_CHARS_MAX) return;
  throw invalid(`the name of a field or file has more than ${FIELD_NAME_CHARS_MAX} characters`);
}

function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid(`${what} is not UTF-8; send it as a file`);
  }
}

function isBlank(byte: number): boolean {
  return byte === CR || byte === LF || byte === SPACE || byte === TAB;
}

function tooManyFields(): EngineError {
  return invalid(`a form may have at most ${FORM_FIELDS_MAX} fields`);
}

function invalid(reason: string): EngineError {
  return new EngineError("invalid_body", `Request body is not a valid form: ${reason}`);
}

function show(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
