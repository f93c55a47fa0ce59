// Makes one form of one picture, in the encoder process. What it is given may be anything that an origin sent.
//
// Bytes are looked at before a decoder sees them (core/images/picture-head.ts), and a decoder has to find the same format in them. All other decoders of libvips are
// blocked. What comes out is encoded from pixels: nothing that stood in the source beside its pixels (positions, comments, profiles, other files) is in it.

import type sharpLibrary from "sharp";
import type { Sharp } from "sharp";
import { messageOf } from "../../core/faults.ts";
import { readImageForm, type ImageWish } from "../../core/images/image-form.ts";
import { imagePixelsMax, savesEnough } from "../../core/images/image-limits.ts";
import { avifQuality } from "../../core/images/image-quality.ts";
import {
  pixelsFault,
  readPictureHead,
  type PictureFormat,
} from "../../core/images/picture-head.ts";
import type { EncodeJob, EncodeOutcome } from "./encoder-messages.ts";
import { webpWithoutExif } from "./webp-exif.ts";

export type PictureLibrary = typeof sharpLibrary;

/** Effort of AVIF, 0 to 9. Effort 1 saves 3 % more of the bytes and takes three times as long (`npm run bench -- images`). */
const avifEffort = 0;
/** Effort of WebP, 0 to 6. */
const webpEffort = 4;
/** Colour at the full resolution takes half as much memory again: 900 MiB for the largest pictures. */
const fullColourPixelsMax = 12_000_000;
/** The level of deflate. */
const pngEffort = 9;

const loaders = [
  "VipsForeignLoadJpegBuffer",
  "VipsForeignLoadPngBuffer",
  "VipsForeignLoadWebpBuffer",
  "VipsForeignLoadHeifBuffer",
];

/** Lets the library use one thread, no cache and four decoders. Called once in a process. */
export function restrictLibrary(library: PictureLibrary): void {
  library.concurrency(1);
  library.cache(false);
  library.block({ operation: ["VipsForeignLoad"] });
  library.unblock({ operation: loaders });
}

/** Never rejects. */
export async function makePicture(
  library: PictureLibrary,
  { source, form, quality }: EncodeJob,
): Promise<EncodeOutcome> {
  const wish = readImageForm(form);
  if (wish === undefined) return { kind: "failed", reason: `${form} is no form` };
  const head = readPictureHead(source);
  if (head.kind === "refused") return { kind: "unreadable", reason: head.reason };
  try {
    const read = library(head.format === "webp" ? webpWithoutExif(source) : source, {
      failOn: "error",
      limitInputPixels: imagePixelsMax,
      sequentialRead: true,
    });
    const facts = await read.metadata();
    const fault = faultOf(head.format, facts);
    if (fault !== undefined) return { kind: "unreadable", reason: fault };
    const { width = facts.width } = wish;
    const narrows = width < facts.autoOrient.width;
    if (wish.format === "same" && !narrows) return { kind: "worthless" };
    const upright = read.autoOrient();
    const sized = narrows ? upright.resize({ width }) : upright;
    const isSubsampled =
      facts.chromaSubsampling?.startsWith("4:2:0") === true ||
      (facts.width * facts.height > fullColourPixelsMax && !narrows);
    const body = await encoded(sized.toColourspace(isGrey(facts.space) ? "b-w" : "srgb"), {
      format: wish.format === "same" ? head.format : wish.format,
      quality,
      isSubsampled,
    }).toBuffer();
    return savesEnough(source.length, body.length) ? { kind: "made", body } : { kind: "worthless" };
  } catch (error) {
    return failureOf(messageOf(error));
  }
}

type Facts = Awaited<ReturnType<Sharp["metadata"]>>;

const isGrey = (space: string): boolean => space === "b-w" || space === "grey16";

const namesOfFormat: Readonly<Record<PictureFormat, string>> = {
  jpeg: "jpeg",
  png: "png",
  webp: "webp",
  avif: "heif",
};

/** Says why a picture is not taken, by what the decoder says of it. */
function faultOf(format: PictureFormat, facts: Facts): string | undefined {
  if (facts.format !== namesOfFormat[format] && facts.format !== format)
    return `says that it is ${format}, and the decoder finds ${facts.format}`;
  if (format === "avif" && facts.compression !== "av1")
    return `says that it is avif, and its pictures are ${facts.compression ?? "of no known coding"}`;
  if ((facts.pages ?? 1) > 1) return "has several pictures";
  return pixelsFault(facts.width, facts.height);
}

type Encoding = {
  readonly format: Exclude<ImageWish["format"], "same"> | PictureFormat;
  readonly quality: number;
  /** Whether the source has colour at half the resolution, as most JPEGs; more cannot be had of it then. */
  readonly isSubsampled: boolean;
};

function encoded(picture: Sharp, { format, quality, isSubsampled }: Encoding): Sharp {
  switch (format) {
    case "avif":
      return picture.avif({
        quality: avifQuality(quality),
        effort: avifEffort,
        tune: "ssim",
        chromaSubsampling: isSubsampled ? "4:2:0" : "4:4:4",
      });
    case "webp":
      return picture.webp({ quality, effort: webpEffort });
    case "jpeg":
      return picture.jpeg({ quality, mozjpeg: true });
    case "png":
      return picture.png({ compressionLevel: pngEffort });
    default:
      return format satisfies never;
  }
}

const reasonMax = 200;

/** Tells what is the fault of the picture from what is not: too little memory, and an encoder that fails on pixels that were read. */
function failureOf(message: string): EncodeOutcome {
  const [line = ""] = message.split("\n");
  const reason = `cannot be made smaller: ${line.slice(0, reasonMax)}`;
  const isOurs =
    !/security limit/i.test(message) &&
    /out of memory|insufficient memory|allocat|save:|save_buffer|encoder plugin/i.test(message);
  return { kind: isOurs ? "failed" : "unreadable", reason };
}
