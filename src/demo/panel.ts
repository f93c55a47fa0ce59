// What `npm start` shows when everything is ready: where it is, and what to try. Each suggestion works
// exactly as it is printed.

import type { DemoOptions } from "./options.ts";
import { demoDomain } from "./settings.ts";

export type DemoPlaces = {
  readonly central_url: string;
  readonly api_token: string;
  readonly username: string;
  readonly accelerator_url: string;
  readonly metrics_url: string;
  readonly deployment_site_id: number;
  readonly name16: string;
  readonly domain: string;
  readonly backend_url: string;
};

export function panel(
  places: DemoPlaces,
  { stateDir, siteDir, backendUrl }: Pick<DemoOptions, "stateDir" | "siteDir" | "backendUrl">,
  startedInMs: number,
): string {
  const api = `${places.central_url}/presentation-api/v1`;
  const site = places.accelerator_url;
  const auth = `-H 'Authorization: Token ${places.api_token}' -H 'Content-type: application/json'`;
  const isOwn = siteDir !== undefined || backendUrl !== undefined;
  // For a site that we do not know, the front page is the one page that is sure to be there.
  const page = isOwn ? `${site}/` : `${site}/generated/page/1.html`;
  const what = isOwn ? "everything" : "everything generated";
  const pattern = isOwn ? "kind:static OR kind:generated" : "kind:generated";
  const watch = siteDir === undefined ? `\n    caching, watched   ${site}/watch/` : "";
  // Otherwise somebody would see pages that are not from the origin he named, with nothing to say why.
  const files =
    backendUrl !== undefined && siteDir === undefined
      ? `
  The demo's own files lie over your backend: /, /watch/ and a few others are theirs, all else is your backend's.
  --site DIR puts a folder of yours in their place.
`
      : "";
  return `
  accel-agent is serving (${(startedInMs / 1_000).toFixed(1)} s)

    the site           ${site}${watch}
    console            ${places.central_url}/   (sign in with the token that stands below)
    customer API       ${api}/
    agent's status     ${places.metrics_url}
    ${backendUrl === undefined ? "demo backend      " : "your backend      "} ${places.backend_url}
    state and logs     ${stateDir}   (addresses and token: demo.json)
${files}
  Unreviewed bots may visit ${demoDomain}: the demo set the policy unknown_bots_can_access: true. Without a policy,
  curl, uptime checks and search engines would be blocked. Loopback is trusted as a proxy, so X-Forwarded-For plays any visitor.

  Try, in another terminal:

  1  ask for a page twice: the second answer is a hit
     curl -s -o /dev/null ${page}
     curl -s -o /dev/null -D - ${page} | grep -i cache-status

  2  clear ${what}, with a receipt of how much that was
     curl -s ${auth} \\
       -d '{"url_path_patterns": ["${pattern}"]}' ${api}/clear-accelerator-cache/${places.domain}/

  3  block a range: the answer comes when the agent has proved it; then be a visitor from it
     curl -s ${auth} \\
       -d '{"attach_to_bot": "unwelcome", "attach_to_domain": "${places.domain}"}' '${api}/mark-as-bad-bot/203.0.113.0_24/?wait=5'
     curl -si -H 'X-Forwarded-For: 203.0.113.7' ${site}/ | head -8

  4  see the request logs: a record is at central within a second
     sleep 1; curl -s ${auth} '${api}/incominglogs/?limit=5'

  Ctrl-C stops it; the next start goes on from here.
`;
}
