// What the agent tells about itself: one object for `status`, the status page and /readyz.

import type { HealthWarning } from "../../base/health.ts";

/** A version of central's that is in force on this host. */
export type VersionFacts = {
  readonly viewset_name: string;
  readonly viewset_id: number;
  readonly since: string;
  /** Where the host stands with the version that central wants. */
  readonly standing: string;
  readonly on_trial_until: string | null;
};

export type AgentStatus = {
  readonly program: "accel-agent";
  readonly version: string;
  readonly name16: string;
  readonly started: string;
  readonly ready: boolean;
  readonly serving: {
    readonly state_version: number;
    readonly workers: number;
    readonly listen: string;
    /** The listener of HTTPS; null if it is not served. */
    readonly tls_listen: string | null;
    readonly domains: readonly {
      readonly domain: string;
      readonly hosts: readonly string[];
      /** Digest of the manifest in force, or where the site comes from instead. */
      readonly viewset: string;
      readonly version: VersionFacts | null;
      readonly files: number | null;
      readonly bots: {
        readonly mode: string;
        readonly unknown_bots: "allowed" | "blocked" | "blocked by default";
      };
    }[];
  };
  /** The facts of each part by its name, such as link, sets, cache and spool. */
  readonly parts: Readonly<Record<string, unknown>>;
  readonly warnings: readonly HealthWarning[];
};

/** Returns the page behind `/`: plain HTML without script, readable in a terminal browser. */
export function statusPage(status: AgentStatus): string {
  const rows = (facts: readonly (readonly [string, string])[]): string =>
    `<table>${facts.map(([name, value]) => `<tr><th scope="row">${escape(name)}</th><td>${escape(value)}</td></tr>`).join("")}</table>`;
  const domains = status.serving.domains.map(
    ({ domain, hosts, viewset, version, files, bots }) =>
      `<tr><td>${escape(domain)}</td><td>${escape(hosts.slice(1).join(", ") || "–")}</td><td>${version === null ? "" : `${escape(version.viewset_name)} (${escape(version.on_trial_until === null ? version.standing : "on trial")}) `}<code>${escape(viewset.slice(0, 20))}</code></td><td>${files ?? "–"}</td><td>${escape(`${bots.mode}, unreviewed ${bots.unknown_bots}`)}</td></tr>`,
  );
  const warnings = status.warnings.map(
    ({ code, severity, text, since, hint }) =>
      `<li class="${severity}"><strong>${escape(code)}</strong> since <time>${escape(since)}</time>: ${escape(text)}<br><small>${escape(hint)}</small></li>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>accel-agent ${escape(status.name16)}</title>
<style>body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1d2733;background:#fbfbf9}h1{font-size:1.3rem}h2{font-size:1rem;margin-top:2rem}table{border-collapse:collapse}th,td{text-align:left;padding:.2rem 1.2rem .2rem 0;vertical-align:top;font-weight:normal}th{color:#5a6672}.error{color:#a3231f}.warning{color:#8a5a00}@media(prefers-color-scheme:dark){body{background:#14181d;color:#dfe4ea}th{color:#97a3af}.error{color:#ff8f87}.warning{color:#e8b45a}}</style>
<h1>accel-agent ${escape(status.version)} · ${status.ready ? "ready" : "not ready"}</h1>
${rows([
  ["deployment site", status.name16],
  ["started", status.started],
  [
    "visitors",
    `${status.serving.listen}, ${status.serving.tls_listen === null ? "no HTTPS" : `HTTPS ${status.serving.tls_listen}`}, ${status.serving.workers} workers, state ${status.serving.state_version}`,
  ],
])}
<h2>Warnings</h2>${warnings.length === 0 ? "<p>None.</p>" : `<ul>${warnings.join("")}</ul>`}
<h2>Domains</h2><table><tr><th>domain</th><th>sub-domains</th><th>viewset</th><th>files</th><th>bots</th></tr>${domains.join("")}</table>
${Object.entries(status.parts)
  .map(([name, facts]) => `<h2>${escape(name)}</h2>${rows(flatten(facts))}`)
  .join("\n")}
<p><a href="/metrics">metrics</a> · <a href="/metrics/deployment">deployment metrics</a> · <a href="/metrics/node_exporter">host metrics</a></p></html>
`;
}

function flatten(facts: unknown, prefix = ""): readonly (readonly [string, string])[] {
  if (facts === null) return [[prefix, "–"]];
  if (typeof facts === "string") return [[prefix, facts]];
  if (typeof facts !== "object") return [[prefix, JSON.stringify(facts)]];
  if (Object.keys(facts).length === 0) return [[prefix, "none"]];
  return Object.entries(facts).flatMap(([name, value]) =>
    flatten(value, prefix === "" ? name : `${prefix}.${name}`),
  );
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
