// What is said between main and the encoder process: one question at a time, and one answer.

import type { ImageForm } from "../../core/images/image-form.ts";

export type EncodeJob = {
  readonly kind: "encode";
  readonly source: Uint8Array;
  readonly form: ImageForm;
  /** 1 to 100. */
  readonly quality: number;
};

/** `open` asks whether the encoder can work at all. */
export type ToEncoder = { readonly kind: "open" } | EncodeJob;

/** What came of a picture. `failed`: another try may help. */
export type EncodeOutcome =
  | { readonly kind: "made"; readonly body: Uint8Array }
  | { readonly kind: "worthless" }
  | { readonly kind: "unreadable"; readonly reason: string }
  | { readonly kind: "failed"; readonly reason: string };

/** The libraries by name, with their versions. */
export type EncoderVersions = Readonly<Record<string, string>>;

export type FromEncoder =
  | { readonly kind: "opened"; readonly versions: EncoderVersions }
  | { readonly kind: "absent"; readonly reason: string }
  /** `cpuMs` is the processor time of the process for this picture. */
  | { readonly kind: "encoded"; readonly outcome: EncodeOutcome; readonly cpuMs: number };
