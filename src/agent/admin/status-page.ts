// The page behind `/`: what needs attention first, then how it is now, the last hour, and everything that the status says. Plain HTML without script, for a phone,
// a terminal browser and a screen reader as well.

import { beginningText } from "../../base/health.ts";
import type { HourView } from "./last-hour.ts";
import { factsHtml, momentHtml, plainHtml, wideTable } from "./page-facts.ts";
import { plotsHtml, tilesHtml, zoneText } from "./page-plots.ts";
import { pageSheet } from "./page-sheet.ts";
import type { AgentStatus } from "./status.ts";

export type PageView = {
  readonly hour: HourView;
  /** The host's time zone, by its IANA name. */
  readonly zone: string;
  /**
   * Whether the page loads itself again. Only who asked for it gets that: a page that reloads takes a selection away, and a screen reader and a terminal
   * browser begin from its top.
   */
  readonly reloads: boolean;
};

/** The query with which the page loads itself again. */
export const reloadQuery = "reload=15";

export function statusPage(status: AgentStatus, { hour, zone, reloads }: PageView): string {
  const { name16, version, ready, warnings } = status;
  const title = `accel-agent ${version} · ${ready ? "ready" : "not ready"}`;
  const waiting = warnings.length === 0 ? "" : `${countText(warnings.length)} · `;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">${reloads ? '<meta http-equiv="refresh" content="15">' : ""}
<title>${plainHtml(`${waiting}${title} · ${name16}`)}</title>
<style>${pageSheet}</style></head><body><main>
<h1>${plainHtml(title)}</h1>
${headHtml(status, hour.nowMs)}
<h2>Warnings</h2>
${warningsHtml(warnings, hour.nowMs)}
<h2>Now</h2>
${tilesHtml(hour, linkState(status))}
<h2>The last hour</h2>
<p class="quiet">${plainHtml(zoneText(hour.nowMs, zone))}</p>
${plotsHtml(hour)}
<h2>Domains</h2>
${domainsHtml(status, hour.nowMs)}
<div class="parts">
${partsHtml(status, hour.nowMs)}
</div>
</main><footer><p>${reloads ? '<a href="/">Stop reloading</a>' : `<a href="/?${reloadQuery}">Reload every 15 s</a>`} · <a href="/metrics">metrics</a> · <a href="/metrics/deployment">deployment metrics</a> · <a href="/metrics/node_exporter">host metrics</a></p></footer></body></html>
`;
}

const countText = (warnings: number): string =>
  warnings === 1 ? "1 warning" : `${warnings} warnings`;

function headHtml({ name16, started, serving }: AgentStatus, nowMs: number): string {
  const { listen, tls_listen: secure, workers, state_version: state } = serving;
  const visitors = `${listen}, ${secure === null ? "no HTTPS" : `HTTPS ${secure}`}, ${workers} workers, state ${state}`;
  return `<p>deployment site ${plainHtml(name16)}, started ${momentHtml(started, nowMs)}; visitors: ${plainHtml(visitors)}</p>`;
}

const severities = ["error", "warning", "info"];

function warningsHtml(warnings: AgentStatus["warnings"], nowMs: number): string {
  if (warnings.length === 0) return "<p>None.</p>";
  const items = warnings
    .toSorted((one, other) => severities.indexOf(one.severity) - severities.indexOf(other.severity))
    .map(
      ({ code, severity, text, since, not_before: notBefore, hint }) =>
        `<li class="${severity}"><strong>${plainHtml(code)}</strong> (${severity}) since ${momentHtml(since, nowMs)}${beginningText({ since, notBefore })}: ${plainHtml(text)}<br><small>${plainHtml(hint)}</small></li>`,
    );
  return `<ul class="warnings">${items.join("\n")}</ul>`;
}

function linkState({ parts }: AgentStatus): string {
  const { link } = parts;
  return typeof link === "object" && link !== null && "state" in link
    ? String(link.state)
    : "unknown";
}

function domainsHtml({ serving: { domains } }: AgentStatus, nowMs: number): string {
  if (domains.length === 0) return "<p>None.</p>";
  const rows = domains.map(({ domain, hosts, viewset, version, files, bots }) => [
    plainHtml(domain),
    plainHtml(hosts.slice(1).join(", ") || "–"),
    `${version === null ? "" : `${plainHtml(version.viewset_name)} (${version.on_trial_until === null ? `${plainHtml(version.standing)}, ` : "on trial, "}${momentHtml(version.since, nowMs)}) `}<code title="${plainHtml(viewset)}">${plainHtml(viewset.slice(0, 20))}</code>`,
    files === null ? "–" : String(files),
    plainHtml(`${bots.mode}, unreviewed ${bots.unknown_bots}`),
  ]);
  return wideTable("Domains", ["domain", "sub-domains", "viewset", "files", "bots"], rows);
}

function partsHtml({ parts }: AgentStatus, nowMs: number): string {
  return Object.entries(parts)
    .map(
      ([name, facts]) =>
        `<section><h2>${plainHtml(name)}</h2>${factsHtml(facts, nowMs, name)}</section>`,
    )
    .join("\n");
}
