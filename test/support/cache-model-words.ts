// What the model check caches and clears: pages, patterns, and what a pattern means, said with string operations of its own. No FTS5, no code of core:
// where the two disagree, one of them is wrong.

export type Page = {
  readonly no: number;
  readonly domain: string;
  readonly host: string;
  readonly kind: "static" | "generated";
  readonly path: string;
  readonly query: string;
  /** The two types that its source may give it. */
  readonly mimes: readonly [string, string];
  /** Whether its source answers by language. */
  readonly varies: boolean;
};
type Text = Pick<Page, "kind" | "path" | "query"> & Partial<Pick<Page, "host">>;

const html = ["text/html", "application/xhtml+xml"] as const;
const png = ["image/png", "text/html"] as const;
const css = ["text/css", "text/plain"] as const;
const shapes: readonly Omit<Page, "no" | "domain" | "host">[] = [
  { kind: "generated", path: "/", query: "", mimes: html, varies: false },
  { kind: "generated", path: "/blog", query: "", mimes: html, varies: true },
  { kind: "generated", path: "/blog/", query: "", mimes: html, varies: false },
  { kind: "generated", path: "/blog/a", query: "", mimes: html, varies: false },
  { kind: "generated", path: "/blog/A", query: "", mimes: html, varies: false },
  { kind: "generated", path: "/blog/a", query: "page=2", mimes: html, varies: false },
  { kind: "generated", path: "/blog/a", query: "page=20&x=1", mimes: html, varies: false },
  { kind: "generated", path: "/img/a.png", query: "", mimes: png, varies: false },
  { kind: "generated", path: "/img/%C3%A9.png", query: "", mimes: png, varies: false },
  { kind: "generated", path: "/%E4%B8%AD%E6%96%87/xend", query: "", mimes: html, varies: false },
  { kind: "static", path: "index.html", query: "", mimes: html, varies: false },
  { kind: "static", path: "css/a.css", query: "", mimes: css, varies: false },
  { kind: "static", path: "img/\u00e9.png", query: "", mimes: png, varies: false },
];

/** Two customers, one of them with a second host. */
export const sites = [
  { domain: "a.test", host: "a.test" },
  { domain: "a.test", host: "sub.a.test" },
  { domain: "b.test", host: "b.test" },
] as const;

export const pages: readonly Page[] = sites.flatMap((site, at) =>
  shapes.map((shape, no) => ({ ...shape, ...site, no: at * shapes.length + no })),
);

type Column = "path" | "query" | "mime" | "kind" | "url" | "dir" | "ext" | "param";
type Words = Readonly<Record<Column, readonly string[]>>;

/** Every byte that is none of a-y and 0-9 as z and two digits. */
function exact(text: string): string {
  return Array.from(Buffer.from(text), (byte) =>
    (byte >= 97 && byte < 122) || (byte >= 48 && byte < 58)
      ? String.fromCharCode(byte)
      : `z${byte < 16 ? "0" : ""}${byte.toString(16)}`,
  ).join("");
}

const plain = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .split(/[^a-z0-9\u00e9\u4e2d\u6587]+/)
    .filter((word) => word !== "");
const urlPathOf = ({ kind, path }: Text): string => (kind === "static" ? `/${path}` : path);
const urlOf = (text: Text): string => urlPathOf(text) + (text.query === "" ? "" : `?${text.query}`);
const dirOf = (text: Text): string => urlPathOf(text).replace(/[^/]*$/, "");
const extOf = (text: Text): string => /\.([^./]*)$/.exec(urlPathOf(text))?.[1] ?? "";

function wordsOf(text: Text, mime: string): Words {
  const path = text.kind === "static" ? text.path : decodeURIComponent(text.path);
  const exacts = (...texts: readonly string[]): readonly string[] =>
    texts.filter((one) => one !== "").map(exact);
  return {
    path: [...plain(path).map((word) => (/^x+end$/.test(word) ? `x${word}` : word)), "xend"],
    query: plain(text.query),
    mime: plain(mime),
    kind: [text.kind],
    url: exacts(urlOf(text)),
    dir: exacts(dirOf(text)),
    ext: exacts(extOf(text)),
    param: exacts(...text.query.split("&")),
  };
}

