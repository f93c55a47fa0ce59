// Days of the variants of images as the traffic page shows them: one after the other without a gap, and today in words.

import type { ImageVariants } from "../wire/customer/image-variants.ts";
import { count } from "./words.ts";

const dayMs = 86_400_000;

export type ImageDays = {
  /** When each day (UTC) begins, in seconds since the epoch. */
  readonly times: readonly number[];
  readonly made: readonly number[];
  readonly heldBack: readonly number[];
};

/** Returns every day from the first that is kept until today, those without a variant as nothing. */
export function imageDays({ days, today }: ImageVariants): ImageDays {
  const known = new Map([...days, today].map((one) => [Date.parse(one.day), one] as const));
  const first = Math.min(...known.keys());
  const last = Math.max(...known.keys());
  const all = Array.from({ length: (last - first) / dayMs + 1 }, (_, no) => first + no * dayMs);
  return {
    times: all.map((ms) => ms / 1e3),
    made: all.map((ms) => known.get(ms)?.made ?? 0),
    heldBack: all.map((ms) => known.get(ms)?.held_back ?? 0),
  };
}

/** Says what became of today's images, in a sentence or two. */
export function todaysImages({ made, held_back: heldBack }: ImageVariants["today"]): string {
  const begun = `Today (UTC) ${made === 1 ? "1 variant was" : `${count(made)} variants were`} made.`;
  if (heldBack === 0) return begun;
  return `${begun} A host has used up its number of the day (images.variants_per_day_max): at least ${count(heldBack)} ${heldBack === 1 ? "variant was" : "variants were"} held back. Until 00:00 UTC visitors get the originals of pictures that have none yet.`;
}
