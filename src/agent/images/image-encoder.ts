// What a worker asks of whoever makes forms of pictures.

import type { ImageForm } from "../../core/images/image-form.ts";

export type ImageJob = {
  /** The main domain, whose number of the day is spent. */
  readonly domain: string;
  /** `images.variants_per_day_max`. */
  readonly perDayMax: number;
  /** The original, whole. Its bytes are copied. */
  readonly source: Uint8Array;
  readonly form: ImageForm;
  /** 1 to 100, as `images.quality`. */
  readonly quality: number;
};

/**
 * What came of a job.
 *
 * - `worthless`: the form is no smaller than the original, so the original is sent. It stays so for these bytes.
 * - `unreadable`: the bytes are no picture that is taken (broken, animated, too many pixels, another format than they say). It stays so for these bytes.
 * - `blocked`: the domain's number of the day is spent.
 * - `failed`: it took too long, too much memory, or the encoder died. It may work later, and is not tried at once again.
 * - `absent`: this host has no encoder.
 */
export type ImageMade =
  | { readonly kind: "made"; readonly body: Uint8Array }
  | { readonly kind: "worthless" }
  | { readonly kind: "unreadable"; readonly reason: string }
  | { readonly kind: "blocked" }
  | { readonly kind: "failed"; readonly reason: string }
  | { readonly kind: "absent"; readonly reason: string };

/** Makes one form at a time, for all workers of the program. Never rejects, and always answers: what takes too long has `failed`. */
export type ImageEncoder = {
  readonly make: (job: ImageJob) => Promise<ImageMade>;
};
