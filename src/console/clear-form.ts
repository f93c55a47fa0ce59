// What the form of a clear makes: the body of the request. Pure.

export type ClearKind = "urls" | "prefixes" | "tags" | "hosts" | "pattern" | "everything";

type KindWords = {
  readonly title: string;
  readonly label: string;
  readonly hint: string;
  /** One line of the form. */
  readonly one: string;
};

export const kinds: Readonly<Record<ClearKind, KindWords>> = {
  urls: {
    title: "Pages",
    label: "URLs or paths, one a line",
    hint: "Each is cleared exactly, with the query as it stands here: /blog/post.html or https://www.example.com/search?q=shoes",
    one: "page",
  },
  prefixes: {
    title: "Folders",
    label: "Paths, one a line",
    hint: "/css clears /css and everything below it, with any query, but not /cssfoo",
    one: "folder",
  },
  tags: {
    title: "Tags",
    label: "Tags, one a line",
    hint: "The tags that your application gave its pages, in Cache-Tag, Surrogate-Key or xkey",
    one: "tag",
  },
  hosts: {
    title: "Hosts",
    label: "Host names, one a line",
    hint: "Everything of each host",
    one: "host",
  },
  pattern: {
    title: "Pattern",
    label: "Full-text patterns, one a line",
    hint: 'path:products finds entries whose path has the word; path:"summer sale" the words beside each other; path:shoe* what begins so; kind:image NOT path:logo',
    one: "pattern",
  },
  everything: { title: "Everything", label: "", hint: "", one: "" },
};

export function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Makes the body. Undefined while nothing is named. */
export function bodyOf(
  kind: ClearKind,
  text: string,
  isSoft: boolean,
): Readonly<Record<string, unknown>> | undefined {
  const soft = isSoft ? { soft: true } : {};
  if (kind === "everything") return { everything: true, ...soft };
  const lines = linesOf(text);
  if (lines.length === 0) return undefined;
  return { [kind === "pattern" ? "url_path_patterns" : kind]: lines, ...soft };
}
