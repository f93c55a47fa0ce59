// What the main thread asks a judging thread, one question at a time, and what it is answered.

import type { Sha256 } from "../../core/ids.ts";
import type { DevloveContext, DevloveValidation } from "../../wire/devlove-validate.ts";
import type { ManifestsCompared } from "../../wire/manifest-changes.ts";
import type { ManifestVerdict } from "../../wire/manifest-judgement.ts";

export type DevloveQuestion = {
  readonly schema: string;
  readonly content: string;
  /** The context without what cannot be posted to a thread. */
  readonly context: Omit<DevloveContext, "backendGuard">;
};

export type Question =
  | { readonly op: "manifest"; readonly bytes: Uint8Array }
  | {
      readonly op: "path";
      readonly bytes: Uint8Array;
      readonly sha256: Sha256;
      readonly size: number;
    }
  /** What the manifest changes against the one before; undefined: there was none. */
  | {
      readonly op: "changes";
      readonly bytes: Uint8Array;
      readonly before: Uint8Array | undefined;
    }
  | ({ readonly op: "devlove" } & DevloveQuestion);

export type Verdicts = {
  readonly manifest: ManifestVerdict;
  readonly path: string | undefined;
  readonly changes: ManifestsCompared;
  readonly devlove: DevloveValidation;
};
