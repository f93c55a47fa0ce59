// The filter of the logs page, as it stands in the address. Pure.

import { at, withQuery } from "./api.ts";

export const filterFields = [
  ["status", "Status", "404 or 5xx"],
  ["method", "Method", "GET"],
  ["path", "Path has", "/blog"],
  ["path_is", "Path is", "/blog/post.html"],
  ["cache", "Cache", ""],
  ["verdict", "Verdict", "allow, block, limit or refused"],
  ["reason", "Reason", "bad-set"],
  ["bot", "Bot", "Googlebot"],
  ["address", "Address", "192.0.2.7 or 192.0.2.0/24"],
  ["id", "Request id", ""],
] as const;

export type FilterName = (typeof filterFields)[number][0];
export type Filter = Readonly<Partial<Record<FilterName | "since" | "until", string>>>;

export function filterOf(query: URLSearchParams): Filter {
  const names = [...filterFields.map(([name]) => name), "since", "until"] as const;
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name);
      return value === null || value === "" ? [] : [[name, value]];
    }),
  );
}

/** What is meant by a path that somebody pasted: that of a URL, without its query. */
export function pathMeant(text: string): string {
  const path = /^https?:\/\/[^/?#]*/i.test(text) ? text.replace(/^https?:\/\/[^/?#]*/i, "") : text;
  const plain = path.replace(/[?#].*$/s, "");
  return text === "" || plain !== "" ? plain : "/";
}

export function requestsPath(domain: string, filter: Filter, limit: number): string {
  return withQuery(at`/requests/${domain}/`, { ...filter, limit });
}
