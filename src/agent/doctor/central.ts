// Checks the way to central: its name, its certificate, the two clocks, and whether it lets this host in.

import { readFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { getCACertificates } from "node:tls";
import { AccelError, systemCode } from "../../core/faults.ts";
import { clockSkewMaxMs, agentApiPrefix } from "../../wire/token.ts";
import { CentralClient } from "../link/central-client.ts";
import { fixedSecret, secretOfStart } from "../link/site-secret.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { readSecret16, secretFileOf } from "../settings/secret.ts";
import { findingsOf, unseen, type AgentSeen, type Finding, type Host } from "./finding.ts";
import { timedHead, type TimedAnswer } from "./timed-head.ts";

const clockWarnMs = 30_000;
const expiryWarnMs = 14 * 86_400_000;
const signInWithinMs = 15_000;
/** What proxies answer when nothing answers them. */
const proxyStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

/** Returns the authority's text, or undefined where it cannot be read; another check says that. */
export function authorityOf({ central_ca_file: path }: AgentSettings): string | undefined {
  try {
    return path === undefined ? undefined : readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Asks central for what needs no secret. An answer of 500 or more is a failure: it is that of a proxy before central, or of a
 * central that cannot serve, and says nothing of central's clock.
 */
export async function askCentral(settings: AgentSettings): Promise<TimedAnswer> {
  const caPem = authorityOf(settings);
  const answer = await timedHead(
    `${settings.central_url.replace(/\/+$/, "")}${agentApiPrefix}/ca`,
    {
      method: "GET",
      mayProxy: true,
      ...(caPem !== undefined && { ca: [...getCACertificates("default"), caPem] }),
    },
  );
  const { status } = answer;
  if (status === null || status < 500) return answer;
  const whose = proxyStatuses.has(status)
    ? "from the proxy before central, so central does not answer behind it"
    : "from central, or from the proxy before it";
  return { ...answer, date: null, error: { step: "answer", text: `status ${status} ${whose}` } };
}

/**
 * Checks name, connection, certificate and clock, one behind the other; then whether central lets this host in. All of
 * them ask as this command may, and the unit may less, so the agent's own link comes last.
 */
export async function checkWayToCentral(
  settings: AgentSettings,
  host: Pick<Host, "agent" | "uid">,
  now: () => Date,
): Promise<readonly Finding[]> {
  const answer = await askCentral(settings);
  const findings = [
    checkName(settings, answer),
    checkCertificate(settings, answer, now()),
    checkClock(answer, now()),
  ];
  const signIn =
    answer.error === null
      ? await checkSignIn(settings, host)
      : findingsOf("sign_in").skipped("central cannot be asked");
  return [...findings, signIn, checkLink(await host.agent())];
}

function checkLink(agent: AgentSeen): Finding {
  const { ok, failed, skipped } = findingsOf("link");
  if (agent.kind === "denied") return unseen("link", "this user may not ask the agent");
  if (agent.kind !== "answers" || agent.link === undefined)
    return skipped(
      "no agent answers: the lines above are of this command, which asks outside the unit's restrictions",
    );
  const { state, error } = agent.link;
  if (state !== "disconnected") return ok(`the agent itself, from within its unit: ${state}`);
  return failed(
    `the agent itself is not connected to central${error === undefined ? "" : `: ${error}`}`,
    linkHintOf(error ?? ""),
  );
}

function linkHintOf(error: string): string {
  if (/\b(?:EPERM|EACCES)\b/.test(error)) return forbiddenHint;
  return /\b(?:EAFNOSUPPORT|ENETUNREACH)\b/.test(error) ? waylessHint : linkHint;
}

const forbiddenHint =
  "The kernel refuses the agent's connection. The lines above are of this command, which asks outside the unit: look at what the unit restricts (IPAddressDeny=), and at the host's firewall.";
const waylessHint =
  "The agent has no network to central. The lines above are of this command, which asks outside the unit: where they are good, look at what the unit restricts (RestrictAddressFamilies=, PrivateNetwork=).";
const linkHint =
  "What the lines above find is to be mended first. They are of this command, which asks outside the unit: where they are good, look at the unit's proxy (/etc/accel-agent/environment), and at the agent's log.";

function checkName({ central_url: url }: AgentSettings, answer: TimedAnswer): Finding {
  const { ok, failed } = findingsOf("central");
  const { error, addresses, dns_ms: dnsMs, proxy } = answer;
  const through = proxy === null ? "" : ` through ${proxy}`;
  if (error !== null && proxy !== null)
    return failed(
      `${url} is not reached through the proxy ${proxy}: ${error.text}`,
      "Check HTTPS_PROXY and NO_PROXY (under systemd: /etc/accel-agent/environment), and whether the proxy lets this host connect to central.",
    );
  if (error?.step === "dns")
    return failed(
      `${new URL(url).hostname} has no address: ${error.text}`,
      "Check central_url, and the name servers of this host (/etc/resolv.conf).",
    );
  if (error?.step === "connect")
    return failed(
      `${url} cannot be reached: ${error.text}`,
      `${isRefusedHere(url, answer) ? centralHereHint : "Check the network and firewalls towards central."} The agent goes on serving meanwhile.`,
    );
  const found = dnsMs === null ? "" : ` (${addresses.join(", ")} in ${dnsMs} ms)`;
  return error?.step === "answer"
    ? failed(
        `${url}${found} does not answer as central does: ${error.text}`,
        isThisHost(url, answer)
          ? "That is this host: look at central here (systemctl status accel-central), and at what stands before it, if anything does."
          : "Look at central on its own host (systemctl status accel-central), and at the proxy before it.",
      )
    : ok(`${url}${through}${found}`);
}

const centralHereHint =
  "That is this host, and nothing listens there: start central (systemctl start accel-central), and look at its log where it does not stay up (journalctl -u accel-central).";

/** Whether the kernel of this very host refused the connection: no network lies between. */
function isRefusedHere(url: string, answer: TimedAnswer): boolean {
  return /\bECONNREFUSED\b/.test(answer.error?.text ?? "") && isThisHost(url, answer);
}

function isThisHost(url: string, { addresses }: TimedAnswer): boolean {
  const own = new Set(
    Object.values(networkInterfaces()).flatMap((found) =>
      (found ?? []).map(({ address }) => address),
    ),
  );
  const asked = addresses.length > 0 ? addresses : [bareHost(url)];
  return asked.every((address) => isLoopback(address) || own.has(address));
}

const isLoopback = (address: string): boolean => address === "::1" || address.startsWith("127.");

/** Returns the host of a URL as addresses are written: without brackets. */
const bareHost = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

function checkCertificate(
  { central_url: url }: AgentSettings,
  { error, certificate_until: until }: TimedAnswer,
  now: Date,
): Finding {
  const { ok, warning, failed, skipped } = findingsOf("certificate");
  if (url.startsWith("http:")) return skipped("central is on this host, without TLS");
  if (error?.step === "tls")
    return failed(
      `central's certificate is not accepted: ${error.text}`,
      "It has to be of an authority that this host trusts: name a private one in central_ca_file. Its names have to cover central_url.",
    );
  if (until === null) return skipped("central showed none");
  const leftMs = Date.parse(until) - now.getTime();
  return leftMs < expiryWarnMs
    ? warning(
        `central's certificate ends at ${until}`,
        "Renew it. Once it has ended no agent reaches central.",
      )
    : ok(`good until ${until}`);
}

function checkClock({ date }: TimedAnswer, now: Date): Finding {
  const { ok, warning, failed, skipped } = findingsOf("clock");
  if (date === null) return skipped("central did not tell its time");
  // The field has whole seconds: it is as true of all that second.
  const aheadMs = now.getTime() - Date.parse(date);
  const apartMs = Math.max(-aheadMs, aheadMs - 1_000, 0);
  const text =
    apartMs < 1_000
      ? "this host and central agree"
      : `this host and central differ by ${Math.round(apartMs / 1_000)} s`;
  const hint = "Start time synchronization on both: systemctl enable --now systemd-timesyncd.";
  if (apartMs > clockSkewMaxMs)
    return failed(`${text}; it lets nobody in beyond five minutes`, hint);
  return apartMs > clockWarnMs ? warning(text, hint) : ok(text);
}

async function checkSignIn(settings: AgentSettings, { uid }: Pick<Host, "uid">): Promise<Finding> {
  const { ok, fault, skipped } = findingsOf("sign_in");
  const { central_url: centralUrl, name16 } = settings;
  try {
    const secret16 = readSecret16(secretFileOf(settings.secret16_file));
    const secret = fixedSecret(
      await secretOfStart({ stateDir: settings.state_dir, name16, secret16 }),
    );
    const stop = AbortSignal.timeout(signInWithinMs);
    const caPem = authorityOf(settings);
    await using client = new CentralClient({ centralUrl, caPem, name16, secret, stop });
    const { deploymentSiteId } = await client.token();
    return ok(`central knows this host as deployment site ${deploymentSiteId}`);
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    // The secret may have been rotated since, and what is kept of that lies in the state directory.
    if (uid !== 0 && error.code === "DISK_FAILED" && systemCode(error.cause) === "EACCES")
      return unseen("sign_in", `this user may not look into ${settings.state_dir}`);
    return error.code === "SECRET_UNREADABLE"
      ? skipped("the secret cannot be read, so it was not tried")
      : fault(error);
  }
}
