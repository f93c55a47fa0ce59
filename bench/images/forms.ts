// What the encoder makes of photographs: bytes saved, processor time, and how alike the forms look, by the process that ships.

import sharp from "sharp";
import type { EncoderProcess } from "../../src/agent/images/encoder-child.ts";
import type { ImageForm } from "../../src/core/images/image-form.ts";
import { percentile, type Figures } from "../support/figures.ts";
import type { Photograph } from "./photographs.ts";
import { ssimOf, type Luminance } from "./ssim.ts";

/** The default of `images.quality`. */
const qualityDefault = 80;
/** `avif` and `webp` of one quality are meant to look alike: their medians may differ by so much. */
const alikeMost = 0.004;

const limits = {
  avif: { saved: 50, cpuMs: 100 },
  webp: { saved: 42, cpuMs: 150 },
} as const;
const ssimLeast = 0.92;

export type Made = {
  /** Percent of the originals' bytes, those that were not worth it among them. */
  readonly saved: number;
  readonly cpuMs: readonly number[];
  readonly ssim: readonly number[];
  readonly worthless: number;
};

/** The default quality with its limits, then others, of which both formats are compared. */
export async function measureForms(
  encoder: EncoderProcess,
  photos: readonly Photograph[],
  figures: Figures,
): Promise<void> {
  const pixels = await Promise.all(photos.map(async ({ bytes }) => luminanceOf(bytes)));
  figures.head(`${photos.length} photographs at quality ${qualityDefault}`);
  for (const form of ["avif", "webp"] as const) {
    const made = await makeAll(encoder, { photos, pixels, form, quality: qualityDefault });
    const { saved, cpuMs } = limits[form];
    figures.add(
      `${form}, bytes saved`,
      made.saved,
      "%",
      { least: saved },
      `${made.worthless} not worth it`,
    );
    figures.add(`${form}, SSIM, the worst`, 1_000 * percentile(made.ssim, 0), "/1000", {
      least: 1_000 * ssimLeast,
    });
    figures.add(`${form}, SSIM, the median`, 1_000 * percentile(made.ssim, 0.5), "/1000");
    const mean = made.cpuMs.reduce((sum, ms) => sum + ms, 0) / made.cpuMs.length;
    const worst = percentile(made.cpuMs, 1);
    figures.add(
      `${form}, processor time of one`,
      mean,
      "ms",
      { most: cpuMs },
      `${Math.round(worst)} ms at most`,
    );
  }
  const some = photos.filter((_, no) => (no * 79) % 200 < 40);
  const theirs = pixels.filter((_, no) => (no * 79) % 200 < 40);
  figures.head(`${some.length} of them at other qualities: do both formats look alike?`);
  for (const quality of [40, 60, 70, 90]) {
    const of = async (form: "avif" | "webp"): Promise<Made> =>
      makeAll(encoder, { photos: some, pixels: theirs, form, quality });
    const [avif, webp] = [await of("avif"), await of("webp")];
    const [one, other] = [avif, webp].map(({ ssim }) => percentile(ssim, 0.5));
    const saved = `saved ${avif.saved.toFixed(1)} % and ${webp.saved.toFixed(1)} %, worst ${percentile(avif.ssim, 0).toFixed(3)} and ${percentile(webp.ssim, 0).toFixed(3)}`;
    const apart = Math.abs((one ?? 0) - (other ?? 0)) * 1_000;
    figures.add(
      `quality ${quality}: medians of SSIM apart`,
      apart,
      "/1000",
      { most: alikeMost * 1_000 },
      saved,
    );
  }
}

type All = {
  readonly photos: readonly Photograph[];
  readonly pixels: readonly Luminance[];
  readonly form: ImageForm;
  readonly quality: number;
};

/** What was not worth it is sent as it is: it saves nothing and looks the same, and is left out of the medians. */
async function makeAll(
  encoder: EncoderProcess,
  { photos, pixels, form, quality }: All,
): Promise<Made> {
  let [before, after, worthless] = [0, 0, 0];
  const cpuMs: number[] = [];
  const ssim: number[] = [];
  for (const [no, { name, bytes: source }] of photos.entries()) {
    const { outcome, cpuMs: took } = await encoder.encode({
      kind: "encode",
      source,
      form,
      quality,
    });
    before += source.length;
    if (took !== undefined) cpuMs.push(took);
    if (outcome.kind === "worthless") {
      worthless += 1;
      after += source.length;
      continue;
    }
    if (outcome.kind !== "made") throw new Error(`${name}: ${JSON.stringify(outcome)}`);
    after += outcome.body.length;
    const original = pixels[no];
    if (original !== undefined) ssim.push(ssimOf(original, await luminanceOf(outcome.body)));
  }
  return { saved: 100 * (1 - after / before), cpuMs, ssim, worthless };
}

async function luminanceOf(bytes: Uint8Array): Promise<Luminance> {
  const { data, info } = await sharp(bytes)
    .removeAlpha()
    .toColourspace("b-w")
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { data, width: info.width, height: info.height };
}
