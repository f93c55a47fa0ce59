// The agent's own settings: the meaning, default and check of each. `config/agent.yaml` is this table,
// written out.

import { isAbsolute } from "node:path";
import type { SettingsField, Parsed, Settings } from "../../base/settings.ts";
import {
  cronTimes,
  duration,
  flagField,
  httpUrl,
  integer,
  listenAddress,
  listOf,
  oneOf,
  record,
  size,
  textField,
} from "../../base/settings-fields.ts";
import { logLevels } from "../../base/log.ts";
import { forwardedHeaders } from "../../core/http/client-address.ts";
import {
  namedDomainFault,
  parseDomainName,
  parseName16,
  type DomainName,
  type Name16,
} from "../../core/ids.ts";
import { parseRange } from "../../core/addresses/ip.ts";
import { unitSecret } from "./secret.ts";

const absolutePath = (raw: unknown): Parsed<string> =>
  typeof raw === "string" && isAbsolute(raw)
    ? { ok: true, value: raw }
    : { ok: false, reason: "must be an absolute path" };

const domain = (raw: unknown): Parsed<DomainName> => {
  const value = parseDomainName(raw);
  return value === undefined
    ? {
        ok: false,
        reason: namedDomainFault(typeof raw === "string" ? raw : "") ?? "must be a host name",
      }
    : { ok: true, value };
};

const name16 = (raw: unknown): Parsed<Name16> => {
  const value = parseName16(raw);
  return value === undefined
    ? {
        ok: false,
        reason: "must be 16 lower-case hex characters, in quotes where they look like a number",
      }
    : { ok: true, value };
};

const range = (raw: unknown): Parsed<string> => {
  const parsed = typeof raw === "string" ? parseRange(raw) : undefined;
  if (parsed?.ok === true) return { ok: true, value: String(raw) };
  return { ok: false, reason: parsed?.reason ?? "must be an address or CIDR range" };
};

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

const hostAndPort = (raw: unknown): Parsed<string> => {
  const address = listenAddress()(raw);
  return address.ok ? { ok: true, value: String(raw) } : address;
};

