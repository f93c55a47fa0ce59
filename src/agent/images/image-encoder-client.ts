// A worker's side of pictures: each is asked of main, which has one encoder for all workers.

import type { MessagePort } from "node:worker_threads";
import { imageSourceBytesMax } from "../../core/images/image-limits.ts";
import { pictureFormat } from "../../core/images/picture-head.ts";
import type { ImageEncoder, ImageJob, ImageMade } from "./image-encoder.ts";
import type { ImageAnswer, ImageOrder } from "./image-messages.ts";

/** Main answers within three minutes: one for the turn, one for a start of the encoder, one for the picture. */
const answerMs = 190_000;
/** The pictures of one worker that wait for main, which takes no more of all workers together. */
const waitingMax = 64;

const stopping: ImageMade = { kind: "failed", reason: "the agent is stopping" };

export class ImageEncoderClient implements ImageEncoder, Disposable {
  readonly #port: MessagePort;
  readonly #waiting = new Map<number, (made: ImageMade) => void>();
  readonly #answerMs: number;
  #no = 0;
  #isClosed = false;

  /** Takes the port of an ImageDesk, and closes it when it is disposed. */
  constructor(port: MessagePort, waitMs = answerMs) {
    this.#port = port;
    this.#answerMs = waitMs;
    // The desk is at the other end, and sends nothing else.
    port.on("message", ({ no, made }: ImageAnswer) => this.#waiting.get(no)?.(made));
    port.once("close", () => this.#end());
    port.unref();
  }

  async make(job: ImageJob): Promise<ImageMade> {
    const { source } = job;
    if (this.#isClosed) return stopping;
    // Nobody is asked of what is not taken in any case.
    if (source.length > imageSourceBytesMax)
      return { kind: "unreadable", reason: `has more than ${imageSourceBytesMax} bytes` };
    if (pictureFormat(source) === undefined)
      return { kind: "unreadable", reason: "is no JPEG, PNG, WebP or AVIF" };
    if (this.#waiting.size >= waitingMax) return { kind: "failed", reason: "busy" };
    const no = ++this.#no;
    const { promise, resolve } = Promise.withResolvers<ImageMade>();
    this.#waiting.set(no, resolve);
    const reason = `no answer within ${this.#answerMs / 1_000} s`;
    const late = setTimeout(() => resolve({ kind: "failed", reason }), this.#answerMs).unref();
    const copy = new Uint8Array(source); // The caller's bytes may be shared, and stay the caller's.
    const order: ImageOrder = { no, job: { ...job, source: copy } };
    this.#port.postMessage(order, [copy.buffer]);
    try {
      return await promise;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(no);
    }
  }

  [Symbol.dispose](): void {
    this.#port.close();
    this.#end();
  }

  #end(): void {
    this.#isClosed = true;
    for (const resolve of this.#waiting.values()) resolve(stopping);
  }
}
