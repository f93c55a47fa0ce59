// A whole bot set on its way here: received into a file, continued where it broke off, believed when its digest is right, then read line by line.
//
//   <directory>/<sha256>.<n>.part    what has arrived (n: for several hosts with the same set); it outlives this process, and goes when it was read or nobody asked for it for a day
// Memory holds one piece at a time, whatever the size of the set.

import { createHash, type Hash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { SetElement } from "../../core/addresses/set-digest.ts";
import { decodeBotElement } from "../../wire/snapshot.ts";
import { describeErrors } from "../../wire/validate.ts";
import type { CentralClient } from "./central-client.ts";

/** 20 million elements of 60 bytes. */
const contentBytesMax = 2 ** 30;
const pieceBytes = 2 ** 16;
/** Of a bot's name and a range, with escapes. */
const lineBytesMax = 4_096;
const partAgeMaxMs = 86_400_000;

/** How much is in the file, and the hash of it. */
type Arriving = { hash: Hash; at: number };
type Client = Pick<CentralClient, "getBlob">;

export class BotSetContents {
  readonly #client: Client;
  readonly #directory: string;
  readonly #now: () => Date;
  readonly #reading = new Set<string>();

  constructor(client: Client, directory: string, now: () => Date) {
    this.#client = client;
    this.#directory = directory;
    this.#now = now;
  }

  /** Throws BLOB_MISMATCH or MESSAGE_INVALID, and what the client throws: then what has arrived is kept, and the next call goes on from there. */
  async *read(blob: Sha256, signal: AbortSignal): AsyncGenerator<readonly SetElement[]> {
    let no = 0;
    while (this.#reading.has(`${blob}.${no}`)) no++;
    const name = `${blob}.${no}`;
    this.#reading.add(name);
    try {
      const part = join(this.#directory, `${name}.part`);
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await this.#dropOld();
      await this.#receive(blob, part, signal);
      yield* elementsOf(blob, part);
      await rm(part, { force: true });
    } finally {
      this.#reading.delete(name);
    }
  }

  async #receive(blob: Sha256, part: string, signal: AbortSignal): Promise<void> {
    await using file = await open(part, constants.O_RDWR | constants.O_CREAT, 0o600);
    const { size: began } = await file.stat();
    const arriving: Arriving = { hash: await hashOf(file, began), at: began };
    // All of it may have arrived before.
    if (began > 0 && arriving.hash.copy().digest("hex") === blob) return;
    for (let before = -1; ;) {
      try {
        before = arriving.at;
        await this.#append(blob, file, arriving, signal);
        break;
      } catch (error) {
        const isBroken = codeOf(error) === "CENTRAL_UNREACHABLE";
        // What central refuses to continue is asked for from its first byte.
        if (!isBroken) await file.truncate(0);
        // As long as it gets on it goes on at once: by the next question the set may be another, and nothing would ever be whole.
        if (!isBroken || arriving.at <= before || signal.aborted) throw error;
      }
    }
    if (arriving.hash.digest("hex") === blob) return;
    await file.truncate(0);
    throw new AccelError("BLOB_MISMATCH", `bot set ${blob} arrived with another digest`);
  }

  async #append(
    blob: Sha256,
    file: FileHandle,
    arriving: Arriving,
    signal: AbortSignal,
  ): Promise<void> {
    const stream = await this.#client.getBlob(blob, arriving.at, signal);
    try {
      if (stream.from !== arriving.at) {
        // Central does not do ranges: from the first byte, then.
        arriving.hash = createHash("sha256");
        arriving.at = 0;
        await file.truncate(0);
      }
      for await (const chunk of stream.chunks) {
        if (arriving.at + chunk.length > contentBytesMax)
          throw new AccelError(
            "MESSAGE_INVALID",
            `bot set ${blob} is larger than ${contentBytesMax} bytes`,
          );
        await writeAll(file, chunk, arriving.at);
        arriving.hash.update(chunk);
        arriving.at += chunk.length;
      }
    } finally {
      stream.cancel();
    }
    if (arriving.at < (stream.size ?? 0))
      throw new AccelError(
        "CENTRAL_UNREACHABLE",
        `bot set ${blob} broke off after ${arriving.at} bytes`,
      );
  }

  async #dropOld(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      const { mtimeMs = Infinity } = (await stat(path).catch(() => undefined)) ?? {};
      if (this.#now().getTime() - mtimeMs > partAgeMaxMs) await rm(path, { force: true });
    }
  }
}

async function hashOf(file: FileHandle, length: number): Promise<Hash> {
  const hash = createHash("sha256");
  const buffer = Buffer.allocUnsafe(pieceBytes);
  for (let at = 0; at < length;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    at += bytesRead;
  }
  return hash;
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length;)
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

async function* elementsOf(blob: Sha256, part: string): AsyncGenerator<readonly SetElement[]> {
  await using file = await open(part, "r");
  const buffer = Buffer.allocUnsafe(pieceBytes);
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    // Cut at bytes: a character may lie across two pieces.
    const bytes = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
    const end = bytes.lastIndexOf(10) + 1;
    rest = bytes.subarray(end);
    if (rest.length > lineBytesMax)
      throw new AccelError("MESSAGE_INVALID", `bot set ${blob}: a line has no end`);
    if (end > 0) yield parseLines(blob, bytes.toString("utf8", 0, end - 1));
  }
  if (rest.length > 0) yield parseLines(blob, rest.toString("utf8"));
}

function parseLines(blob: Sha256, text: string): readonly SetElement[] {
  return text.split("\n").map((line) => {
    const decoded = decodeBotElement(parseJson(line));
    if (decoded.ok) return decoded.value;
    const why = describeErrors(decoded.errors);
    throw new AccelError("MESSAGE_INVALID", `bot set ${blob}: ${why}`);
  });
}

/** Undefined for what is no JSON: no schema accepts it. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
