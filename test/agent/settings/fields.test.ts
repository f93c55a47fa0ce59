// The agent's settings: the file in the repository is the table, written out; each value's own check.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  agentFields,
  agentSettingsHead,
  type AgentSettings,
} from "../../../src/agent/settings/fields.ts";
import { readSettings, renderSettings } from "../../../src/base/settings.ts";
import { expectGenerated } from "../../support/generated.ts";

const file = join(import.meta.dirname, "../../../config/agent.yaml");
const required = "central_url: https://central.example.com\nname16: 0123456789abcdef\n";

function errorsOf(yaml: string): readonly string[] {
  const read = readSettings(agentFields, yaml);
  return read.ok ? [] : read.errors.map(({ key, message }) => `${key} ${message}`);
}

function settingsOf(yaml: string): AgentSettings {
  const read = readSettings(agentFields, yaml);
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return read.settings;
}

test("config/agent.yaml is the table, written out", () => {
  expectGenerated("config/agent.yaml", () => renderSettings(agentSettingsHead, agentFields));
});

test("the file needs only what it marks as required, and says the defaults", () => {
  const yaml = readFileSync(file, "utf8");
  expect(errorsOf(yaml)).toEqual(["central_url is required", "name16 is required"]);
  expect(settingsOf(`${yaml}\n${required}`)).toEqual(settingsOf(required));
});

test("every example of the file is valid", () => {
  const yaml = readFileSync(file, "utf8").replaceAll(
    /^( *)# (\s*(?:[a-z_0-9]+:(?: .*)?|- .*))$/gm,
    "$1$2",
  );
  const settings = settingsOf(yaml);
  expect(settings.central_url).toBe("https://central.example.com");
  expect(settings.edge?.datacenter?.country_code).toBe("DE");
  expect(settings["metrics.node_exporter_url"]).toBe("http://127.0.0.1:9100/metrics");
});

test("what an agent does when told nothing else", () => {
  expect(settingsOf(required)).toMatchObject({
    secret16_file: "/run/credentials/accel-agent.service/secret16",
    state_dir: "/var/lib/accel-agent",
    "accelerator.listen": { host: "0.0.0.0", port: 80 },
    "accelerator.trusted_proxies": [],
    "accelerator.forwarded_header": "x-forwarded-for",
    "accelerator.proxy_protocol": "off",
    "link.catch_up_max": 1_000,
    "link.unconfirmed": "revalidate",
    "metrics.listen": { host: "127.0.0.1", port: 9_464 },
    sites: [],
    watch_views: true,
  });
});

test.each([
  ["central_url: http://localhost:8000", true],
  ["central_url: http://127.0.0.1:8000", true],
  ["central_url: http://127.1.2.3", true],
  ["central_url: http://[::1]:8000", true],
  ["central_url: https://central.example.com", true],
  ["central_url: http://central.example.com", false],
  ["central_url: http://127.example.com", false],
  ["central_url: http://localhost.example.com", false],
  ["central_url: http://10.0.0.1", false],
  ["central_url: https://name:secret@central.example.com", false],
])("%s: %s", (yaml, isValid) => {
  expect(errorsOf(`${yaml}\nname16: 0123456789abcdef\n`)).toHaveLength(isValid ? 0 : 1);
});

test.each([
  ["name16: 0123456789ABCDEF", "name16 must be 16 lower-case hex"],
  ["name16: 1234567890123456", "in quotes where they look like a number, found 1234567890123456"],
  ["name16: 12345678901234e5", "in quotes where they look like a number"],
])("%s is refused: %s", (yaml, reason) => {
  expect(errorsOf(`central_url: https://c.example\n${yaml}\n`)).toEqual([
    expect.stringContaining(reason),
  ]);
});

test.each([
  ["state_dir: var", "state_dir must be an absolute path"],
  ["secret16_file: secret", "secret16_file must be an absolute path"],
  ["log_level: verbose", "log_level must be one of trace, debug, info, warn, error, fatal"],
  ["accelerator:\n  workers: 65", "accelerator.workers must be an integer from 0 to 64"],
  [
    "accelerator:\n  trusted_proxies: [10.0.0.1/8]",
    'item 1 "10.0.0.1/8" has host bits set; the network is 10.0.0.0/8',
  ],
  [
    "accelerator:\n  forwarded_header: X-Forwarded-For",
    "accelerator.forwarded_header must be one of x-forwarded-for, forwarded",
  ],
  [
    "accelerator:\n  proxy_protocol: true",
    "accelerator.proxy_protocol must be one of off, required",
  ],
  [
    "accelerator:\n  proxy_protocol: required",
    "accelerator.proxy_protocol required cuts every connection while accelerator.trusted_proxies is empty",
  ],
  ["accelerator:\n  default_domain: localhost", "must be a host name with at least one dot"],
  ["cache:\n  memory_max: 128", "cache.memory_max must be a size"],
  ["link:\n  unconfirmed: maybe", "link.unconfirmed must be one of revalidate, serve"],
  ["spool:\n  fsync_interval: 0s", "spool.fsync_interval must be a time from 1ms to 10s"],
  ["edge:\n  server_name: ''", "edge server_name must be a text"],
  [
    "sites:\n  - domain: a.example",
    "sites item 1 views_dir must be an absolute path, and is missing",
  ],
  [
    "sites:\n  - {domain: a.example, views_dir: /a, devlove_file: b}",
    "item 1 devlove_file must be an absolute path",
  ],
  ["watch_view: true", "watch_view unknown key; did you mean watch_views?"],
])("%j: %s", (yaml, reason) => {
  expect(errorsOf(`${required}${yaml}\n`)).toEqual([expect.stringContaining(reason)]);
});

