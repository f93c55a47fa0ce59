// The demo's devlove: the document beside this file, with the domain and the backend of this run put in.

import document from "./devlove.json" with { type: "json" };

/** Returns the content of a devlove file, schema devlove/1. `backendUrl` has no trailing slash. */
export function demoDevlove({
  domain,
  backendUrl,
}: {
  readonly domain: string;
  readonly backendUrl: string;
}): string {
  const model = document.domains["demo.localhost"];
  const backend = { ...model.backend, urls: [backendUrl] };
  return `${JSON.stringify({ domains: { [domain]: { ...model, backend } } }, null, 2)}\n`;
}

/**
 * Returns a devlove for a folder of files that we know nothing of: its own 404 page if it has one, and the
 * backend for what is no file.
 */
export function plainDevlove({
  domain,
  backendUrl,
  notFound,
}: {
  readonly domain: string;
  readonly backendUrl: string;
  readonly notFound: string | null;
}): string {
  const site = {
    views_dir: ".",
    backend: { urls: [backendUrl] },
    ...(notFound === null ? {} : { not_found: notFound }),
  };
  return `${JSON.stringify({ domains: { [domain]: site } }, null, 2)}\n`;
}
