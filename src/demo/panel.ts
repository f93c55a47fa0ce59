// What `npm start` shows when everything is ready: where it is, and three things to try.

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

export function panel(places: DemoPlaces, stateDir: string, startedInMs: number): string {
  const api = `${places.central_url}/presentation-api/v1`;
  const auth = `-H 'Authorization: Token ${places.api_token}' -H 'Content-type: application/json'`;
  return `
  accel-agent is serving (${(startedInMs / 1_000).toFixed(1)} s)

    the site          ${places.accelerator_url}
    customer API      ${api}/
    agent's status    ${places.metrics_url}
    demo backend      ${places.backend_url}
    state and logs    ${stateDir}   (addresses and token: demo.json)

  Unreviewed bots may visit ${demoDomain}: the demo set the policy unknown_bots_can_access: true. Without a policy,
  curl, uptime checks and search engines would be blocked. Loopback is trusted as a proxy, so X-Forwarded-For plays any visitor.

  Try:

  1  clear everything generated, with a receipt
     curl -s ${auth} \\
       -d '{"url_path_patterns": ["kind:generated"]}' ${api}/clear-accelerator-cache/${places.domain}/

  2  block a range, and be a visitor from it
     curl -s ${auth} \\
       -d '{"attach_to_bot": "unwelcome", "attach_to_domain": "${places.domain}"}' ${api}/mark-as-bad-bot/203.0.113.0_24/
     curl -si -H 'X-Forwarded-For: 203.0.113.7' ${places.accelerator_url}/ | head -8

  3  see the request logs
     curl -s ${auth} '${api}/incominglogs/?limit=5'

  Ctrl-C stops it; the next start goes on from here.
`;
}