export const agentFields = {
  central_url: {
    doc: "The address of central. Plain http is accepted for loopback addresses only.",
    example: "https://central.example.com",
    parse: (raw: unknown): Parsed<string> => {
      const url = httpUrl()(raw);
      if (!url.ok) return url;
      const { protocol, hostname } = new URL(url.value);
      const loopback =
        ["localhost", "[::1]"].includes(hostname) || /^127(?:\.\d+){3}$/.test(hostname);
      return protocol === "https:" || loopback
        ? url
        : { ok: false, reason: "must be https outside loopback" };
    },
  },
  central_ca_file: {
    doc: "A certificate authority (PEM) that is trusted for central's certificate, in addition to the system's authorities.",
    optional: true,
    example: "/etc/accel-agent/central-ca.pem",
    parse: absolutePath,
  },
  name16: {
    doc: "The public name of this deployment site, from the customer API.",
    example: "0123456789abcdef",
    parse: name16,
  },
  secret16_file: {
    doc: "The file with the secret16 of the deployment site, readable by the agent's user only.\nUnder systemd use LoadCredential=secret16:/etc/accel-agent/secret16 and this default.",
    fallback: unitSecret.shown,
    parse: absolutePath,
  },
  state_dir: {
    doc: "The directory in which the agent keeps everything. Each agent needs a directory of its own; an instance NAME has /var/lib/accel-agent-NAME unless told otherwise.",
    fallback: "/var/lib/accel-agent",
    parse: absolutePath,
  },
  log_level: {
    doc: "How much the program logs: trace, debug, info, warn, error or fatal.",
    fallback: "info",
    live: true,
    parse: oneOf(...logLevels),
  },

  "accelerator.listen": {
    doc: "The address on which visitors are served by HTTP.",
    fallback: "0.0.0.0:80",
    parse: listenAddress(),
  },
  "accelerator.tls_listen": {
    doc: "The address on which visitors are served by HTTPS (HTTP/2 and HTTP/1.1), with the certificates that central has for this deployment site. Without this key there is no HTTPS here.",
    optional: true,
    example: "0.0.0.0:443",
    parse: listenAddress(),
  },
  "accelerator.workers": {
    doc: "The number of threads that serve visitors. 0 means one for each processor, at most 16.",
    fallback: 0,
    parse: integer(0, 64),
  },
  "accelerator.trusted_proxies": {
    doc: "Addresses and CIDR ranges of the proxies that are trusted to say who the visitor is. From anybody else such headers change nothing.",
    fallback: [],
    parse: listOf(range, 1_000),
  },
  "accelerator.forwarded_header": {
    doc: "The header in which the trusted proxies say it: x-forwarded-for (with X-Forwarded-Proto) or forwarded (RFC 7239). The other header changes nothing.",
    fallback: "x-forwarded-for",
    parse: oneOf(...forwardedHeaders),
  },
  "accelerator.proxy_protocol": {
    doc: "off or required. With required, each connection must begin with a PROXY header (version 1 or 2) of a trusted proxy; other connections are cut. The address in the header then counts as the peer's.",
    fallback: "off",
    parse: oneOf("off", "required"),
    conflict: (settings) =>
      settings["accelerator.proxy_protocol"] === "required" &&
      isEmpty(settings["accelerator.trusted_proxies"])
        ? "required cuts every connection while accelerator.trusted_proxies is empty; name the proxies there"
        : undefined,
  },
  "accelerator.default_domain": {
    doc: "The domain that answers requests that are addressed to this host by IP address, as localhost, or without a Host header.",
    optional: true,
    example: "www.example.com",
    parse: domain,
  },
  "accelerator.drain_grace": {
    doc: "How long requests in flight may take to finish when the agent stops, or hands over to another release; then writes may take 20 s more.",
    fallback: "10s",
    parse: duration("0s", "10min"),
  },
  "accelerator.lane": {
    doc: "Whether plain requests are answered in one step where that needs no waiting; those of HTTP/1.1 are read by the agent's own parser. With false every connection of HTTP/1.1 is served by node's HTTP server, and every request takes the way of those that wait: the answers are the same, and cost more CPU.",
    fallback: true,
    live: true,
    parse: flagField(),
  },
  "accelerator.origin_requests_max": {
    doc: "How many requests each worker has under way at one backend, with a connection each. Further ones wait up to 5 s for one of those to end, and are then answered 503 with Retry-After.",
    fallback: 512,
    parse: integer(1, 512),
  },
  "accelerator.origin_waiting_max": {
    doc: "How many requests to one backend wait so in each worker. Further ones are answered 503 at once.",
    fallback: 512,
    parse: integer(0, 65_536),
  },
  "accelerator.connections_per_address": {
    doc: "How many connections of one visitor (an IPv4 address, or the /64 of an IPv6 address) each worker keeps open; further ones are closed. 0 means no limit. Connections of trusted proxies are not counted. The default is beyond what a large company or a carrier has open to one host behind one address.",
    fallback: 4096,
    parse: integer(0, 65_536),
  },
  "accelerator.requests_per_address": {
    doc: "How many requests of one visitor each worker has under way, those that are answered from memory left out; further ones are answered 429. 0 means no limit. Behind trusted proxies it is the address that they name.",
    fallback: 1024,
    parse: integer(0, 65_536),
  },
  "accelerator.body_memory_max": {
    doc: "Memory for the bodies of requests that are taken in before an origin is asked, for all workers together. Bodies of more than 1 MiB, and those that find no room here, go to files.",
    fallback: "64MiB",
    parse: size("0B", "64GiB"),
  },
  "accelerator.body_disk_max": {
    doc: "Disk space below state_dir for such bodies, for all workers together. When it is full, a body that needs it is answered 503; one that can never fit is answered 413.",
    fallback: "4GiB",
    parse: size(),
  },
  "accelerator.body_idle": {
    doc: "A request of whose body nothing comes for this long is answered 408. So is one whose body comes more slowly than body_rate_min, this time left out of account. Only the time in which the agent waits for the visitor counts.",
    fallback: "20s",
    parse: duration("1s", "1h"),
  },
  "accelerator.body_rate_min": {
    doc: "How much of a request's body has to come in a second, on average.",
    fallback: "500B",
    parse: size("1B", "1MiB"),
  },
  "accelerator.ocsp_stapling": {
    doc: "Whose answers of OCSP are sent along with certificates: of responders with public addresses (public), of any (any), or of nobody (off). The agent asks the responder that a certificate names, over HTTP, in the background.",
    fallback: "public",
    parse: oneOf("public", "any", "off"),
  },
  "accelerator.upgrades_max": {
    doc: "How many WebSockets and other upgrades each worker keeps open. Each takes two connections, about 60 KiB. Further ones are answered 503.",
    fallback: 4096,
    parse: integer(0, 65_536),
  },
  "accelerator.upgrade_idle": {
    doc: "A WebSocket or another upgrade over which nothing passes either way for this long is closed. Pings count.",
    fallback: "10min",
    parse: duration("1s", "24h"),
  },

  "cache.disk_max": {
    doc: "Disk space for cached responses.",
    fallback: "2GiB",
    parse: size("1MiB"),
  },
  "cache.disk_free_min": {
    doc: "How much of its disk the cache leaves free for request records and the journal. Where others fill the disk, it gives up what was not used for longest until so much is free. Without this key it is 512MiB, or a tenth of the disk if that is less.",
    optional: true,
    example: "2GiB",
    parse: size("0B"),
  },
  "cache.memory_max": {
    doc: "Memory for frequently requested responses, for all workers together. A quarter of it is for small files of viewsets, a quarter for small answers as they are sent.",
    fallback: "128MiB",
    parse: size("1MiB", "64GiB"),
  },

  "images.encoder": {
    doc: "Whether pictures are made smaller on this host where a devlove has images.optimize. It takes sharp, which the Debian package has, and a process at idle priority that uses half a processor at most. With false every original is sent as it is.",
    fallback: true,
    parse: flagField(),
  },
  "images.memory_max": {
    doc: "How much memory that process may take. It exists only while there are pictures to be made smaller. AVIF takes some 26 bytes for each pixel; a picture for which this is too little is sent as it is.",
    fallback: "768MiB",
    parse: size("128MiB", "16GiB"),
  },

  "viewset.keep": {
    doc: "How many versions of a domain stay on this host with their files, including the one in force. `accel-agent viewset rollback` and a failed trial go back to one of them.",
    fallback: 3,
    parse: integer(1, 100),
  },
  "viewset.trial": {
    doc: "How long a version is probed after it came into force on this host. A version that fails is rolled back. With 0s it is probed only before it comes into force.",
    fallback: "30s",
    parse: duration("0s", "24h"),
  },
  "viewset.disk_max": {
    doc: "Disk space for the files of all versions, including those of activations and imports under way. If a new version needs the space, kept versions are given up, the oldest first. A version that does not fit even then is refused.",
    fallback: "16GiB",
    parse: size("1MiB"),
  },

  "scrub.schedule": {
    doc: "When everything on disk is compared with its digests and repaired: minute, hour, day of the month, month, day of the week (cron, in the host's time). off means never. A scrub that is cut short continues after the restart.",
    fallback: "17 2 * * *",
    parse: cronTimes(),
  },
  "scrub.read_rate": {
    doc: "How much of the disk a scrub reads in a second, at most; it rests in between, at idle priority.",
    fallback: "16MiB",
    parse: size("64KiB", "10GiB"),
  },

  "link.catch_up_max": {
    doc: "How long cached responses wait for central to confirm that no clear was missed.",
    fallback: "1s",
    parse: duration("0s", "10min"),
  },
  "link.unconfirmed": {
    doc: "What happens to cached responses if central does not answer in that time: revalidate (ask the origin) or serve.",
    fallback: "revalidate",
    parse: oneOf("revalidate", "serve"),
  },

  "spool.max": {
    doc: "Disk space for request records that central has not acknowledged. When it is full, `spool.when_full` decides. Whatever is dropped is counted and reported to central as a gap.",
    fallback: "1GiB",
    parse: size("4MiB"),
  },
  "spool.when_full": {
    doc: "What happens when there is no room for request records: drop_oldest, drop_newest, sample (from 80 % on only one in 10 is kept, from 95 % one in 100, then as drop_oldest) or block (requests wait a few seconds and are then answered with 503).",
    fallback: "drop_oldest",
    parse: oneOf("drop_oldest", "drop_newest", "sample", "block"),
  },
  "spool.durability": {
    doc: "With group, records are on disk before they count as kept, at no cost worth mentioning. With relaxed, records are synced once a second, so a power loss costs those of the last second.",
    fallback: "group",
    parse: oneOf("group", "relaxed"),
  },
  "spool.fsync_interval": {
    doc: "The longest time between a record and its fsync. A power loss can cost that much.",
    fallback: "5ms",
    parse: duration("1ms", "10s"),
  },

  "logs.canary_interval": {
    doc: "How often a canary record is sent the whole way to central. Its age is a metric of the agent and of central. 0s means never.",
    fallback: "60s",
    parse: duration("0s", "1h"),
  },

  "metrics.listen": {
    doc: "The address of /metrics, /healthz, /readyz and the status page.",
    fallback: "127.0.0.1:9464",
    parse: listenAddress(),
  },
  "metrics.old_pages": {
    doc: "Whether /metrics and /metrics/deployment have most names in common, as in the release before. Sums over both jobs then count twice. This key exists for this release only.",
    fallback: false,
    parse: flagField(),
  },
  "metrics.node_exporter_url": {
    doc: "A node_exporter on this host whose metrics are passed on at /metrics/node_exporter. Without it the main collectors are read from /proc.",
    optional: true,
    example: "http://127.0.0.1:9100/metrics",
    parse: httpUrl(),
  },

  edge: {
    doc: "How this host is called, and appears in metrics configurations. Each key may be left out; what is left out here is not advertised.",
    optional: true,
    example: {
      server_name: "edge-1",
      edge_ip_address: "192.0.2.10",
      at_directory: "/srv/edge",
      datacenter: {
        datacenter_place: "Falkenstein",
        country_code: "DE",
        datacenter_provider_company: "Example Hosting",
      },
      metrics_advertise: "192.0.2.10:9464",
    },
    parse: record({
      server_name: { parse: textField(), optional: true },
      edge_ip_address: { parse: textField(), optional: true },
      at_directory: { parse: textField(), optional: true },
      datacenter: {
        optional: true,
        parse: record({
          datacenter_place: { parse: textField(), optional: true },
          country_code: {
            parse: textField(/^[A-Z]{2}$/, "two capital letters (ISO 3166-1)"),
            optional: true,
          },
          datacenter_provider_company: { parse: textField(), optional: true },
        }),
      },
      metrics_advertise: { parse: hostAndPort, optional: true },
    }),
  },

  sites: {
    doc: "Domains that are served from a directory of this host while they have no active viewset with views. import-viewset uploads them. With paths_differ_in_case: true an import accepts names that differ only in case.",
    fallback: [],
    parse: listOf(
      record({
        domain: { parse: domain },
        views_dir: { parse: absolutePath },
        devlove_file: { parse: absolutePath },
        paths_differ_in_case: { parse: flagField(), optional: true },
      }),
      10_000,
    ),
  },
  watch_views: {
    doc: "Whether the views directories are watched for changes. Each request checks its file in any case.",
    fallback: true,
    parse: flagField(),
  },
} satisfies Record<string, SettingsField<unknown>>;

export type AgentSettings = Settings<typeof agentFields>;

export const agentSettingsHead =
  "accel-agent: all settings with their defaults.\nTimes and sizes have units (5ms, 60s, 2h; 64MiB, 2GiB). An unknown key is an error of `accel-agent check`; the agent itself leaves it out and warns, so that it starts after a return to an earlier release.";