/** The tags that a source gives with a media type, as the index has them. */
export const tagsFor = (mime: string): string => `${exact(mime)} common`;

export type Pattern = {
  readonly fts: string;
  /** A URL, prefix, tag or host: its patterns are given as a group, and `fts` is not. */
  readonly group?: { readonly host: string | null; readonly patterns: readonly string[] | null };
  readonly means: (text: Text, mime: string) => boolean;
};

type Term = {
  readonly columns?: readonly Column[];
  readonly words: readonly string[];
  readonly first?: boolean;
  readonly prefix?: boolean;
};

function term({ columns, words, first = false, prefix = false }: Term): Pattern {
  const [only] = columns ?? [];
  const named = columns?.length === 1 ? only : `{${columns?.join(" ")}}`;
  const fts = `${columns === undefined ? "" : `${named}:`}${first ? "^" : ""}"${words.join(" ")}"${prefix ? "*" : ""}`;
  const standsAt = (found: readonly string[], at: number): boolean =>
    words.every((word, i) =>
      prefix && i === words.length - 1 ? found[at + i]?.startsWith(word) : found[at + i] === word,
    );
  return {
    fts,
    means: (text, mime) =>
      Object.entries(wordsOf(text, mime)).some(
        ([column, found]) =>
          (columns === undefined || columns.some((name) => name === column)) &&
          (first ? standsAt(found, 0) : found.some((_, at) => standsAt(found, at))),
      ),
  };
}

const said = (fts: string, means: Pattern["means"]): Pattern => ({ fts, means });

/** What an entry has one of. */
type Only = { readonly column: string; readonly text: string; readonly prefix?: boolean };
type Atom = Pattern & { readonly only?: Only };

/** An entry that has the one cannot have the other. */
function exclude({ only: one }: Atom, { only: other }: Atom): boolean {
  if (one === undefined || other === undefined || one.column !== other.column) return false;
  const begins = (short: Only, long: Only): boolean =>
    short.prefix === true ? long.text.startsWith(short.text) : long.text === short.text;
  return !begins(one, other) && !begins(other, one);
}

/** Words, phrases and recipes; the recipes mean what a customer means by them. */
const atoms: readonly Atom[] = [
  term({ columns: ["path"], words: ["blog"] }),
  term({ columns: ["path"], words: ["blog"], first: true }),
  term({ columns: ["path"], words: ["blog", "xend"], first: true }),
  term({ columns: ["path"], words: ["blog", "a"] }),
  term({ columns: ["path"], words: ["im"], prefix: true }),
  term({ columns: ["path"], words: ["\u00e9"] }),
  term({ columns: ["path"], words: ["\u4e2d\u6587"] }),
  term({ columns: ["path"], words: ["xxend", "xend"] }),
  term({ columns: ["path", "query"], words: ["a"] }),
  term({ columns: ["query"], words: ["page", "20"], prefix: true }),
  term({ columns: ["query"], words: ["page", "20", "x"] }),
  term({ columns: ["mime"], words: ["text"], first: true }),
  {
    ...term({ columns: ["kind"], words: ["generated"] }),
    only: { column: "kind", text: "generated" },
  },
  term({ words: ["a", "png"] }),
  term({ words: ["html"] }),
  term({ words: ["nowhere"] }),
  said("path:^xend", ({ path }) => path === "/"),
  said('mime:"image/png"', (_, mime) => mime === "image/png"),
  said("kind:static OR kind:generated", () => true),
  {
    ...said("kind:static", ({ kind }) => kind === "static"),
    only: { column: "kind", text: "static" },
  },
  {
    ...said(`url:${exact("/blog/a")}`, (text) => urlOf(text) === "/blog/a"),
    only: { column: "url", text: "/blog/a" },
  },
  {
    ...said(`url:${exact("/blog/A")}`, (text) => urlOf(text) === "/blog/A"),
    only: { column: "url", text: "/blog/A" },
  },
  {
    ...said(`url:${exact("/blog/a?page=2")}`, (text) => urlOf(text) === "/blog/a?page=2"),
    only: { column: "url", text: "/blog/a?page=2" },
  },
  {
    ...said(`url:${exact("/img/\u00e9.png")}`, (text) => urlOf(text) === "/img/\u00e9.png"),
    only: { column: "url", text: "/img/\u00e9.png" },
  },
  {
    ...said(`url:${exact("/blog/")}*`, (text) => urlOf(text).startsWith("/blog/")),
    only: { column: "url", text: "/blog/", prefix: true },
  },
  {
    ...said(`url:${exact("/img/")}*`, (text) => urlOf(text).startsWith("/img/")),
    only: { column: "url", text: "/img/", prefix: true },
  },
  {
    ...said(`dir:${exact("/blog/")}`, (text) => dirOf(text) === "/blog/"),
    only: { column: "dir", text: "/blog/" },
  },
  {
    ...said(`dir:${exact("/")}`, (text) => dirOf(text) === "/"),
    only: { column: "dir", text: "/" },
  },
  {
    ...said(`ext:${exact("png")}`, (text) => urlPathOf(text).endsWith(".png")),
    only: { column: "ext", text: "png" },
  },
  said(`tag:${exact("text/html")}`, (_, mime) => mime === "text/html"),
  said(`tag:${exact("image/")}*`, (_, mime) => mime.startsWith("image/")),
  said(`param:${exact("page=2")}`, ({ query }) => query.split("&").includes("page=2")),
];

