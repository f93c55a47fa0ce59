// A whole bot set on its way here: it is received into a file, continued where it broke off, trusted once its
// digest is right, then read line by line.
//
//   <directory>/<sha256>.<n>.part    what has arrived (n: for several hosts with the same set); it outlives
//                                    this process, and is deleted when it was read or was not written for a
//                                    day
// Memory holds one piece at a time, whatever the size of the set.

import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { hashStart, writeAll } from "../../base/file-bytes.ts";
import { AccelError, codeOf } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import { parseJson } from "../../core/journal/json-text.ts";
import type { SetElement } from "../../core/addresses/set-digest.ts";
import { decodeBotElement } from "../../wire/snapshot.ts";
import { describeErrors } from "../../wire/validate.ts";
import type { CentralClient, GetBlob } from "./central-client.ts";
import { receiveBlob } from "./receive-blob.ts";

/** The most bytes of a set, nearly 18 million elements of 60 bytes. */
const contentBytesMax = 2 ** 30;
const pieceBytes = 2 ** 16;
/** The most bytes of a line: a bot's name and a range, with escapes. */
const lineBytesMax = 4_096;
const partAgeMaxMs = 86_400_000;

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

  /**
   * Yields the elements of the set in batches. Throws BLOB_MISMATCH or MESSAGE_INVALID, and what the client
   * throws. When central becomes unreachable, what has arrived is kept, and the next call continues from
   * there.
   */
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
    const { size } = await file.stat();
    let hash = await hashStart(file, size);
    const sink = {
      at: hash === undefined ? 0 : size,
      add: async (chunk: Uint8Array) => {
        await writeAll(file, chunk, sink.at);
        hash?.update(chunk);
        sink.at += chunk.length;
      },
      clear: async () => {
        hash = createHash("sha256");
        sink.at = 0;
        await file.truncate(0);
      },
    };
    if (hash === undefined) await sink.clear();
    // An earlier call may have received all of it.
    if (size > 0 && hash?.copy().digest("hex") === blob) return;
    const want = { blob, what: "bot set", bytesMax: contentBytesMax, isText: false };
    const getBlob: GetBlob = async (...asked) => this.#client.getBlob(...asked);
    try {
      await receiveBlob(want, sink, getBlob, signal);
    } catch (error) {
      // Central refused to continue: the next call asks from the first byte.
      if (codeOf(error) !== "CENTRAL_UNREACHABLE") await file.truncate(0);
      throw error;
    }
    if (hash?.digest("hex") === blob) return;
    await file.truncate(0);
    throw new AccelError("BLOB_MISMATCH", `bot set ${blob} arrived with another digest`);
  }

  async #dropOld(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      const { mtimeMs = Infinity } = (await stat(path).catch(() => undefined)) ?? {};
      if (this.#now().getTime() - mtimeMs > partAgeMaxMs) await rm(path, { force: true });
    }
  }
}

async function* elementsOf(blob: Sha256, part: string): AsyncGenerator<readonly SetElement[]> {
  await using file = await open(part, "r");
  const buffer = Buffer.allocUnsafe(pieceBytes);
  let rest: Buffer = Buffer.alloc(0);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    // Lines are cut as bytes, for a character may lie across two pieces.
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
