// Reads a request target as what is looked up: RFC 9112 §3.2 forms, RFC 3986 §5.2.4 dot segments, one
// percent-decoding.

export type RequestTarget = {
  /** The path as sent, without the query: it is logged and forwarded. */
  readonly rawPath: string;
  /** The query without the question mark, "" if there is none. */
  readonly rawQuery: string;
  /** The width of a picture that was taken off the query, pixels; see images/picture-width.ts. */
  readonly pictureWidth?: number;
  /** Whether there is a question mark with nothing behind it: not every origin takes `/a?` for `/a`. */
  readonly hasLoneMark: boolean;
  /** Set by the absolute form only. */
  readonly authority: string | undefined;
};

/**
 * Parses origin-form and absolute-form. Returns undefined for anything else (asterisk-form is the caller's,
 * authority-form belongs to CONNECT).
 */
export function parseTarget(target: string): RequestTarget | undefined {
  let rest = target;
  let authority: string | undefined;
  const absolute = /^https?:\/\/([^/?#]*)/i.exec(target);
  if (absolute !== null) {
    authority = absolute[1];
    rest = target.slice(absolute[0].length);
    if (!rest.startsWith("/")) rest = `/${rest}`;
  }
  if (!rest.startsWith("/")) return undefined;
  const question = rest.indexOf("?");
  if (question < 0) return { rawPath: rest, rawQuery: "", hasLoneMark: false, authority };
  const rawQuery = rest.slice(question + 1);
  return { rawPath: rest.slice(0, question), rawQuery, hasLoneMark: rawQuery === "", authority };
}

/** Returns the same URL over HTTPS. A lone question mark is lost. */
export function httpsUrl(
  authority: string,
  target: Pick<RequestTarget, "rawPath" | "rawQuery" | "pictureWidth">,
): string {
  const query = askedQuery(target);
  return `https://${authority}${target.rawPath}${query === "" ? "" : `?${query}`}`;
}

/** Returns the query with the width that was taken off: for a visitor who is sent elsewhere. */
export function askedQuery({
  rawQuery,
  pictureWidth,
}: Pick<RequestTarget, "rawQuery" | "pictureWidth">): string {
  if (pictureWidth === undefined) return rawQuery;
  return `${rawQuery}${rawQuery === "" ? "" : "&"}width=${pictureWidth}`;
}

/** Returns path and query as an origin is asked for them. */
export function sentPath({
  rawPath,
  rawQuery,
  hasLoneMark,
}: Omit<RequestTarget, "authority">): string {
  return hasLoneMark || rawQuery !== "" ? `${rawPath}?${rawQuery}` : rawPath;
}

/** What makes a path another one when it is decoded: an encoded character, NUL, a segment that begins with a dot. */
const special = /%|\0|\/\./;

/**
 * Returns the decoded path below the root, without leading slash, NFC as sent, dot segments resolved. Returns
 * undefined if it cannot name a file: malformed percent-encoding or UTF-8, an encoded slash or NUL, a way
 * above the root.
 */
export function decodePath(rawPath: string): string | undefined {
  if (!special.test(rawPath)) return rawPath.slice(1);
  const segments: string[] = [];
  for (const raw of rawPath.slice(1).split("/")) {
    let segment: string;
    try {
      segment = decodeURIComponent(raw);
    } catch {
      return undefined;
    }
    if (segment.includes("/") || segment.includes("\0")) return undefined;
    if (segment === "..") {
      if (segments.length === 0) return undefined;
      segments.pop();
    } else if (segment !== ".") segments.push(segment);
  }
  // "a/." and "a/.." name directories: they keep their trailing slash.
  if (/(?:^|\/)(?:\.|%2e){1,2}$/i.test(rawPath) && segments.length > 0) segments.push("");
  return segments.join("/");
}

/** A segment that is empty or begins with a dot, but for an empty one at the end. */
const hiddenOrEmpty = /(?:^|\/)[./]/;

/**
 * Returns whether a decoded path may name a file. Empty segments name nothing. Hidden files are not for
 * visitors, except below /.well-known/ (RFC 8615).
 */
export function isServable(path: string): boolean {
  if (!hiddenOrEmpty.test(path)) return true;
  const segments = path.split("/");
  if (segments.at(-1) === "") segments.pop();
  return segments.every(
    (segment, at) =>
      segment !== "" && (!segment.startsWith(".") || (at === 0 && segment === ".well-known")),
  );
}
