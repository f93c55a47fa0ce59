// The agent API of central as typed calls: each has a token, a deadline and a size limit, and each answer is
// decoded. A refusal becomes an AccelError with the code that central's code maps to.
//
// An expired token is renewed once and the call repeated; any other repetition is left to the caller.

import { codeOf, AccelError } from "../../core/faults.ts";
import type { Sha256 } from "../../core/ids.ts";
import type { Report } from "../../wire/channel.ts";
import { decodeJournalPage, type BotSet, type JournalPage } from "../../wire/journal.ts";
import { blobCoding, decodeBlobsMissing } from "../../wire/manifest.ts";
import { agentTakes, takesHeader, type Position } from "../../wire/position.ts";
import type { PurgeMessage } from "../../wire/purge.ts";
import { decodeReleaseWanted, type ReleaseTold, type ReleaseWanted } from "../../wire/rollout.ts";
import { decodeReceiptAcks, type Receipt, type ReceiptPhase } from "../../wire/receipt.ts";
import {
  decodeBotSetState,
  decodeSnapshot,
  type BotSetState,
  type Snapshot,
} from "../../wire/snapshot.ts";
import type { Decoder } from "../../wire/validate.ts";
import { reportAsTaken, withPositionTaken } from "./as-taken.ts";
import { blobStream, blobUpload, type BlobSource, type BlobStream } from "./blob-transfer.ts";
import {
  Session,
  smallBytesMax,
  type CentralCall,
  type SessionOptions,
  type AgentToken,
} from "./session.ts";
import { callName, readText, CentralTransport, type CentralTransportOptions } from "./transport.ts";

export type CentralClientOptions = CentralTransportOptions &
  Omit<SessionOptions, "callTimeoutMs"> & {
    /** The deadline of a whole call with a small answer. */
    readonly callTimeoutMs?: number;
  };

export type JournalQuery = {
  /** Who asks: one that waits is in touch, for central. */
  readonly instanceId: string;
  readonly after: number;
  readonly epoch: string;
  readonly chain: string;
  /** The long poll: central answers as soon as there is something, or after this time. */
  readonly waitMs?: number;
};

export type RequestLogBatch = {
  /** The instance of this agent: central credits a delivery to who made it. */
  readonly instanceId: string;
  /** `<boot epoch>/<lane no>` */
  readonly lane: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly encoding: "zstd" | "gzip" | "identity";
  readonly body: Uint8Array;
};

export type RequestLogPosted = {
  readonly status: number;
  /** The decoded body; undefined if it is not JSON. */
  readonly answer: unknown;
  readonly retryAfterMs: number | undefined;
};

export type ReceiptsToPost = {
  readonly instance_id: string;
  readonly receipts: readonly Receipt[];
  readonly position: Position;
};

export type ReceiptAck = { readonly seq: number; readonly phase: ReceiptPhase };

const answerBytesMax = 2 ** 20; // Room for 10,000 digests of 67 bytes.
const blobsWantedMax = 10_000;
/** Room for 500 entries of up to 16 KiB and one larger mark. */
const pageBytesMax = 32 * 2 ** 20;
const snapshotBytesMax = 64 * 2 ** 20;

/**
 * Fetches a blob. Throws NOT_FOUND where central lacks it, or a fault that only time can heal; the chunks
 * throw when they break off.
 */
export type GetBlob = CentralClient["getBlob"];

export class CentralClient implements AsyncDisposable {
  readonly transport: CentralTransport;
  readonly #session: Session;

  /** Sends nothing yet. Throws SETTINGS_INVALID where `centralUrl` may not be used. */
  constructor({ callTimeoutMs = 60_000, ...options }: CentralClientOptions) {
    this.transport = new CentralTransport(options);
    this.#session = new Session(this.transport, { ...options, callTimeoutMs });
  }

  async token(): Promise<AgentToken> {
    return this.#session.token();
  }

  /** Signs in anew. After a rotation this brings the new secret, if the one before is still accepted. */
  async signIn(): Promise<void> {
    this.#session.discardToken(await this.#session.token());
    await this.#session.token();
  }

  discardToken(token: AgentToken): void {
    this.#session.discardToken(token);
  }

  async getJournal(query: JournalQuery, signal: AbortSignal): Promise<JournalPage> {
    const { after, epoch, chain, waitMs = 0, instanceId } = query;
    const wait = waitMs === 0 ? "" : `&wait=${Math.ceil(waitMs / 1000)}`;
    const path = `/journal?after=${after}&epoch=${epoch}&chain=${chain}${wait}`;
    const headers = { [takesHeader]: agentTakes, "accel-instance": instanceId };
    const call: CentralCall = { method: "GET", path, headers, signal, extraWaitMs: waitMs };
    return this.#session.json(call, decodeJournalPage, pageBytesMax);
  }

  async getSnapshot(signal: AbortSignal): Promise<Snapshot> {
    const headers = { [takesHeader]: agentTakes };
    const call: CentralCall = { method: "GET", path: "/snapshot", headers, signal };
    return this.#session.json(call, decodeSnapshot, snapshotBytesMax);
  }

  async getBotSet(domain: string, set: BotSet, signal: AbortSignal): Promise<BotSetState> {
    const path = `/bot-sets/${encodeURIComponent(domain)}/${set}`;
    return this.#session.json({ method: "GET", path, signal }, decodeBotSetState, smallBytesMax);
  }

