// The width of a picture in its URL: `?width=640`, for the widths that a site lists.

import type { RequestTarget } from "../http/request-path.ts";

type Target = Pick<RequestTarget, "rawPath" | "rawQuery">;

export type WidthReader = {
  /** Returns the target of a request without the width, where it reads a picture; see withoutWidth. */
  readonly read: (sent: RequestTarget, method: string) => RequestTarget;
  /** Returns the targets under which a response may be stored: before a width was listed, it was a parameter as any other. */
  readonly spellings: (target: Target) => readonly Target[];
};

export function widthReader({
  optimize,
  widths: listed,
}: {
  readonly optimize: boolean;
  readonly widths: readonly number[];
}): WidthReader {
  if (!optimize || listed.length === 0)
    return { read: (sent) => sent, spellings: (target) => [target] };
  const widths = new Set(listed);
  const isRead = (method: string): boolean => method === "GET" || method === "HEAD";
  return {
    read: (sent, method) => (isRead(method) ? withoutWidth(sent, widths) : sent),
    spellings: (target) => {
      const picture = withoutWidth(target, widths);
      return picture === target ? [target] : [picture, target];
    },
  };
}

const ofPicture = /\.(?:avif|jpe?g|png|webp)$/i;

/**
 * Takes the parameter off a target that names a picture, so that all widths are one URL to the cache and to the origin. A
 * target that says it twice, or of a width that is not listed, is returned as it is.
 */
export function withoutWidth<Sent extends Target>(
  target: Sent,
  widths: ReadonlySet<number>,
): Sent & Pick<RequestTarget, "pictureWidth"> {
  const { rawPath, rawQuery } = target;
  if (!rawQuery.includes("width=") || !ofPicture.test(rawPath)) return target;
  const parameters = rawQuery.split("&");
  const said = parameters.filter((parameter) => parameter.startsWith("width="));
  const [only = ""] = said;
  const digits = only.slice("width=".length);
  if (said.length !== 1 || !/^[1-9]\d{0,4}$/.test(digits)) return target;
  const pictureWidth = Number(digits);
  if (!widths.has(pictureWidth)) return target;
  const rest = parameters.filter((parameter) => parameter !== only).join("&");
  return { ...target, rawQuery: rest, pictureWidth };
}
