// A bucket of S3: objects are written once, under keys that were never used, read in ranges, and removed. Loaded only where the settings name a bucket.
//
// Each call has an end: a limit for the answer, one for silence within a body, and a number of attempts. The SDK's own repetitions are off: ours have the same rules
// for all calls. Checksums and conditions of the protocol are not relied on, for many servers ignore them: what is sent is digested while it is sent, what is
// read has the length that was asked for, and whoever receives it compares the digest.

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { Readable } from "node:stream";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { Limiter } from "../../../base/limiter.ts";
import { retry } from "../../../base/wait.ts";
import type { Backoff } from "../../../core/backoff.ts";
import { type Sha256, sha256Of } from "../../../core/ids.ts";
import { AccelError, messageOf } from "../../../core/faults.ts";
import {
  bucketFailure,
  bucketFault,
  bucketText,
  nameHint,
  type BucketFailure,
  type BucketPlace,
} from "./bucket-place.ts";

export type BucketCall = "put" | "get" | "head" | "delete";

export type BucketLimits = {
  readonly connectMs: number;
  /** From the request to the head of the answer, beyond what its body takes. */
  readonly answerMs: number;
  /** Of silence within a body. */
  readonly idleMs: number;
  readonly attempts: number;
  /** The most that attempts which were not answered take together: none begins that could end later. */
  readonly silentMs: number;
  readonly backoff: Backoff;
  /** A call that takes longer raises doubts, and an object is asked for that costs nothing: that is waited for until `doubtAnswerMs` are over. */
  readonly doubtMs: number;
  readonly doubtAnswerMs: number;
};

/** Attempts are over within a minute, so that an agent, a customer and the proxies before central still wait for the answer that says so. */
export const bucketLimits: BucketLimits = {
  connectMs: 5_000,
  answerMs: 15_000,
  idleMs: 30_000,
  attempts: 3,
  silentMs: 60_000,
  backoff: { firstMs: 200, mostMs: 2_000 },
  doubtMs: 10_000,
  doubtAnswerMs: 4_000,
};

/** Need not be there. */
const probeKey = "probe";

export type BucketOptions = {
  readonly place: BucketPlace;
  readonly limits?: BucketLimits;
  /** Called after each call with what came of it; must not throw. */
  readonly onCall: (call: BucketCall, failure: BucketFailure | undefined, key: string) => void;
  readonly random: () => number;
  readonly stop: AbortSignal;
};

/** Bytes in memory, or a file that stays as it is until the call ends. */
export type ObjectSource = Uint8Array | { readonly path: string; readonly size: number };

/** Larger objects are sent in parts of this size. S3 takes 10,000 parts of at least 5 MiB: the largest blob (4 GiB) has 512. */
const partBytes = 8 * 2 ** 20;
/** Each may hold a part in memory: 96 MiB. */
const putsMax = 12;
/** Slower uploads are given up: a part takes 32 s then. */
const slowestBytesPerMs = 256;
/** Agents that read slowly hold a connection each. */
const socketsMax = 512;
/** An answer that breaks off is asked for again from there, so often. */
const cutsMax = 2;
/** What the SDK is told of an access key: it asks for it anew in the last five minutes of this time. */
const keyKnownMs = 600_000;

export class Bucket implements Disposable {
  readonly where: string;
  readonly #client: S3Client;
  readonly #options: BucketOptions;
  readonly #limits: BucketLimits;
  readonly #puts = new Limiter(putsMax);
  #isDoubting = false;