  /**
   * Gets the content from `rangeFrom` on, or from 0 where central does not support ranges: see `from`. Text
   * asked for from its first byte may come compressed; `chunks` are decoded. The transfer has no deadline;
   * only silence ends it.
   */
  async getBlob(
    sha256: Sha256,
    rangeFrom: number,
    signal: AbortSignal,
    isText = false,
  ): Promise<BlobStream> {
    const range = rangeFrom === 0 ? {} : { range: `bytes=${rangeFrom}-` };
    const coding = isText && rangeFrom === 0 ? blobCoding : "identity";
    const call: CentralCall = {
      method: "GET",
      path: `/blobs/${sha256}`,
      headers: { "accept-encoding": coding, ...range },
      signal: this.#session.bound(signal),
    };
    return blobStream(await this.#session.accepted(call), rangeFrom, callName(call));
  }

  /**
   * Sends a blob; central checks the digest. The transfer has no deadline; only silence ends it. Throws
   * CONFLICT when the file changes meanwhile, and what opening it throws.
   */
  async putBlob(sha256: Sha256, source: BlobSource, signal: AbortSignal): Promise<void> {
    const { size, open } = blobUpload(source);
    const call: CentralCall = {
      method: "PUT",
      path: `/blobs/${sha256}`,
      headers: { "content-type": "application/octet-stream", "content-length": String(size) },
      body: open,
      signal: this.#session.bound(signal),
    };
    try {
      await (await this.#session.accepted(call)).body.dump();
    } catch (error) {
      if (!isOtherLength(error)) throw error;
      throw new AccelError("CONFLICT", `blob ${sha256}: its file changed while it was sent`);
    }
  }

  /** Returns which of these blobs central lacks; any number may be asked. */
  async blobsMissing(sha256s: readonly Sha256[], signal: AbortSignal): Promise<readonly Sha256[]> {
    const missing: Sha256[] = [];
    for (let at = 0; at < sha256s.length; at += blobsWantedMax) {
      const wanted = { sha256: sha256s.slice(at, at + blobsWantedMax) };
      missing.push(
        ...(await this.#post("/blobs/missing", wanted, signal, decodeBlobsMissing)).missing,
      );
    }
    return missing;
  }

  /** Posts receipts, with the position where central takes it. */
  async postReceipts(batch: ReceiptsToPost, signal: AbortSignal): Promise<readonly ReceiptAck[]> {
    const told = withPositionTaken(batch, this.transport.takes);
    return (await this.#post("/receipts", told, signal, decodeReceiptAcks)).acks;
  }

  /** Posts a report, with what of it central takes. */
  async postReport(report: Report, signal: AbortSignal): Promise<void> {
    const call = jsonCall(
      "/reports",
      reportAsTaken(report, this.transport.takes),
      this.#session.deadline(signal),
    );
    await (await this.#session.accepted(call)).body.dump();
  }

  /** Tells how this agent stands with its release, and returns what central wants. Throws NOT_FOUND where central does not know of it. */
  async tellRelease(told: ReleaseTold, signal: AbortSignal): Promise<ReleaseWanted> {
    return this.#post("/release", told, signal, decodeReleaseWanted);
  }

  /** Tells of purges that were carried out here; resolves when central has written a clear of them. */
  async postPurge(purge: PurgeMessage, signal: AbortSignal): Promise<void> {
    const call = jsonCall("/purges", purge, this.#session.deadline(signal));
    await (await this.#session.accepted(call)).body.dump();
  }

  /**
   * Posts a batch and returns any status as an answer. Throws only if no answer came or no token could be
   * had.
   */
  async postRequestLogs(batch: RequestLogBatch, signal: AbortSignal): Promise<RequestLogPosted> {
    const call: CentralCall = {
      method: "POST",
      path: "/request-logs",
      headers: {
        "content-type": "application/x-ndjson",
        "content-encoding": batch.encoding,
        "accel-instance": batch.instanceId,
        "accel-lane": batch.lane,
        "accel-first-seq": String(batch.firstSeq),
        "accel-last-seq": String(batch.lastSeq),
      },
      body: () => batch.body,
      signal: this.#session.deadline(signal),
    };
    const { answer, refusal } = await this.#session.send(call);
    const text = refusal ?? (await readText(answer, smallBytesMax, callName(call)));
    return {
      status: answer.statusCode,
      answer: parseJson(text),
      retryAfterMs: parseRetryAfter(answer.headers["retry-after"], Date.now()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.transport[Symbol.asyncDispose]();
  }

  async #post<T>(path: string, body: unknown, signal: AbortSignal, decode: Decoder<T>): Promise<T> {
    return this.#session.json(jsonCall(path, body, signal), decode, answerBytesMax);
  }
}

function jsonCall(path: string, body: unknown, signal: AbortSignal): CentralCall {
  return {
    method: "POST",
    path,
    headers: { "content-type": "application/json" },
    body: () => JSON.stringify(body),
    signal,
  };
}

function isOtherLength(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return (
    codeOf(error) === "CENTRAL_UNREACHABLE" &&
    cause instanceof Error &&
    "code" in cause &&
    cause.code === "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH"
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses Retry-After, seconds or a date (RFC 9110 §10.2.3). */
export function parseRetryAfter(
  raw: string | string[] | undefined,
  nowMs: number,
): number | undefined {
  const text = Array.isArray(raw) ? raw[0] : raw;
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