/** Any number names a pattern: a part of the language, or two joined; what no entry can have both of is asked for by OR, as the message of its refusal says. */
export function patternNo(no: number): Pattern {
  const at = (place: number): Atom => atoms[place % atoms.length] ?? term({ words: ["blog"] });
  const left = at(no);
  const right = at(Math.floor(no / atoms.length));
  const joined = Math.floor(no / atoms.length ** 2) % 8;
  switch (joined === 0 && exclude(left, right) ? 1 : joined) {
    case 0:
      return said(
        `(${left.fts}) AND (${right.fts})`,
        (text, mime) => left.means(text, mime) && right.means(text, mime),
      );
    case 1:
      return said(
        `(${left.fts}) OR (${right.fts})`,
        (text, mime) => left.means(text, mime) || right.means(text, mime),
      );
    case 2:
      return said(
        `(${left.fts}) NOT (${right.fts})`,
        (text, mime) => left.means(text, mime) && !right.means(text, mime),
      );
    default:
      return left;
  }
}

const hostNames = [null, "a.test", "sub.a.test", "b.test"] as const;

/** Any number names a URL, a prefix of whole segments, a tag or a host, of one host or of all. */
export function namedNo(no: number): Pattern {
  const host = hostNames[no % hostNames.length] ?? null;
  const page = pages[Math.floor(no / 4) % pages.length];
  const url = page === undefined ? "/" : urlOf(page);
  const [path = "/"] = url.split("?");
  const named = (
    patterns: readonly string[] | null,
    means: (text: Text, mime: string) => boolean,
  ): Pattern => ({
    fts: "",
    group: { host, patterns },
    means: (text, mime) => (host === null || text.host === host) && means(text, mime),
  });
  switch (Math.floor(no / 256) % 4) {
    case 0:
      return named([`url:${exact(url)}`], (text) => urlOf(text) === url);
    case 1: {
      const prefix = /^\/[^/]*/.exec(path)?.[0] ?? "/";
      const patterns = [prefix, `${prefix}/`, `${prefix}?`].map((one) => `url:${exact(one)}`);
      const takes = (other: string): boolean =>
        other === prefix || other.startsWith(`${prefix}/`) || other.startsWith(`${prefix}?`);
      return named([patterns[0] ?? "", `${patterns[1]}*`, `${patterns[2]}*`], (text) =>
        takes(urlOf(text)),
      );
    }
    case 2:
      return no % 3 === 0
        ? named(["tag:common"], () => true)
        : named([`tag:${exact("text/html")}`], (_, mime) => mime === "text/html");
    default:
      return host === null
        ? named([`url:${exact(url)}`, "tag:nothing"], (text) => urlOf(text) === url)
        : named(null, () => true);
  }
}

export const patternKinds = atoms.length ** 2 * 8;
