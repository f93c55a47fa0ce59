// What a worker and main say to each other of pictures.

import type { ImageJob, ImageMade } from "./image-encoder.ts";

export type ImageOrder = { readonly no: number; readonly job: ImageJob };
export type ImageAnswer = { readonly no: number; readonly made: ImageMade };

/** How long a picture waits for its turn in main. */
export const turnWaitMs = 60_000;