  /** Sends nothing yet. */
  constructor(options: BucketOptions) {
    const { place, limits = bucketLimits } = options;
    const { endpoint, region, pathStyle, ca, accessKey } = place;
    this.#options = options;
    this.#limits = limits;
    this.where = bucketText(place);
    const agent = { keepAlive: true, maxSockets: socketsMax };
    this.#client = new S3Client({
      region,
      ...(endpoint !== undefined && { endpoint }),
      forcePathStyle: pathStyle,
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      expectContinueHeader: false,
      followRegionRedirects: false,
      maxAttempts: 1,
      requestHandler: {
        connectionTimeout: limits.connectMs,
        httpAgent: agent,
        httpsAgent: { ...agent, ...(ca !== undefined && { ca }) },
      },
      ...(accessKey !== undefined && {
        credentials: async () => {
          const { id, secret } = accessKey();
          const expiration = new Date(Date.now() + keyKnownMs);
          return { accessKeyId: id, secretAccessKey: secret, expiration };
        },
      }),
    });
  }

  /**
   * Writes an object; it is there as a whole when this resolves. Throws OBJECTS_UNREACHABLE, after which it may be there all the same; DISK_FAILED
   * where the source has another digest; and what the disk throws.
   */
  async put(key: string, source: ObjectSource, sha256: Sha256): Promise<void> {
    return this.#puts.run(async () => {
      if (source instanceof Uint8Array) return this.#putSmall(key, source, sha256);
      const { path, size } = source;
      if (size > partBytes) return this.#putLarge(key, path, size, sha256);
      await using file = await open(path);
      // Awaited here: the file is closed behind it.
      return await this.#putSmall(key, await file.readFile(), sha256);
    });
  }

  /**
   * Reads the bytes from `first` to `last`, both included, of an object. Resolves when the first of them are there. Throws OBJECTS_UNREACHABLE, also where there
   * is no such object or it has another size; the stream fails likewise when it breaks off.
   */
  async read(key: string, range: ObjectRange): Promise<Readable> {
    if (range.last < range.first) return Readable.from([]);
    const chunks = this.#chunks(key, range);
    const begun = await chunks.next();
    return Readable.from(prefixed(begun, chunks), { objectMode: false });
  }

  /** Returns the size of an object; undefined if it is not there. Throws OBJECTS_UNREACHABLE. */
  async sizeOf(key: string): Promise<number | undefined> {
    const command = new HeadObjectCommand(this.#at(key));
    return this.#try("head", key, this.#limits.answerMs, async (abortSignal) => {
      const { ContentLength: size } = await this.#client.send(command, { abortSignal });
      return size;
    }).catch((error: unknown) => {
      if (error instanceof Missing) return undefined;
      throw error;
    });
  }

  /** Removes an object, if it is there. Throws OBJECTS_UNREACHABLE. */
  async remove(key: string): Promise<void> {
    const command = new DeleteObjectCommand(this.#at(key));
    await this.#try("delete", key, this.#limits.answerMs, async (abortSignal) =>
      this.#client.send(command, { abortSignal }),
    ).catch((error: unknown) => {
      if (!(error instanceof Missing)) throw error;
    });
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }

  #at(key: string): ObjectAt {
    const { bucket, prefix } = this.#options.place;
    return { Bucket: bucket, Key: `${prefix}${key}` };
  }

  async #putSmall(key: string, bytes: Uint8Array, sha256: Sha256): Promise<void> {
    if (sha256Of(bytes) !== sha256) throw changed(sha256);
    await this.#send(key, bytes.byteLength, async (abortSignal) => {
      // The SDK takes the view for the whole memory that it lies in.
      const Body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const ContentType = "application/octet-stream";
      await this.#client.send(new PutObjectCommand({ ...this.#at(key), Body, ContentType }), {
        abortSignal,
      });
    });
  }

  async #putLarge(key: string, path: string, size: number, sha256: Sha256): Promise<void> {
    const at = this.#at(key);
    const ContentType = "application/octet-stream";
    const { UploadId } = await this.#send(key, 0, async (abortSignal) =>
      this.#client.send(new CreateMultipartUploadCommand({ ...at, ContentType }), { abortSignal }),
    );
    const upload = { ...at, UploadId };
    try {
      const Parts = await this.#sendParts(key, path, sha256, upload);
      const complete = new CompleteMultipartUploadCommand({
        ...upload,
        MultipartUpload: { Parts },
      });
      const outcome = await this.#send(key, size, async (abortSignal) =>
        this.#client.send(complete, { abortSignal }),
      ).catch((error: unknown) => error);
      // Its answer may have been lost, and a server may say that all went well before it knows.
      if ((await this.sizeOf(key)) === size) return;
      throw outcome instanceof Error
        ? outcome
        : this.#fault({ kind: "failed", reason: `the parts did not become ${size} bytes` }, key);
    } catch (error) {
      // Parts that stay cost room; docs/operations/cluster.md says which rule of the bucket removes them.
      const abort = new AbortMultipartUploadCommand(upload);
      await limited(
        async (abortSignal) => this.#client.send(abort, { abortSignal }),
        this.#limits.answerMs,
        this.#options.stop,
      ).catch(() => undefined);
      throw error;
    }
  }

  async #sendParts(
    key: string,
    path: string,
    sha256: Sha256,
    upload: ObjectAt & { readonly UploadId: string | undefined },
  ): Promise<{ readonly ETag: string | undefined; readonly PartNumber: number }[]> {
    await using file = await open(path);
    const hash = createHash("sha256");
    const done: { readonly ETag: string | undefined; readonly PartNumber: number }[] = [];
    for (;;) {
      const Body = Buffer.allocUnsafe(partBytes);
      const { bytesRead } = await file.read(Body, 0, partBytes, done.length * partBytes);
      if (bytesRead === 0) break;
      const part = Body.subarray(0, bytesRead);
      hash.update(part);
      const PartNumber = done.length + 1;
      const { ETag } = await this.#send(key, bytesRead, async (abortSignal) =>
        this.#client.send(new UploadPartCommand({ ...upload, PartNumber, Body: part }), {
          abortSignal,
        }),
      );
      done.push({ ETag, PartNumber });
    }
    if (hash.digest("hex") !== sha256) throw changed(sha256);
    return done;
  }

  async #send<T>(
    key: string,
    bytes: number,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { answerMs, silentMs } = this.#limits;
    const limitMs = Math.min(answerMs + Math.ceil(bytes / slowestBytesPerMs), silentMs);
    return this.#try("put", key, limitMs, action);
  }

  async *#chunks(
    key: string,
    { first, last, size }: ObjectRange,
  ): AsyncGenerator<Uint8Array, undefined> {
    let at = first;
    for (let cuts = 0; ; cuts++) {
      const body = await this.#get(key, { first: at, last, size });
      try {
        for await (const chunk of this.#watched(body)) {
          at += chunk.byteLength;
          yield chunk;
        }
        if (at > last) return;
        throw new Error("the answer broke off");
      } catch (error) {
        if (at > last) return;
        const failure: BucketFailure = { kind: "failed", reason: messageOf(error) };
        this.#options.onCall("get", failure, key);
        if (cuts >= cutsMax || this.#options.stop.aborted) throw this.#fault(failure, key);
      } finally {
        body.destroy();
      }
    }
  }

  async #get(key: string, { first, last, size }: ObjectRange): Promise<Readable> {
    const command = new GetObjectCommand({ ...this.#at(key), Range: `bytes=${first}-${last}` });
    return this.#try("get", key, this.#limits.answerMs, async (abortSignal) => {
      const { Body, ContentRange } = await this.#client.send(command, { abortSignal });
      if (!(Body instanceof Readable)) throw new Error("the answer has no body");
      const wanted = `bytes ${first}-${last}/${size}`;
      if (ContentRange === wanted) return Body;
      Body.destroy();
      throw new Error(`it answered ${ContentRange ?? "without a range"}, wanted was ${wanted}`);
    });
  }

  /** Ends a body that is silent for too long. Time in which nobody reads does not count. */
  async *#watched(body: Readable): AsyncGenerator<Uint8Array, undefined> {
    const { idleMs } = this.#limits;
    const chunks: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]();
    for (;;) {
      const silent = new Error(`nothing came for ${idleMs} ms`);
      const timer = setTimeout(() => body.destroy(silent), idleMs);
      try {
        const next = await chunks.next();
        if (next.done === true) return;
        clearTimeout(timer);
        yield next.value;
      } finally {
        clearTimeout(timer);
      }
    }
  }

  /** Asks whether the bucket answers at all: a large upload may take long, and all attempts at a silent one take a minute, after which it would be told. Never rejects. */
  async #doubt(): Promise<void> {
    const { stop, onCall } = this.#options;
    if (this.#isDoubting || stop.aborted) return;
    this.#isDoubting = true;
    const command = new HeadObjectCommand(this.#at(probeKey));
    try {
      await limited(
        async (abortSignal) => this.#client.send(command, { abortSignal }),
        this.#limits.doubtAnswerMs,
        stop,
      );
    } catch (error) {
      if (error instanceof Silent) onCall("head", bucketFailure(error), probeKey);
    } finally {
      this.#isDoubting = false;
    }
  }

  /** Makes a call until it succeeds or its attempts are used up. Throws Missing, and OBJECTS_UNREACHABLE. */
  async #try<T>(
    call: BucketCall,
    key: string,
    limitMs: number,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { stop, random, onCall } = this.#options;
    const { attempts, backoff, silentMs, doubtMs } = this.#limits;
    const doubting = setInterval(() => void this.#doubt(), doubtMs);
    let spentMs = 0;
    try {
      const done = await retry(async () => limited(action, limitMs, stop), {
        stop,
        random,
        backoff,
        onFailure: (error, attempt) => {
          if (error instanceof Silent) spentMs += limitMs;
          const hasTime = spentMs + limitMs <= silentMs;
          return hasTime && attempt + 1 < attempts && bucketFailure(error).kind === "failed";
        },
      });
      onCall(call, undefined, key);
      return done;
    } catch (error) {
      const failure = bucketFailure(error);
      // Whether something is there was the question.
      const isAnswer = failure.kind === "missing" && (call === "head" || call === "delete");
      onCall(call, isAnswer ? undefined : failure, key);
      if (isAnswer) throw new Missing(key);
      throw this.#fault(failure, key);
    } finally {
      clearInterval(doubting);
    }
  }

  #fault(failure: BucketFailure, key: string): Error {
    const fault = bucketFault(this.where, failure, `the object ${key}`);
    const hint = nameHint(this.#options.place, fault.message);
    return hint === "" ? fault : new AccelError("OBJECTS_UNREACHABLE", `${fault.message}${hint}`);
  }
}

type ObjectAt = { readonly Bucket: string; readonly Key: string };

/** `size` is that of the whole object. */
export type ObjectRange = { readonly first: number; readonly last: number; readonly size: number };

class Missing extends Error {}
/** Nothing was heard in time. */
class Silent extends Error {}

function changed(sha256: Sha256): AccelError {
  return new AccelError(
    "DISK_FAILED",
    `what was received of ${sha256} changed on the disk before it was sent`,
  );
}

async function limited<T>(
  action: (signal: AbortSignal) => Promise<T>,
  limitMs: number,
  stop: AbortSignal,
): Promise<T> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), limitMs);
  try {
    return await action(AbortSignal.any([over.signal, stop]));
  } catch (error) {
    throw over.signal.aborted ? new Silent(`it did not answer within ${limitMs} ms`) : error;
  } finally {
    clearTimeout(timer);
  }
}

async function* prefixed(
  begun: IteratorResult<Uint8Array, undefined>,
  rest: AsyncGenerator<Uint8Array, undefined>,
): AsyncGenerator<Uint8Array, undefined> {
  try {
    if (begun.done === true) return;
    yield begun.value;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}
