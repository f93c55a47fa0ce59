// `/analytics/{domain}/images/`: how many variants of a domain's images are made and held back, by day.

import { Type, type Static } from "typebox";
import { variantDaysKept } from "../../core/images/variant-days.ts";
import { open, shape } from "./shape.ts";

export const ImageVariantsDay = open(
  {
    day: Type.String({ description: "In UTC, YYYY-MM-DD.", examples: ["2026-11-29"] }),
    made: Type.Number({
      description:
        "How many variants all hosts made. What was tried and came to nothing smaller is not among them, and is taken of images.variants_per_day_max all the same.",
    }),
    held_back: Type.Number({
      description:
        "At least so many variants were not made because their host had tried images.variants_per_day_max of them. Visitors got the originals. A host that has used up its number does not count each request.",
    }),
  },
  { title: "ImageVariantsDay" },
);
export type ImageVariantsDay = Static<typeof ImageVariantsDay>;

export const ImageVariants = open(
  {
    domain: Type.String(),
    today: ImageVariantsDay,
    days: Type.Array(ImageVariantsDay, {
      description: `Today and the days before it, newest first; at most ${variantDaysKept} of them are kept. A day on which nothing was made or held back is left out.`,
    }),
  },
  {
    title: "ImageVariants",
    description:
      "Sums over all hosts of the domain, by what they reported until now: they report every 30 seconds. Those of sub-domains count under their main domain.",
    examples: [
      {
        domain: "www.example.com",
        today: { day: "2026-11-29", made: 412, held_back: 0 },
        days: [
          { day: "2026-11-29", made: 412, held_back: 0 },
          { day: "2026-11-28", made: 20_000, held_back: 318 },
        ],
      },
    ],
  },
);
export type ImageVariants = Static<typeof ImageVariants>;
export const imageVariantsShape = shape(ImageVariants);
