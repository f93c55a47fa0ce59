// The forms in which a picture is sent: another format, another width, or both.

/** The formats that are made, the smallest first. */
export const imageFormats = ["avif", "webp"] as const;
export type ImageFormat = (typeof imageFormats)[number];

/** The most widths that a site lists. */
export const imageWidthsMax = 16;
/** The most forms of one picture: each format in its own width, and each and the original's in every listed one. */
export const imageFormsMax = imageFormats.length + imageWidthsMax * (imageFormats.length + 1);

/**
 * A form as one word, which the index of the cache keeps: `avif`, `webp`, `avif-640`, `webp-640`, or `same-640` for a
 * picture in its own format at another width. Widths are pixels.
 */
export type ImageForm = ImageFormat | `${ImageFormat | "same"}-${number}`;

/** What a form says, taken apart. */
export type ImageWish = {
  /** `same`: the format of the original. */
  readonly format: ImageFormat | "same";
  /** Pixels; undefined: as wide as the original. A narrower original is never widened. */
  readonly width: number | undefined;
};

const formWord = /^(avif|webp|same)(?:-([1-9]\d{0,4}))?$/;

/** Undefined: the word names no form. */
export function readImageForm(word: string): ImageWish | undefined {
  const [, format, digits] = formWord.exec(word) ?? [];
  if (format !== "avif" && format !== "webp" && format !== "same") return undefined;
  if (format === "same" && digits === undefined) return undefined;
  return { format, width: digits === undefined ? undefined : Number(digits) };
}

/** Undefined: the original, as it is. */
export function imageForm({ format, width }: ImageWish): ImageForm | undefined {
  if (width !== undefined) return `${format}-${width}`;
  return format === "same" ? undefined : format;
}
