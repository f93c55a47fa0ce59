// Which page is shown: the address's fragment, as `#/d/www.example.com/traffic?since=…`. Nothing of it is sent to central but in questions of the API.

import { useEffect, useState } from "preact/hooks";

export type Route = {
  /** The parts of the path, decoded. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
};

/** Returns the address of a page, for `href`. */
export function hrefTo(
  parts: readonly string[],
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") asked.set(name, String(value));
  const text = asked.toString();
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${text === "" ? "" : `?${text}`}`;
}

export function routeOf(fragment: string): Route {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").filter((part) => part !== "");
  return { parts: parts.map(decoded), query: new URLSearchParams(query) };
}

/** A part of an address that somebody wrote by hand may be no valid encoding: it is taken as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Goes to a page, as a click on a link does; `isSame` leaves no step behind for the browser's "back". */
export function goTo(href: string, isSame = false): void {
  if (isSame) {
    history.replaceState(null, "", href);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = href.slice(1);
}

export function useRoute(): Route {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const look = (): void => setFragment(location.hash);
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);
  return routeOf(fragment);
}
