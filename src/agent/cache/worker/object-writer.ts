// One body on its way to disk: small ones go with their commit into SQLite, larger ones into a file, in one piece when they are complete or, the largest,
// as they come.

import { createHash, type Hash } from "node:crypto";
import { mkdir, open, unlink, writeFile, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf, systemCode } from "../../../core/faults.ts";
import type { DiskRoom } from "../index/disk-room.ts";
import {
  inlineBytesMax,
  storeFault,
  type CommitOutcome,
  type EntryMeta,
  type Fetched,
  type StoredBody,
} from "../entry.ts";
import type { CommitAnswer } from "./index-link.ts";
import { newObjectName, objectPath } from "../index/object-files.ts";
import { hotBodyBytesMax } from "./hot-memory.ts";

export type ObjectWriterOptions = {
  readonly directory: string;
  /** Undefined: nothing can be stored now. */
  readonly run: string | undefined;
  readonly bytesMax: number;
  readonly room: Pick<DiskRoom, "take" | "give">;
  /** The place of the domain in the room. */
  readonly place: number;
  readonly submit: (
    meta: EntryMeta,
    body: StoredBody | null,
    size: number,
    fetched: Fetched,
  ) => Promise<CommitAnswer>;
  /** Told of a body that was stored and is still at hand, for it is small. */
  readonly onStored: (id: number, body: Uint8Array) => void;
  /** Told why the disk did not take a body: without its path, so that it is the same for each. */
  readonly onUnwritten: (reason: string) => void;
};

type ObjectInMaking = { readonly name: string; readonly hash: Hash };

/** `given-up`: storing has failed or the object is too large; the caller stops writing and aborts. */
export type Storing = "storing" | "given-up";

/** Ends by exactly one of commit and abort; what comes after the first is without effect. Neither throws. */
export class ObjectWriter {
  readonly #options: ObjectWriterOptions;
  #chunks: Uint8Array[] = [];
  #held = 0;
  #size = 0;
  /** The bytes of the room on disk that it has taken. */
  #taken = 0;
  /** Most bodies need none: they go into SQLite. */
  #object: ObjectInMaking | undefined;
  #file: FileHandle | undefined;
  #fault: string | undefined;
  /** Writes follow each other also when the caller does not wait. */
  #tail: Promise<void> = Promise.resolve();
  #isEnded = false;

  constructor(options: ObjectWriterOptions) {
    this.#options = options;
    if (options.run === undefined) this.#fault = "there is no index";
  }

