// What a worker counts beside what every request does (request-tally.ts) and every one that goes to an origin (origin-tally.ts). `domain` is a main domain that is linked, or "none": never what a visitor made up.

import { OriginTally } from "./origin-tally.ts";
import { createMetrics, type Metrics, type Registry } from "../../../base/metrics.ts";

export const workerMetrics = {
  accel_agent_origin_errors_total: {
    kind: "counter",
    help: "Requests to which the origin gave no answer: unreachable (no connection, or a certificate that does not hold), timeout, broken (no HTTP, or it broke off), busy (no connection was free).",
    labels: ["domain", "kind"],
  },
  accel_agent_origin_server_errors_total: {
    kind: "counter",
    help: "Answers of an origin with a status of 500 or more.",
    labels: ["domain"],
  },
  accel_agent_origin_full_total: {
    kind: "counter",
    help: "Requests that found a backend with as many requests as it may have at a time (accelerator.origin_requests_max): waited (and were sent), late (none ended in time; 503), refused (too many waited; 503), left (the visitor did).",
    labels: ["domain", "outcome"],
  },
  accel_agent_cache_collapsed_total: {
    kind: "counter",
    help: "Requests that shared the origin's answer to another request.",
    labels: ["domain"],
  },
  accel_agent_cache_revalidated_total: {
    kind: "counter",
    help: "Stored responses that the origin confirmed by a 304.",
    labels: ["domain"],
  },
  accel_agent_cache_stale_total: {
    kind: "counter",
    help: "Stale responses served: while_revalidate, if_error, or asked (the visitor's max-stale).",
    labels: ["domain", "reason"],
  },
  accel_agent_cache_background_total: {
    kind: "counter",
    help: "Refreshes in the background: started, or refused because too many were under way.",
    labels: ["domain", "outcome"],
  },
  accel_agent_purge_requests_total: {
    kind: "counter",
    help: "Purge requests of content management systems by what became of them: cleared, denied (no right), refused (outside the grammar, or of another host), failed (too many waited, or the clear failed).",
    labels: ["domain", "outcome"],
  },
  accel_agent_open_upgrades: {
    kind: "gauge",
    help: "Open WebSockets and other upgrades: connections that were given to another protocol.",
  },
  accel_agent_upgrades_total: {
    kind: "counter",
    help: "Requests for a WebSocket or another upgrade that were let in: switched, declined (the origin gave another answer), failed (it gave none), refused (too many are open).",
    labels: ["domain", "outcome"],
  },
  accel_agent_upgrades_ended_total: {
    kind: "counter",
    help: "Upgrades that ended: closed (by one side), idle, unwelcome (a later verdict is against the visitor), drained (the worker stopped).",
    labels: ["domain", "reason"],
  },
  accel_agent_upgrade_bytes_total: {
    kind: "counter",
    help: "Bytes that passed over upgrades that have ended, by the side that sent them: visitor or origin.",
    labels: ["domain", "from"],
  },
  accel_agent_request_bodies_total: {
    kind: "counter",
    help: "Request bodies for origins: memory, file (they were taken in whole), streamed (backend.stream_request_body), too_large, late (slower than accelerator.body_rate_min, or nothing for accelerator.body_idle), no_room (accelerator.body_disk_max is full, or the disk is), gone (the visitor left).",
    labels: ["outcome"],
  },
  accel_agent_request_body_bytes: {
    kind: "gauge",
    help: "Bytes of request bodies that are held: memory, file.",
    labels: ["where"],
  },
  accel_agent_log_held_total: {
    kind: "counter",
    help: "Requests that had to wait for room for their record (spool.when_full: block).",
  },
  accel_agent_log_unserved_total: {
    kind: "counter",
    help: "Requests answered 503 because there was no room for their record (spool.when_full: block).",
  },
  accel_agent_open_connections: {
    kind: "gauge",
    help: "Open connections of visitors.",
  },
  accel_agent_refused_connections_total: {
    kind: "counter",
    help: "Connections refused because too many were open.",
  },
  accel_agent_visitor_refused_total: {
    kind: "counter",
    help: "What was refused because an address had too many: connection (closed; accelerator.connections_per_address), request (429; accelerator.requests_per_address).",
    labels: ["what"],
  },
  accel_agent_tls_handshakes_total: {
    kind: "counter",
    help: "TLS handshakes of visitors: full, resumed, unknown_name (no certificate covers it), failed.",
    labels: ["outcome"],
  },
  accel_agent_http2_connections_cut_total: {
    kind: "counter",
    help: "HTTP/2 connections cut with ENHANCE_YOUR_CALM or as broken: resets (streams that the visitor took back), control (PING and SETTINGS frames), overhead (bytes beside requests and bodies: WINDOW_UPDATE, PRIORITY and the like), protocol (what Node's library refuses: broken frames, and the same floods within one read).",
    labels: ["reason"],
  },
  accel_agent_http2_withheld_total: {
    kind: "counter",
    help: "TLS handshakes of visitors who offered HTTP/2 and did not get it, because a connection of their address was cut less than a minute before.",
  },
  accel_agent_proxy_header_refused_total: {
    kind: "counter",
    help: "Connections cut because they did not begin with the PROXY header of a trusted proxy: untrusted, invalid, incomplete, late.",
    labels: ["reason"],
  },
  accel_agent_variants_total: {
    kind: "counter",
    help: "Compressed variants that were to be made, by outcome.",
    labels: ["coding", "outcome"],
  },
  accel_agent_variant_bytes_made_total: {
    kind: "counter",
    help: "Bytes of compressed variants that were made and stored.",
    labels: ["coding"],
  },
  accel_agent_variants_served_total: {
    kind: "counter",
    help: "Answers with a compressed variant.",
    labels: ["domain", "coding"],
  },
  accel_agent_variant_bytes_saved_total: {
    kind: "counter",
    help: "Bytes that compressed variants saved in answers.",
    labels: ["domain"],
  },
  accel_agent_image_variants_total: {
    kind: "counter",
    help: "Variants of images that were wanted, by format (avif, webp, same: narrower only) and outcome: made, worthless (no smaller than the original), unreadable (no picture that is taken), blocked (images.variants_per_day_max is used up), failed, absent (this host has no encoder), cleared (the original was cleared meanwhile), gone, dropped (too many waited, or something failed lately).",
    labels: ["format", "outcome"],
  },
  accel_agent_image_variant_bytes_made_total: {
    kind: "counter",
    help: "Bytes of variants of images that were made and stored.",
    labels: ["format"],
  },
  accel_agent_image_variants_served_total: {
    kind: "counter",
    help: "Answers with a variant of an image.",
    labels: ["domain", "format"],
  },
  accel_agent_image_variant_bytes_saved_total: {
    kind: "counter",
    help: "Bytes that variants of images saved in answers.",
    labels: ["domain", "format"],
  },
} as const;

export type WorkerMetrics = Metrics<typeof workerMetrics> & { readonly origin: OriginTally };

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  return { ...createMetrics(workerMetrics, registry), origin: new OriginTally(registry) };
}
