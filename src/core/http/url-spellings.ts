// The spellings under which one URL may stand in the index: static files under their names, generated assets
// under what the visitor's client sent. Clients differ in what they percent-encode and how.

import { percentDecoded } from "../patterns/index-schema.ts";

type Encode = (text: string) => string;

/** Applies `encode` to each character; an escape that is there already stays, in upper case. */
const encoder =
  (encode: Encode): Encode =>
  (text) =>
    text.replaceAll(/%[0-9a-f]{2}|[^]/giu, (one) =>
      /^%../.test(one) ? one.toUpperCase() : encode(one),
    );

const asIs: Encode = (text) => text;
const asEncodeUri = encoder(encodeURI);
/** Encodes by RFC 3986 to the letter, as most libraries do. */
const asLibraries = encoder((one) => (/[!'()]/.test(one) ? hexOf(one) : encodeURI(one)));
/** Encodes by the URL Standard: characters that separate nothing stay. */
const asBrowsers = encoder((one) => (/[%[\]|]/.test(one) ? one : encodeURI(one)));
const asBrowsersQueries = encoder((one) => {
  if (one === "'") return hexOf(one);
  return /[%[\]|^`{}]/.test(one) ? one : encodeURI(one);
});
/** The encodings of a name or a value: as scripts do it, as most libraries do it, as forms do it. */
const asParts = [/(?!)/, /[!'()]/, /[!'()~]/].map((more) =>
  encoder((one) => (more.test(one) ? hexOf(one) : encodeURIComponent(one))),
);

/** Returns a URL as it was given, as clients would send it, and as the file would be called; each once. */
export function urlSpellings(url: string): string[] {
  const [, path = "", query] = /^([^?]*)(?:\?(.*))?$/s.exec(url) ?? [];
  const paths = pathSpellings(path);
  if (query === undefined) return paths;
  return paths.flatMap((one) => querySpellings(query).map((asked) => `${one}?${asked}`));
}

/** Returns a path as it was given, as clients would send it, and as the file would be called; each once. */
export function pathSpellings(path: string): string[] {
  const encoders = [asIs, asEncodeUri, asLibraries, asBrowsers, fileName];
  return inBothCases(forms(path).flatMap((form) => encoders.map((encode) => encode(form))));
}

/**
 * Returns one or several parameters as clients would send them. No request holds a blank, and forms send a
 * plus for it.
 */
export function querySpellings(query: string): string[] {
  const wholes = [asIs, asEncodeUri, asLibraries, asBrowsersQueries];
  const encoders = [...wholes, ...asParts.map(eachPart)];
  const sent = forms(query)
    .flatMap((form) => [form, form.replaceAll("+", " "), plainQuery(form)])
    .flatMap((meant) => encoders.map((encode) => encode(meant)))
    .flatMap((one) => [one, one.replaceAll("%20", "+")]);
  const possible = inBothCases(sent).filter((one) => !one.includes(" "));
  return possible.length === 0 ? [query] : possible;
}

/**
 * Returns the text as given and composed: most systems write composed letters, and macOS names its files with
 * decomposed ones.
 */
function forms(text: string): string[] {
  const given = text.toWellFormed();
  return unique([given, given.normalize("NFC")]);
}

/** Decodes a path to a file name, except for encoded slashes, which name no file. */
function fileName(path: string): string {
  return path
    .split(/(%2f)/i)
    .map((part, at) => (at % 2 === 1 ? part : percentDecoded(part)))
    .join("");
}

/** Decodes a query unless that would make another query of it. */
function plainQuery(query: string): string {
  return /%(?:2[356b]|3d)/i.test(query) ? query : percentDecoded(query);
}

/** Adds each text with its escapes in lower case: some applications write their links so, WordPress for one, and browsers leave them. */
function inBothCases(texts: readonly string[]): string[] {
  return unique(
    texts.flatMap((one) => [one, one.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())]),
  );
}

/** Encodes name and value of each parameter; the first equals sign ends the name. */
const eachPart =
  (encode: Encode): Encode =>
  (query) =>
    query
      .split("&")
      .map((parameter) => parameter.split(/=(.*)/s, 2).map(encode).join("="))
      .join("&");

const hexOf = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase()}`;

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];