const sections = (key: string, value: unknown): string => {
  const [section = "", name = ""] = key.split(".");
  return `${section}: ${JSON.stringify({ [name]: value })}\n`;
};

test.each<[string, readonly unknown[], readonly unknown[]]>([
  ["accelerator.workers", [0, 64], [-1, 65, 1.5]],
  ["accelerator.drain_grace", ["0s", "10min"], ["11min"]],
  ["accelerator.upgrades_max", [0, 65_536], [-1, 65_537]],
  ["accelerator.upgrade_idle", ["1s", "24h"], ["0s", "25h"]],
  ["cache.disk_max", ["1MiB"], ["1023KiB"]],
  ["cache.memory_max", ["1MiB", "64GiB"], ["1023KiB", "65GiB"]],
  ["viewset.keep", [1, 100], [0, 101]],
  ["viewset.trial", ["0s", "24h"], ["25h"]],
  ["viewset.disk_max", ["1MiB"], ["1023KiB"]],
  ["scrub.read_rate", ["64KiB", "10GiB"], ["63KiB", "11GiB"]],
  ["link.catch_up_max", ["0s", "10min"], ["11min"]],
  ["spool.max", ["4MiB"], ["3MiB"]],
  ["spool.fsync_interval", ["1ms", "10s"], ["0ms", "11s"]],
  ["logs.canary_interval", ["0s", "1h"], ["61min"]],
])("%s takes %j, not %j", (key, taken, refused) => {
  for (const value of taken) expect(errorsOf(required + sections(key, value))).toEqual([]);
  for (const value of refused)
    expect(errorsOf(required + sections(key, value))).toEqual([expect.stringContaining(`${key} `)]);
});

test("lists end somewhere: 1,000 trusted proxies, 10,000 sites", () => {
  const proxies = Array.from({ length: 1_001 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  const trusted = (count: number) =>
    sections("accelerator.trusted_proxies", proxies.slice(0, count));
  expect(settingsOf(required + trusted(1_000))["accelerator.trusted_proxies"]).toHaveLength(1_000);
  expect(errorsOf(required + trusted(1_001))).toEqual([
    expect.stringContaining("must be a list of at most 1000"),
  ]);
  const site = { domain: "a.example", views_dir: "/a", devlove_file: "/b" };
  const sites = (count: number): string =>
    `${required}sites: ${JSON.stringify(Array.from({ length: count }, () => site))}\n`;
  expect(settingsOf(sites(10_000)).sites).toHaveLength(10_000);
  expect(errorsOf(sites(10_001))).toEqual([
    expect.stringContaining("must be a list of at most 10000"),
  ]);
});

test("a PROXY header is required of proxies that are named, and the error says where", () => {
  const accelerator = "accelerator:\n  trusted_proxies: [10.0.0.0/8]\n  proxy_protocol: required\n";
  expect(settingsOf(required + accelerator)["accelerator.proxy_protocol"]).toBe("required");
  const nobody = readSettings(agentFields, `${required}accelerator:\n  proxy_protocol: required\n`);
  expect(nobody).toMatchObject({ ok: false, errors: [{ line: 4 }] });
});

test("a secret that was put into the file is not repeated in the error", () => {
  expect(errorsOf(`${required}secret16: 0123456789abcdef0123456789abcdef\n`)).toEqual([
    "secret16 unknown key",
  ]);
});

test("what a key lacks is named, and the whole of it is not shown", () => {
  const [error] = errorsOf(`${required}sites:\n  - domain: a.example\n`);
  expect(error).toMatch(/views_dir must be an absolute path, and is missing$/);
});

test("each key of edge may be left out", () => {
  for (const edge of ["{server_name: edge-1}", "{datacenter: {country_code: DE}}", "{}"])
    expect(errorsOf(`${required}edge: ${edge}\n`)).toEqual([]);
});

test.each([
  ["192.0.2.10:9464", true],
  ["[2001:db8::1]:9464", true],
  ["edge.example.com:9464", true],
  ["192.0.2.10", false],
  ["192.0.2.10:70000", false],
  ["http://192.0.2.10:9464", false],
])("advertised as %s: %s", (address, isValid) => {
  const edge = {
    server_name: "e",
    edge_ip_address: "192.0.2.10",
    at_directory: "/srv",
    datacenter: { datacenter_place: "x", country_code: "DE", datacenter_provider_company: "y" },
    metrics_advertise: address,
  };
  expect(errorsOf(`${required}edge: ${JSON.stringify(edge)}\n`)).toHaveLength(isValid ? 0 : 1);
});
