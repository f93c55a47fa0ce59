// Whom our agent is compared with, ours first.

import { caddy } from "./caddy.ts";
import { haproxy } from "./haproxy.ts";
import { nginx } from "./nginx.ts";
import { ours } from "./ours.ts";
import type { Peer } from "./peer.ts";
import { squid } from "./squid.ts";
import { trafficServer } from "./trafficserver.ts";
import { varnish } from "./varnish.ts";

export const peers: readonly Peer[] = [ours, varnish, nginx, trafficServer, squid, haproxy, caddy];
