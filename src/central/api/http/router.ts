// Finds the endpoint for a method and a path, with or without the slash at its end. For a known path with
// another method it tells which methods there are.

import createRouter from "find-my-way";
import { customerApiPrefix } from "../../../wire/customer/shape.ts";
import type { Endpoint } from "./endpoint.ts";

export type Routed =
  | {
      readonly kind: "found";
      readonly endpoint: Endpoint;
      readonly params: Readonly<Record<string, string | undefined>>;
    }
  | { readonly kind: "no-path" }
  | { readonly kind: "no-method"; readonly allowed: readonly string[] };

export type Route = (method: string, url: string) => Routed;

/**
 * The longest path parameter. Names have at most 255 characters, up to 12 each when percent-encoded; longer
 * ones name nothing.
 */
const paramCharsMax = 3_072;

type Methods = Map<string, Endpoint>;

/** Makes the router. Throws if two endpoints have the same method and path. */
export function createRoute(endpoints: readonly Endpoint[]): Route {
  const router = createRouter({
    ignoreTrailingSlash: true,
    maxParamLength: paramCharsMax,
    caseSensitive: true,
  });
  const byPath = new Map<string, Methods>();
  for (const endpoint of endpoints) {
    const methods = byPath.get(endpoint.path) ?? new Map<string, Endpoint>();
    if (methods.has(endpoint.method))
      throw new TypeError(`${endpoint.method} ${endpoint.path} is there twice`);
    methods.set(endpoint.method, endpoint);
    byPath.set(endpoint.path, methods);
  }
  const found = new Map<unknown, Methods>();
  for (const [path, methods] of byPath) {
    // Each path has its own handler, which only names it and is never called.
    const handler = (): void => {};
    found.set(handler, methods);
    router.on("GET", customerApiPrefix + path, handler);
  }
  return (method, url) => {
    const match = router.find("GET", url);
    const methods = match === null ? undefined : found.get(match.handler);
    if (match === null || methods === undefined) return { kind: "no-path" };
    const endpoint = methods.get(method === "HEAD" ? "GET" : method);
    if (endpoint !== undefined) return { kind: "found", endpoint, params: match.params };
    const allowed = [...methods.keys()];
    return {
      kind: "no-method",
      allowed: allowed.includes("GET") ? ["HEAD", ...allowed] : allowed,
    };
  };
}
