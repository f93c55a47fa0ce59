// Which media types of pictures a visitor takes, by Accept (RFC 9110 §12.5.1).

import { memberWeight } from "../http/content-coding.ts";
import { listMembers, memberParts } from "../http/http-fields.ts";
import type { ImageFormat } from "./image-form.ts";

/** The weight of each type and range that Accept names, in lower case; a type that is named twice has the lower one. */
export type AcceptedImages = ReadonlyMap<string, number>;

const ofPictures = /^(?:image\/[!#$%&'*+.^_`|~0-9a-z-]+|\*\/\*)$/;

export function acceptedImages(accept: string | undefined): AcceptedImages {
  const weights = new Map<string, number>();
  for (const member of listMembers((accept ?? "").toLowerCase())) {
    const [type = "", ...parameters] = memberParts(member);
    if (!ofPictures.test(type)) continue;
    weights.set(type, Math.min(weights.get(type) ?? 1, memberWeight(parameters)));
  }
  return weights;
}

/** Returns how much the visitor likes a media type of pictures, 0 to 1: by its name, else by a range that has it. */
export function weightOfType(accepted: AcceptedImages, type: string): number {
  return accepted.get(type) ?? accepted.get("image/*") ?? accepted.get("*/*") ?? 0;
}

/**
 * Returns those of `formats` that the visitor names and likes at least as much as the type of the original, best
 * first. `image/*` and any type at all are no word for a format: programs that read neither of them say so, too.
 */
export function likedFormats(
  accepted: AcceptedImages,
  formats: readonly ImageFormat[],
  original: string,
): readonly ImageFormat[] {
  const least = weightOfType(accepted, original);
  const weightOf = (format: ImageFormat): number => accepted.get(`image/${format}`) ?? 0;
  return formats
    .filter((format) => weightOf(format) > 0 && weightOf(format) >= least)
    .toSorted((a, b) => weightOf(b) - weightOf(a));
}