  /** Takes the next chunk, which must not change afterwards. Resolves when another one may be written. */
  async write(chunk: Uint8Array): Promise<Storing> {
    if (this.#isEnded || this.#fault !== undefined) return "given-up";
    this.#size += chunk.length;
    if (this.#size > this.#options.bytesMax) {
      this.#fail(`the body is larger than ${this.#options.bytesMax} bytes`);
      return "given-up";
    }
    if (!this.#take(chunk.length)) return "given-up";
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    if (this.#held > hotBodyBytesMax) await this.#flush();
    return this.#fault === undefined ? "storing" : "given-up";
  }

  /** False: it is known already that a commit would not store it. `size` of the whole body, undefined where it is not stated. Synchronous. */
  mayStore(meta: EntryMeta, size: number | undefined): boolean {
    if (this.#fault !== undefined || (size ?? 0) > this.#options.bytesMax) return false;
    return storeFault(meta) === undefined;
  }

  async commit(meta: EntryMeta, fetched: Fetched = {}): Promise<CommitOutcome> {
    if (this.#isEnded) return { kind: "failed", reason: "the writer has ended already" };
    this.#isEnded = true;
    if (this.#size === 0) this.#take(0); // A row without a body needs room as well.
    try {
      return await this.#commit(meta, fetched);
    } finally {
      this.#giveRoom();
    }
  }

  async #commit(meta: EntryMeta, fetched: Fetched): Promise<CommitOutcome> {
    const isHeld = this.#file === undefined && this.#held === this.#size;
    const body = isHeld ? this.#takeHeld() : undefined;
    const isInline = body !== undefined && body.length <= inlineBytesMax;
    if (body === undefined) await this.#flush();
    else if (!isInline) await this.#writeWhole(body);
    await this.#close();
    if (this.#fault !== undefined) {
      await this.#discard();
      return { kind: "failed", reason: this.#fault };
    }
    const stored = this.#stored(isInline ? body : undefined);
    const { outcome, isCertain } = await this.#options.submit(meta, stored, this.#size, fetched);
    if (outcome.kind === "stored") {
      if (body !== undefined) this.#options.onStored(outcome.id, body);
    } else if (isCertain && !isInline) await this.#discard();
    return outcome;
  }

  #stored(inline: Uint8Array | undefined): StoredBody | null {
    if (this.#size === 0) return null;
    if (inline === undefined) {
      const { name, hash } = this.#named();
      return { kind: "file", object: name, digest: hash.digest() };
    }
    // A copy, to be transferred: the body itself stays here for the next visitors.
    return { kind: "inline", bytes: inline.slice() };
  }

  abort(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#fail("aborted");
    void this.#abandon();
  }

  async #abandon(): Promise<void> {
    await this.#tail;
    await this.#close();
    await this.#discard();
    this.#giveRoom();
  }

  #take(bytes: number): boolean {
    const { room, place } = this.#options;
    const isTaken = room.take(bytes, { place, isSmall: this.#size <= hotBodyBytesMax });
    if (isTaken) this.#taken += bytes;
    else this.#fail("there is no room on disk just now");
    return isTaken;
  }

  #giveRoom(): void {
    this.#options.room.give(this.#taken, this.#options.place);
    this.#taken = 0;
  }

  #fail(reason: string): void {
    this.#fault ??= reason;
    this.#chunks = [];
    this.#held = 0;
  }

  #failToWrite(error: unknown): void {
    const [reason = ""] = messageOf(error).split(", ");
    this.#fail(messageOf(error));
    this.#options.onUnwritten(reason);
  }

  #takeHeld(): Uint8Array {
    // A copy of exactly its size: chunks are often slices of much larger buffers.
    const body = new Uint8Array(this.#held);
    let at = 0;
    for (const chunk of this.#chunks) {
      body.set(chunk, at);
      at += chunk.length;
    }
    this.#chunks = [];
    this.#held = 0;
    return body;
  }

  async #writeWhole(body: Uint8Array): Promise<void> {
    if (body.length === 0 || this.#fault !== undefined) return;
    try {
      this.#named().hash.update(body);
      await this.#make((path) => writeFile(path, body, { flag: "wx", mode: 0o600 }));
    } catch (error) {
      this.#failToWrite(error);
    }
  }

  #flush(): Promise<void> {
    this.#tail = this.#append(this.#tail, this.#takeHeld());
    return this.#tail;
  }

  async #append(before: Promise<void>, piece: Uint8Array): Promise<void> {
    await before;
    if (piece.length === 0 || this.#fault !== undefined) return;
    try {
      this.#named().hash.update(piece);
      this.#file ??= await this.#make((path) => open(path, "wx", 0o600));
      await this.#file.writeFile(piece); // Goes on from the current position.
    } catch (error) {
      this.#failToWrite(error);
    }
  }

  /** Makes a file, and its directory too where somebody has removed that. */
  async #make<T>(make: (path: string) => Promise<T>): Promise<T> {
    const path = objectPath(this.#options.directory, this.#named().name);
    try {
      return await make(path);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      return make(path);
    }
  }

  #named(): ObjectInMaking {
    const { run = "" } = this.#options; // Without one nothing is written.
    return (this.#object ??= { name: newObjectName(run), hash: createHash("sha256") });
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    try {
      await file?.close();
    } catch (error) {
      this.#failToWrite(error);
    }
  }

  async #discard(): Promise<void> {
    if (this.#object === undefined) return;
    const path = objectPath(this.#options.directory, this.#object.name);
    await unlink(path).catch(() => undefined); // Never made, or swept at the next start.
  }
}
